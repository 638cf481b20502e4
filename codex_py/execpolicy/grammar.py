"""Every simple command of a script, whatever stands around it, found with tree-sitter-bash."""

import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from codex_py.execpolicy.words import Command, literal_word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

UNKNOWN: Final = "\0"
"""Stands for a word that is known only when the script runs. No rule and no argument can hold it."""

_PATIENCE_S = 1.0
"""The grammar is linear on what people write, and takes minutes for a hundred thousand heredocs."""
_CHUNK = 65536


def commands_in(script: str) -> list[Command]:
    """The simple commands of a script, in its order: those of pipelines, loops, functions and substitutions too.

    A script with an error in it gives what can be told, because a shell runs the lines before the
    error. One that takes more than a second to read gives nothing.
    """
    source = script.encode(errors="replace")
    deadline = time.monotonic() + _PATIENCE_S
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
    return [_words(node, source) for node in _nodes(tree.root_node)]


@cache
def _parser() -> "Parser":
    # 20 ms, and only for scripts that are more than plain commands.
    from tree_sitter import Language, Parser  # noqa: PLC0415
    from tree_sitter_bash import language  # noqa: PLC0415

    return Parser(Language(language()))


def _nodes(root: "Node") -> "Iterator[Node]":
    cursor = root.walk()
    while True:
        if cursor.node is not None and cursor.node.type == "command":
            yield cursor.node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _words(command: "Node", source: bytes) -> Command:
    """The name and the arguments, without assignments and redirections."""
    parts = [command.children_by_field_name(name) for name in ("name", "argument")]
    nodes = [*parts[0], *parts[1]]
    parent = command.parent
    if parent is not None and parent.type == "redirected_statement":
        # `rm >log -f x`: all words behind the operator are in the redirection, its target first.
        for redirect in parent.children_by_field_name("redirect"):
            nodes += redirect.children_by_field_name("destination")[1:]
            nodes += redirect.children_by_field_name("argument")
    raw: list[bytes] = []
    end = -1
    for node in nodes:
        text = source[node.start_byte : node.end_byte]
        gap = source[end : node.start_byte] if 0 <= end < node.start_byte else b""
        if gap and not gap.replace(b"\\\n", b""):
            # A line that goes on within a word, which the grammar takes for its end.
            raw[-1] += text
        else:
            raw.append(text)
        end = node.end_byte
    words = (literal_word(text.decode(errors="replace")) for text in raw)
    return tuple(UNKNOWN if word is None else word for word in words)
