r"""Reads scripts of plain commands, without a shell.

This module accepts only text that bash, zsh and a POSIX `sh` read in the same way: words of
ordinary characters, quotes and backslashes, joined by `&&`, `||`, `;`, `|` and newlines. Most
scripts of a model are of this kind. They need no parser, and their commands are certain.

`execpolicy/grammar.py` finds commands in all other scripts, but never declares a script harmless:
tree-sitter-bash takes `a\⏎b` for two words, a carriage return for a blank and `ls;;` for correct.
Source: POSIX, Shell Command Language, 2.2 Quoting and 2.3 Token Recognition.
"""

import re
from functools import cache
from typing import Final, TypeAlias

Command: TypeAlias = tuple[str, ...]
"""The words of one simple command, unquoted."""
UNKNOWN: Final = "\0"
"""Stands for a word that is known only when the script runs. No rule and no argument can contain
this text."""

_PLAIN = r"[\w./:@%+,^=!\x80-\U0010ffff-]"
"""A character that means itself: not one of `~ * ? [ ] { } $`, a backtick or an operator, which a
shell may expand."""
_SPECIAL = r"""
    (?<=[A-Za-z0-9_])\#             # elsewhere it may begin a comment
    | (?<=[A-Za-z0-9_])~            # HEAD~1; a home directory at the start and after : and =
    | \{\}                          # a placeholder of `find` and `xargs`
    | \\[\s\S]
    | '[^']*'
    | "[^"\\$`]*(?:\\[\s\S][^"\\$`]*)*"
"""
"""A part of a word that is quoted, or that a shell would expand elsewhere."""
_PARTS = f"{_PLAIN}+|{_SPECIAL}"
# Every character can be matched in one way only, so that a text that does not match takes no longer
# than one that does. Possessive groups would do the same, but Python 3.11.0 to 3.11.4 match them
# wrongly.
_WORD = f"(?:{_PLAIN}|{_SPECIAL}){_PLAIN}*(?:(?:{_SPECIAL}){_PLAIN}*)*"
_TOKEN = rf"""
    (?P<blank>(?:[ \t]|\\\n)+)
    | (?P<comment>\#[^\n]*)
    | (?P<operator>&&|\|\||[;|\n])
    | (?P<word>{_WORD})
"""
_ESCAPED = r'\\([$`"\\\n])'
"""A backslash in double quotes, with the character that it quotes."""


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern when it is needed: this takes 5 ms, and most sessions never need it."""
    return re.compile(text, re.VERBOSE)


_NOT_NAMES: Final = frozenset(
    (
        "!",
        "case",
        "coproc",
        "do",
        "done",
        "elif",
        "else",
        "esac",
        "fi",
        "for",
        "function",
        "if",
        "in",
        "select",
        "then",
        "time",
        "until",
        "while",
        "{}",
        # Words of zsh only.
        "-",
        "end",
        "foreach",
        "nocorrect",
        "noglob",
        "repeat",
    )
)
"""Words that a shell does not take for a command where one is expected."""


def plain_script(script: str) -> tuple[Command, ...] | None:
    """The commands of a script of plain commands, in order; never empty.

    None if a shell would expand, assign, redirect or branch, if the syntax is wrong, and if there
    are control characters or other invisible ones.
    """
    if not script.replace("\n", "").replace("\t", "").isprintable():
        return None
    tokens = _tokens(script)
    if tokens is None:
        return None
    commands: list[Command] = []
    words: list[str] = []
    command_is_due = False
    """True after an operator that needs a command behind it."""
    for kind, text in tokens:
        if kind == "word":
            is_assignment = not words and "=" in text
            # For zsh, `=name` is the path of a program.
            if is_assignment or text.startswith("="):
                return None
            words.append(_unquoted(text))
        elif words:
            commands.append(tuple(words))
            words = []
            command_is_due = text in {"&&", "||", "|"}
        elif text != "\n":
            # An operator has no command before it.
            return None
    if words:
        commands.append(tuple(words))
    elif command_is_due:
        return None
    if any(command[0] in _NOT_NAMES for command in commands):
        return None
    return tuple(commands) or None


def _tokens(script: str) -> list[tuple[str, str]] | None:
    """The words and operators of a script; None if it contains anything else.

    Returns:
        For each one, `word` or `operator`, and its text as it is written.
    """
    tokens: list[tuple[str, str]] = []
    kind: str | None = None
    position = 0
    while position < len(script):
        token = _pattern(_TOKEN).match(script, position)
        if token is None:
            return None
        # A `#` after a quote, as in `'a'#b`, is no comment but a part of the word.
        is_within_word = kind == "word" and token.lastgroup in {"comment", "word"}
        if is_within_word:
            return None
        kind = token.lastgroup
        position = token.end()
        if kind == "word" or kind == "operator":
            tokens.append((kind, token[0]))
    return tokens


def literal_word(raw: str) -> str | None:
    """The value of one word of a script; None if the value is not certain."""
    if _pattern(_WORD).fullmatch(raw) and not raw.startswith("="):
        return _unquoted(raw)
    return None


def _unquoted(raw: str) -> str:
    """The value of a word that is written as `_WORD` allows."""
    parts = _pattern(_PARTS).finditer(raw)
    return "".join(_part_value(part[0]) for part in parts)


def _part_value(part: str) -> str:
    match part[0]:
        case "\\":
            return _escaped_value(part[1])
        case "'":
            return part[1:-1]
        case '"':
            inner = part[1:-1]
            return _pattern(_ESCAPED).sub(lambda found: _escaped_value(found[1]), inner)
        case _:
            return part


def _escaped_value(character: str) -> str:
    """The text that a backslash and this character stand for.

    A backslash before a newline only continues the line.
    """
    if character == "\n":
        return ""
    return character
