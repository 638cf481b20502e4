"""Finds every simple command of a script with tree-sitter-bash, in any context.

Importing this module takes 20 ms. Few scripts need it: those with more than plain commands.
"""

import re
from collections.abc import Iterator
from functools import cache

from tree_sitter import Language, Node, Parser
from tree_sitter_bash import language

from codex_py.execpolicy.parse_budget import ParseBudget
from codex_py.execpolicy.words import UNKNOWN, Command, literal_word
from codex_py.execpolicy.wrappers import is_shell

_LONGEST_WORD = 4096
"""The most bytes of a word that is looked at."""
_BOUNDARY = re.compile(rb"[;&|\n(){}`]")
_KEYWORDS = frozenset(
    (b"!", b"do", b"elif", b"else", b"if", b"then", b"time", b"until", b"while")
)


def commands_in(script: str, budget: ParseBudget) -> list[Command] | None:
    """Return the simple commands of a script in order, also in pipelines, loops, functions and `$(…)`.

    In a script with a syntax error, only the commands that can be found count; a shell runs the
    lines before the error. Returns None if parsing takes more than the rest of the budget.
    """
    if budget.is_spent:
        return None
    source = script.encode(errors="replace")
    parser = _parser()
    try:
        tree = parser.parse(budget.reader(source), progress_callback=budget.report)
    except ValueError:
        # The parser raises this if its parse was stopped.
        tree = None
    if tree is None or budget.is_spent:
        # Without this, the next parse would continue this one.
        parser.reset()
        return None
    found: list[Command] = []
    for node, misplaced, fed in _nodes(tree.root_node):
        if node.type == "ERROR":
            found += _guessed(source[node.start_byte : node.end_byte])
            continue
        words = _words(node, misplaced, source)
        found.append(words)
        if fed and is_shell(words):
            # A shell runs the text on its standard input as if it were the argument of `-c`.
            scripts = [_input(text, source) for text in fed]
            found += [(words[0], "-c", script) for script in scripts]
    return found


@cache
def _parser() -> Parser:
    return Parser(Language(language()))


def _nodes(root: Node) -> Iterator[tuple[Node, list[Node], list[Node]]]:
    """Yield each simple command, its words in redirections, and the texts for its standard input.

    Also yields each outermost syntax error, with empty lists.
    """
    misplaced: dict[int, list[Node]] = {}
    fed: dict[int, list[Node]] = {}
    end_of_error = 0
    cursor = root.walk()
    while True:
        node = cursor.node
        if node is not None and node.type == "redirected_statement":
            # Remember for the command below what its redirections hold. The command could not look
            # for them itself: a node finds its parent by a search from the root.
            body = node.child_by_field_name("body")
            if body is not None:
                fed[body.id] = _fed(node)
                misplaced[body.id] = _words_in_redirections(node)
        elif (
            node is not None
            and node.type == "ERROR"
            and node.start_byte >= end_of_error
        ):
            end_of_error = node.end_byte
            yield node, [], []
        elif node is not None and node.type == "command":
            words = misplaced.pop(node.id, [])
            texts = [*fed.pop(node.id, []), *_fed(node)]
            yield node, words, texts
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _words_in_redirections(statement: Node) -> list[Node]:
    """Return the words of a command that the grammar puts into its redirections.

    In `rm >log -f x`, all words after the operator are in the redirection, its target first.
    """
    words: list[Node] = []
    for redirect in statement.children_by_field_name("redirect"):
        words += redirect.children_by_field_name("destination")[1:]
        words += redirect.children_by_field_name("argument")
    return words


def _guessed(text: bytes) -> Iterator[Command]:
    """Guess the commands in a text that is not bash, or that the grammar cannot parse."""
    for part in _BOUNDARY.split(text):
        words = [word for word in part.split() if word not in _KEYWORDS]
        if words:
            yield tuple(_word(word, 0, len(word)) for word in words)


def _words(
    command: Node,
    misplaced: list[Node],
    source: bytes,
) -> Command:
    """Return the name and the arguments, without assignments and redirections."""
    name = command.children_by_field_name("name")
    arguments = command.children_by_field_name("argument")
    words: list[str] = []
    start = -1
    end = -1
    for node in (*name, *arguments, *misplaced):
        has_gap = 0 <= end < node.start_byte
        if has_gap and _is_line_continuation(source[end : node.start_byte]):
            # The grammar ends the word there, but it goes on.
            words.pop()
        else:
            start = node.start_byte
        end = node.end_byte
        words.append(_word(source, start, end))
    return tuple(words)


def _is_line_continuation(gap: bytes) -> bool:
    """True if nothing but continued lines is between two nodes."""
    return not gap.replace(b"\\\n", b"")


def _fed(node: Node) -> list[Node]:
    """Return the here-documents and here-strings for the standard input of a node."""
    texts: list[Node] = []
    for redirect in node.children_by_field_name("redirect"):
        children = redirect.named_children
        if redirect.type == "herestring_redirect":
            texts += children
        else:
            texts += [child for child in children if child.type == "heredoc_body"]
    return texts


def _input(text: Node, source: bytes) -> str:
    if text.type == "heredoc_body":
        return source[text.start_byte : text.end_byte].decode(errors="replace")
    return _word(source, text.start_byte, text.end_byte)


def _word(
    source: bytes,
    start: int,
    end: int,
) -> str:
    # Nested substitutions would be copied once for each level.
    if end - start > _LONGEST_WORD:
        return UNKNOWN
    word = literal_word(source[start:end].decode(errors="replace"))
    if word is None:
        return UNKNOWN
    return word
