"""Parses the command line of a session, with the options of extensions."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from codex_py.command_line.arguments import (
    OF_BEST_OF,
    Arguments,
    given_options,
    option_of,
)
from codex_py.command_line.parser import CommandParser, given
from codex_py.errors import UsageError
from codex_py.protocol.ids import is_thread_id

_NOT_YET = {"--remote"}
"""Options of Codex that this program knows of and does not have."""
_NOT_NEW = {("resume",), ("fork",), ("review",)}
"""The words behind `exec` with which it starts no new session."""
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_REQUEST = re.compile(r"(?:^|/)approval-[0-9a-f]+\.json$")
"""The end of the path of a request for an approval."""


def _foreign_options() -> dict[str, str]:
    """Read the advice for people who come from other agents, by the option that they type."""
    listed = Path(__file__).with_name("foreign_options.txt").read_text(encoding="utf-8")
    advice: dict[str, str] = {}
    for line in listed.splitlines():
        if line and not line.startswith("#"):
            names, _, text = line.partition(" | ")
            advice |= dict.fromkeys(names.split(", "), text)
    return advice


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """Read a command line, without the name of the program.

    Raises:
        UsageError: an option is unknown, is not supported, lacks a good value, or contradicts another.
        HelpRequested: `--help` is among the options.
    """
    # Split here, because argparse forgets where the `--` was, and a prompt after it may be "resume".
    end = argv.index("--") if "--" in argv else len(argv)
    before = [_with_value(word) for word in argv[:end]]
    literal_words = tuple(argv[end + 1 :])
    parser = CommandParser(Arguments)
    found, words = parser.parse_known_args(before)
    # argparse gives unknown options back among the words.
    of_extensions, words = _extension_options(words)
    for word in words:
        _refuse_unknown_option(word)
    values = given(found)
    words += _taken_from_images(values.get("image", []))
    denied: list[str] = values.get("deny", [])
    requests = [name for name in denied if _REQUEST.search(name)]
    if requests:
        values["deny"] = [name for name in denied if name not in requests]
        values["refuse"] = requests[-1]
    arguments = Arguments(
        words=tuple(words),
        literal_words=literal_words,
        of_extensions=of_extensions,
        **values,
    )
    if arguments.experimental_json:
        arguments = replace(arguments, json=True)
    _check_combinations(arguments)
    _check_best_of(arguments)
    return arguments


def _with_value(word: str) -> str:
    """Give `--worktree` an empty value. Its name is optional, and the next word may be the
    prompt."""
    if word == "--worktree":
        return "--worktree="
    return word


def _extension_options(words: list[str]) -> tuple[tuple[Any, ...], list[str]]:
    """Split the words into the options of extensions, parsed, and all others."""
    if not any(_FLAG.match(word) for word in words):
        return (), words
    from codex_py.command_line.extension_options import take_extension_options  # 2 ms

    return take_extension_options(words)


def _taken_from_images(images: list[str]) -> list[str]:
    """Take `resume ID` out of the values of `--image`, if it is there.

    Client libraries put these words behind the option, which takes every word that follows it.
    """
    for at, (word, thread_id) in enumerate(pairwise(images)):
        if word == "resume" and is_thread_id(thread_id):
            del images[at : at + 2]
            return [word, thread_id]
    return []


def _refuse_unknown_option(word: str) -> None:
    """Raise a `UsageError` if a word has the form of an option, which the parser did not know."""
    option = _FLAG.match(word)
    is_prompt = " " in word.partition("=")[0]
    if option is None or is_prompt:
        return
    name = option[0]
    if name in _NOT_YET:
        raise UsageError(f"{name} is not supported yet")
    advice = _foreign_options().get(name)
    if advice is not None:
        raise UsageError(f"unknown option {name}. {advice}")
    from codex_py.command_line.extension_options import (
        unknown_option,  # 0 ms, it was loaded before
    )

    raise unknown_option(name)


def _check_combinations(arguments: Arguments) -> None:
    if arguments.with_changes and arguments.worktree is None:
        raise UsageError("--with-changes has no effect without --worktree")


def _check_best_of(arguments: Arguments) -> None:
    if arguments.best_of is None:
        for name in OF_BEST_OF:
            if getattr(arguments, name):
                raise UsageError(f"{option_of(name)} has no effect without --best-of")
        return
    is_exec = arguments.words[:1] in {("exec",), ("e",)}
    if not is_exec or arguments.words[1:2] in _NOT_NEW:
        raise UsageError("--best-of is for new sessions of `codex-py exec`")
    if not arguments.best_of or arguments.jobs == 0:
        raise UsageError("--best-of and --jobs take whole numbers from 1")
    if arguments.bundle or arguments.worktree is not None:
        raise UsageError("--best-of goes with neither --worktree nor --bundle")
    for options in arguments.of_extensions:
        if not options.is_repeated:
            raise UsageError(f"--best-of does not go with {given_options(options)}")
    if arguments.on_approval == "suspend":
        raise UsageError("--best-of goes with no approvals: nobody resumes an attempt")
