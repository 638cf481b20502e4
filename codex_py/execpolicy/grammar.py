"""Every simple command of a script, whatever stands around it, found with tree-sitter-bash."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from codex_py.execpolicy.words import Command, literal_word
from codex_py.execpolicy.wrappers import is_shell

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

UNKNOWN: Final = "\0"
"""Stands for a word that is known only when the script runs. No rule and no argument can hold it."""

_CHUNK = 512
"""Bytes that the parser is given at a time. Small, so that what it reads again and again is counted."""
_LONGEST_WORD = 4096
"""Bytes. No longer one is looked at."""
_BOUNDARY = re.compile(rb"[;&|\n(){}`]")
_KEYWORDS = frozenset((b"!", b"do", b"elif", b"else", b"if", b"then", b"time", b"until", b"while"))


class Budget:
    """How much parsing one command line may take, in steps of the parser.

    tree-sitter is linear on what people write: 500 KB of heredocs, or 50 KB of loops, are within it. On others it
    is quadratic, and would take minutes for 100 KB. The worst that was found takes two seconds. Time itself
    must not decide: a busy machine would give another verdict.
    """

    def __init__(self) -> None:
        self._reports = 800
        """The parser makes one for every 100 of its operations."""
        self._chunks = 40_000

    def reader(self, source: bytes) -> "Callable[[int, object], bytes]":
        def read(offset: int, _: object) -> bytes:
            self._chunks -= 1
            return source[offset : offset + _CHUNK] if self._chunks >= 0 else b""

        return read

    def report(self, _offset: int, _has_error: bool) -> bool:
        """Called by the parser; True ends the parse."""
        self._reports -= 1
        return self.is_spent

    @property
    def is_spent(self) -> bool:
        return self._reports < 0 or self._chunks < 0


def commands_in(script: str, budget: Budget) -> list[Command] | None:
    """The simple commands of a script, in its order: those of pipelines, loops, functions and substitutions too.

    A script with an error in it gives what can be told, because a shell runs the lines before the
    error. None where the script is more than what is left of the budget.
    """
    if budget.is_spent:
        return None
    source = script.encode(errors="replace")
    parser = _parser()
    try:
        tree = parser.parse(budget.reader(source), progress_callback=budget.report)
    except ValueError:
        # All that it says of a parse that was called off.
        tree = None
    if tree is None or budget.is_spent:
        # Without this, the next parse would go on with this one.
        parser.reset()
        return None
    found: list[Command] = []
    for node, rest, fed in _nodes(tree.root_node):
        if node.type == "ERROR":
            found += _guessed(source[node.start_byte : node.end_byte])
            continue
        words = _words(node, rest, source)
        found.append(words)
        if fed and is_shell(words):
            found += [(words[0], "-c", _input(text, source)) for text in fed]
    return found


@cache
def _parser() -> "Parser":
    # 20 ms, and only for scripts that are more than plain commands.
    from tree_sitter import Language, Parser  # noqa: PLC0415
    from tree_sitter_bash import language  # noqa: PLC0415

    return Parser(Language(language()))


def _nodes(root: "Node") -> "Iterator[tuple[Node, list[Node], list[Node]]]":
    """Each simple command, the words of it that the grammar has put elsewhere, and the texts that it is fed.

    Also each outermost text that the grammar has no name for, without any of these.
    """
    misplaced: dict[int, list[Node]] = {}
    fed: dict[int, list[Node]] = {}
    end_of_error = 0
    cursor = root.walk()
    while True:
        node = cursor.node
        if node is not None and node.type == "redirected_statement":
            # `rm >log -f x`: all words behind the operator are in the redirection, its target first.
            # From above, because a node finds its parent by a search from the root.
            body = node.child_by_field_name("body")
            if body is not None:
                fed[body.id] = _fed(node)
                misplaced[body.id] = [
                    word
                    for redirect in node.children_by_field_name("redirect")
                    for word in (
                        *redirect.children_by_field_name("destination")[1:],
                        *redirect.children_by_field_name("argument"),
                    )
                ]
        elif node is not None and node.type == "ERROR" and node.start_byte >= end_of_error:
            end_of_error = node.end_byte
            yield node, [], []
        elif node is not None and node.type == "command":
            yield node, misplaced.pop(node.id, []), fed.pop(node.id, []) + _fed(node)
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _guessed(text: bytes) -> Iterator[Command]:
    """What may be commands in a text that is no bash, or that the grammar does not know as such."""
    for part in _BOUNDARY.split(text):
        words = [word for word in part.split() if word not in _KEYWORDS]
        if words:
            yield tuple(_word(word, 0, len(word)) for word in words)


def _words(command: "Node", misplaced: "list[Node]", source: bytes) -> Command:
    """The name and the arguments, without assignments and redirections."""
    name, arguments = (command.children_by_field_name(part) for part in ("name", "argument"))
    nodes = [*name, *arguments, *misplaced]
    words: list[str] = []
    start = end = -1
    for node in nodes:
        gap = source[end : node.start_byte] if 0 <= end < node.start_byte else b""
        if gap and not gap.replace(b"\\\n", b""):
            # A line that goes on within a word, which the grammar takes for its end.
            words.pop()
        else:
            start = node.start_byte
        end = node.end_byte
        words.append(_word(source, start, end))
    return tuple(words)


def _fed(node: "Node") -> "list[Node]":
    """The texts that are redirected to its standard input."""
    return [
        text
        for redirect in node.children_by_field_name("redirect")
        for text in redirect.named_children
        if redirect.type == "herestring_redirect" or text.type == "heredoc_body"
    ]


def _input(text: "Node", source: bytes) -> str:
    if text.type == "heredoc_body":
        return source[text.start_byte : text.end_byte].decode(errors="replace")
    return _word(source, text.start_byte, text.end_byte)


def _word(source: bytes, start: int, end: int) -> str:
    # Substitutions within substitutions would be copied once for each level.
    if end - start > _LONGEST_WORD:
        return UNKNOWN
    word = literal_word(source[start:end].decode(errors="replace"))
    return UNKNOWN if word is None else word
