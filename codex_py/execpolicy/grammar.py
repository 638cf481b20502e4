"""Every simple command of a script, whatever stands around it, found with tree-sitter-bash."""

import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from codex_py.execpolicy.words import Command, literal_word
from codex_py.execpolicy.wrappers import SHELLS, program_name

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

UNKNOWN: Final = "\0"
"""Stands for a word that is known only when the script runs. No rule and no argument can hold it."""

_CHUNK = 65536
_LONGEST_WORD = 4096
"""Bytes. No longer one is looked at."""


def commands_in(script: str, deadline: float) -> list[Command]:
    """The simple commands of a script, in its order: those of pipelines, loops, functions and substitutions too.

    A script with an error in it gives what can be told, because a shell runs the lines before the
    error. One that can not be parsed by the deadline, on the clock of `time.monotonic`, gives nothing.
    """
    source = script.encode(errors="replace")
    parser = _parser()
    try:
        tree = parser.parse(
            lambda offset, _point: source[offset : offset + _CHUNK],
            progress_callback=lambda _offset, _has_error: time.monotonic() > deadline,
        )
    except ValueError:
        # All that it says of a parse that was called off. Without a reset the next one would go on with it.
        parser.reset()
        return []
    found: list[Command] = []
    for node, rest, fed in _nodes(tree.root_node):
        words = _words(node, rest, source)
        found.append(words)
        if fed and program_name(words) in SHELLS:
            found += [(words[0], "-c", _input(text, source)) for text in fed]
    return found


@cache
def _parser() -> "Parser":
    # 20 ms, and only for scripts that are more than plain commands.
    from tree_sitter import Language, Parser  # noqa: PLC0415
    from tree_sitter_bash import language  # noqa: PLC0415

    return Parser(Language(language()))


def _nodes(root: "Node") -> "Iterator[tuple[Node, list[Node], list[Node]]]":
    """Each simple command, the words of it that the grammar has put elsewhere, and the texts that it is fed."""
    misplaced: dict[int, list[Node]] = {}
    fed: dict[int, list[Node]] = {}
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
        elif node is not None and node.type == "command":
            yield node, misplaced.pop(node.id, []), fed.pop(node.id, []) + _fed(node)
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


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
