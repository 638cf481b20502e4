"""Parses the command line of a session, with the options of extensions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from codex_py.command_line.arguments import (
    FLAG,
    PRIORITIES,
    Arguments,
    checked_result,
    given_options,
)
from codex_py.command_line.parser import CommandParser, given
from codex_py.errors import UsageError
from codex_py.protocol.ids import is_thread_id
from codex_py.registry import OPTION_VALUES, find, load


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
    values = given(found)
    words += _taken_from_denied(values)
    of_extensions, words = _extension_options(words, values.get("fail_on", []))
    words += _taken_from_images(values.get("image", []))
    arguments = Arguments(
        words=tuple(words),
        literal_words=literal_words,
        of_extensions=of_extensions,
        **values,
    )
    if arguments.experimental_json:
        arguments = replace(arguments, json=True)
    _check_combinations(arguments)
    for each in arguments.of_extensions:
        _require_taken(each, arguments.command)
        each.check(arguments)
    return arguments


def run_options(arguments: Arguments, environment: Mapping[str, str]) -> int | None:
    """Call the `run` of the options of extensions. Returns the exit code of the first that has one.

    None: the command shall run.
    """
    for options in arguments.of_extensions:
        code = options.run(arguments, environment)
        if code is not None:
            return checked_result(options, "run", code, int, "an exit code or None")
    return None


def _with_value(word: str) -> str:
    """Give `--worktree` an empty value. Its name is optional, and the next word may be the
    prompt."""
    if word == "--worktree":
        return "--worktree="
    return word


def _extension_options(
    words: list[str], fail_on: Sequence[str]
) -> tuple[tuple[Any, ...], list[str]]:
    """Split the words into the options of extensions, parsed, and all others.

    Raises a `UsageError` for an option that nobody has.

    Args:
        fail_on: the values of `--fail-on`, which may name options of extensions, too.
    """
    failures = [value for value in fail_on if value not in PRIORITIES]
    if not failures and not any(FLAG.match(word) for word in words):
        return (), words
    from codex_py.command_line.extension_options import (
        failure_options,
        take_extension_options,
    )  # 2 ms

    options, rest = take_extension_options(words)
    return (*options, *failure_options(failures)), rest


def _taken_from_denied(values: dict[str, Any]) -> list[str]:
    """Take the values of `--deny` that belong to an option of an extension.

    Returns:
        The words in their place, such as `--deny-request=FILE`.

    Raises:
        ConfigError: the function of the extension cannot be used.
    """
    denied: list[str] = values.get("deny", [])
    point = find(OPTION_VALUES, "deny") if denied else None
    if point is None:
        return []
    take: Callable[[str], str | None] = load(point, "function for values of --deny")
    words: list[str] = []
    rest: list[str] = []
    for value in denied:
        word = take(value)
        if word is None:
            rest.append(value)
        else:
            words.append(word)
    values["deny"] = rest
    return words


def _taken_from_images(images: list[str]) -> list[str]:
    """Take `resume ID` out of the values of `--image`, if it is there.

    Client libraries put these words behind the option, which takes every word that follows it.
    """
    for at, (word, thread_id) in enumerate(pairwise(images)):
        if word == "resume" and is_thread_id(thread_id):
            del images[at : at + 2]
            return [word, thread_id]
    return []


def _check_combinations(arguments: Arguments) -> None:
    if arguments.with_changes and arguments.worktree is None:
        raise UsageError("--with-changes has no effect without --worktree")


def _require_taken(options: Any, command: str) -> None:
    """Raise a `UsageError` if the command does not take these options of an extension."""
    if command not in options.commands:
        taking = " and ".join(f"`codex-py {each}`" for each in options.commands)
        raise UsageError(f"{given_options(options)} is for {taking}")
