r"""Shell words and lists of plain commands, read without a shell.

This module accepts only text that bash, zsh and a POSIX `sh` read in the same way: words of
ordinary characters, quotes and backslashes, joined by `&&`, `||`, `;`, `|` and newlines. Most
scripts of a model are of this kind. They need no parser, and an accepted script was read as the
shell will read it. A full grammar (`grammar`) looks into other scripts, but never declares one
harmless: tree-sitter-bash takes `a\⏎b` for two words, a carriage return for a blank and `ls;;` for
correct. Source: POSIX, Shell Command Language, 2.2 Quoting and 2.3 Token Recognition.
"""

import re
from functools import cache
from typing import Final, TypeAlias

Command: TypeAlias = tuple[str, ...]
"""The words of one simple command, unquoted."""
UNKNOWN: Final = "\0"
"""A word that is known only when the script runs. No rule and no argument can contain this text."""

_PLAIN = r"[\w./:@%+,^=!\x80-\U0010ffff-]"
"""Ordinary characters: without `~ * ? [ ] { } $`, backticks and operators, which a shell may
expand."""
_SPECIAL = r"""
    (?<=[A-Za-z0-9_])\#             # may begin a comment elsewhere
    | (?<=[A-Za-z0-9_])~            # HEAD~1; a home directory at the start and behind : and =
    | \{\}                          # as `find` and `xargs` take it
    | \\[\s\S]
    | '[^']*'
    | "[^"\\$`]*(?:\\[\s\S][^"\\$`]*)*"
"""
_PARTS = f"{_PLAIN}+|{_SPECIAL}"
# Every character can be matched in one way only, so that a text that does not match takes no longer
# than one that does. Possessive groups would do the same, but Python 3.11.0 to 3.11.4 match them
# wrongly.
_WORDS = f"(?:{_PLAIN}|{_SPECIAL}){_PLAIN}*(?:(?:{_SPECIAL}){_PLAIN}*)*"
_TOKENS = rf"(?P<blank>(?:[ \t]|\\\n)+)|(?P<comment>\#[^\n]*)|(?P<operator>&&|\|\||[;|\n])|(?P<word>{_WORDS})"


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
"""Words that are not names of commands where a command is expected."""


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
    for kind, text in tokens:
        if kind == "word":
            # For zsh, `=name` is the path of a program.
            if text.startswith("=") or (not words and "=" in text):
                return None
            words.append(_unquoted(text))
        elif words:
            commands.append(tuple(words))
            words = []
            command_is_due = text in {"&&", "||", "|"}
        elif text != "\n":
            return None
    if words:
        commands.append(tuple(words))
    elif command_is_due:
        return None
    if any(command[0] in _NOT_NAMES for command in commands):
        return None
    return tuple(commands) or None


def _tokens(script: str) -> list[tuple[str | None, str]] | None:
    """The words as written, and the operators; None if there is anything else."""
    tokens: list[tuple[str | None, str]] = []
    kind: str | None = None
    position = 0
    while position < len(script):
        token = _pattern(_TOKENS).match(script, position)
        if token is None or (kind == "word" and token.lastgroup in {"comment", "word"}):
            # Here, a comment would be a `#` within a word, after a quote.
            return None
        kind = token.lastgroup
        position = token.end()
        if kind in {"word", "operator"}:
            tokens.append((kind, token[0]))
    return tokens


def literal_word(raw: str) -> str | None:
    """The value of one word of a script; None if the value is not certain."""
    if _pattern(_WORDS).fullmatch(raw) and not raw.startswith("="):
        return _unquoted(raw)
    return None


def _unquoted(raw: str) -> str:
    parts = _pattern(_PARTS).finditer(raw)
    return "".join(_part_value(part[0]) for part in parts)


def _part_value(part: str) -> str:
    match part[0]:
        case "\\":
            if part[1] == "\n":
                return ""
            return part[1]
        case "'":
            return part[1:-1]
        case '"':
            return re.sub(
                r'\\([$`"\\\n])', lambda m: m[1].replace("\n", ""), part[1:-1]
            )
        case _:
            return part
