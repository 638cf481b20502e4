"""Parses a command line with `argparse`: mistakes become our errors, and the help is our own text.

The fields of a class declare its options in their annotations:
`json: Annotated[bool, flag("--json")] = False`. An option without settings on a `Literal` field
accepts only the words of the `Literal`.
"""

import argparse
import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import (
    Any,
    Literal,
    NoReturn,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from codex_py.errors import UsageError, nearest

_OptionsT = TypeVar("_OptionsT")

TYPING_MISTAKE = 0.75
"""A word that is at least this much like a known word counts as a typing mistake. It covers one
wrong letter of four, two of eight, or two swapped letters, but neither `hello` for `help` nor
`--verbose` for `--version`."""
_ALIKE_OPTIONS = 0.8
"""Options are more alike than commands are: neither `--cd-dir` is meant as `--add-dir`, nor
`--model-provider` as `--local-provider`."""
_NEVER_SUGGESTED = ("--dangerously", "--yolo", "--full-auto", "--experimental")


def not_there_yet(command: str) -> UsageError:
    """The error for a command that Codex has, or that is planned."""
    return UsageError(
        f"`codex-py {command}` is not there yet; `codex-py help` lists what is"
    )


class HelpRequested(Exception):
    """`--help` was among the options.

    Attributes:
        parser: the parser of the command; None if the words did not reach a command.
    """

    def __init__(self, parser: argparse.ArgumentParser | None = None) -> None:
        super().__init__()
        self.parser = parser


_Declared: TypeAlias = Mapping[tuple[str, ...], Mapping[str, Any]]
"""The options of one field by their names, with the settings of `add_argument`."""


def option(*names: str, **settings: Any) -> _Declared:
    """Declare an option in the annotation of a field; without names, a positional word.

    The settings are those of `ArgumentParser.add_argument`.
    """
    return {names: settings}


def flag(*names: str) -> _Declared:
    """Declare an option that makes its field true."""
    return option(*names, action="store_true")


class CommandParser(argparse.ArgumentParser):
    """A parser without abbreviations and without generated help. It has the option `--help`.

    `parse_args` raises `UsageError` for a mistake and `HelpRequested` for `--help`; it never leaves the program.

    Args:
        declared: a class with fields that are options.
        only: the names of the fields to use; all fields by default.
    """

    def __init__(self, declared: Any, only: Container[str] | None = None) -> None:
        super().__init__(
            add_help=False,
            allow_abbrev=False,
            # argparse asks the formatter about each option. Without a width it imports `shutil`: 2 ms.
            formatter_class=partial(argparse.HelpFormatter, width=80),
        )
        self._with_value: set[str] = set()
        self._elsewhere: dict[str, str] = {}
        self.add_argument(
            "-h", "--help", action=_RequestHelp, nargs=0, default=argparse.SUPPRESS
        )
        self.declare(declared, only)

    def declare(self, declared: Any, only: Container[str] | None = None) -> None:
        """Add the options that a class declares. The arguments are those of the constructor."""
        for field, annotation in get_type_hints(declared, include_extras=True).items():
            if only is None or field in only:
                self._add_field(field, annotation)

    def _add_field(self, field: str, annotation: Any) -> None:
        """Add the options that the annotation of a field declares; it may declare none."""
        options: Iterable[_Declared] = getattr(annotation, "__metadata__", ())
        for each in options:
            for names, settings in each.items():
                if not names:
                    self.add_argument(field, nargs="?", **settings)
                    continue
                if not settings:
                    settings = _choices(annotation)
                self.add_argument(*names, dest=field, **settings)

    def advise(self, elsewhere: Mapping[str, str]) -> None:
        """Give a sentence for each option that users know from other programs, by its name."""
        self._elsewhere.update(elsewhere)

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action:  # pyright: ignore[reportIncompatibleMethodOverride] -- typeshed lists the settings
        action = super().add_argument(*names, **settings)
        if action.nargs != 0:
            self._with_value.update(action.option_strings)
        return action

    def parse_before_command(
        self, argv: Sequence[str]
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the options up to `--` or the first word.

        Returns them and the rest, which is a command with its own options.
        """
        at = self.first_word(argv)
        options = self.parse_args(list(argv[:at]))
        rest = list(argv[at:])
        if rest[:1] == ["--"]:
            rest = rest[1:]
        return options, rest

    def first_word(self, argv: Sequence[str]) -> int:
        """The index of the first word that is neither an option nor its value; `--` counts as a word."""
        index = 0
        while index < len(argv):
            word = argv[index]
            if word == "--" or not word.startswith("-"):
                break
            if word in self._with_value:
                index += 2
            else:
                index += 1
        return min(index, len(argv))

    def option_named(self, name: str) -> argparse.Action | None:
        return self._option_string_actions.get(name)

    def positionals(self) -> Sequence[argparse.Action]:
        return self._get_positional_actions()

    def error(self, message: str) -> NoReturn:
        """Translate a message of argparse into a `UsageError`."""
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            word = unknown.split(" ")[0]
            if word.startswith("-"):
                raise self.unknown_option(word.partition("=")[0])
            raise UsageError(f"unexpected argument {word!r}")
        message = message.removeprefix("argument ")
        option, _, why = message.partition(": ")
        if why == "expected one argument":
            message += self._possible(option)
        raise UsageError(message)

    def _possible(self, names: str) -> str:
        """Describe the value of an option, after a colon: the values of a `OneOf`, or its `metavar`.

        The text is empty for other options.

        Args:
            names: the names of the option, such as `-s/--sandbox`.
        """
        action = self.option_named(names.split("/")[0])
        if action is None:
            return ""
        if isinstance(action.type, OneOf):
            return f": {', '.join(action.type.allowed)}"
        if isinstance(action.metavar, str):
            return f": {action.metavar}"
        return ""

    def unknown_option(self, name: str, further: Iterable[str] = ()) -> UsageError:
        """The error for an option that does not exist. It suggests a similar one that does.

        A spelling never leads to an option that switches a protection off, or to one that is there
        for compatibility alone: a wrong suggestion does harm where it is followed.

        Args:
            further: options that exist besides those of the parser.
        """
        message = f"unknown option {name}."
        if name in self._elsewhere:
            return UsageError(f"{message} {self._elsewhere[name]}")
        # The dashes, which every option has, would make options alike; so would a single letter.
        options = (*self._option_string_actions, *further)
        known = {
            option.lstrip("-"): option
            for option in options
            if not option.startswith(_NEVER_SUGGESTED)
        }
        if len(name) > 2:
            near = _misspelt(name.lstrip("-"), known)
            if near is not None:
                message += f" Did you mean {known[near]}?"
        return UsageError(message)


def _misspelt(word: str, known: Iterable[str]) -> str | None:
    """The known word that a word has a typing mistake in, or has the letters of in another order."""
    for each in known:
        if sorted(each) == sorted(word):
            return each
    return nearest(word, known, alike=_ALIKE_OPTIONS)


def _choices(annotation: Any) -> Mapping[str, Any]:
    """The setting that restricts an option to the words of a `Literal`, which may be optional.

    It is empty if the field has another type.
    """
    kind = get_args(annotation)[0]
    for each in (kind, *get_args(kind)):
        if get_origin(each) is Literal:
            return {"type": OneOf(*get_args(each))}
    return {}


class _RequestHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise HelpRequested(parser)


def given(found: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, by the names of their fields."""
    options = vars(found)
    return {name: value for name, value in options.items() if value is not None}


def parse_options(kind: type[_OptionsT], argv: Sequence[str]) -> _OptionsT:
    """Parse a command line into the class that declares its options.

    If the class has a field `literal_words`, that field gets the words after `--`.

    Raises:
        UsageError: the command line has a mistake.
        HelpRequested: `--help` is among the options.
    """
    words = list(argv)
    values: dict[str, Any] = {}
    if "literal_words" in get_type_hints(kind):
        end = words.index("--") if "--" in words else len(words)
        values["literal_words"] = tuple(words[end + 1 :])
        words = words[:end]
    values |= given(CommandParser(kind).parse_args(words))
    return kind(**values)


class OneOf:
    """A `type` for `add_argument` that accepts one of the values, which completion scripts list."""

    def __init__(self, *allowed: str) -> None:
        self._values = allowed

    @property
    def allowed(self) -> Sequence[str]:
        """The values that are listed."""
        return self._values

    def __call__(self, value: str) -> str:
        if value not in self.allowed:
            names = ", ".join(self.allowed)
            raise argparse.ArgumentTypeError(
                f"{value!r} is not a possible value: {names}"
            )
        return value


def not_empty(text: str) -> str:
    """A `type` for `add_argument` that refuses an empty text, as of a variable that is not set."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def count(text: str) -> int:
    """A `type` for `add_argument` that accepts a whole number from 0."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def suggestion(word: str, known: Iterable[str]) -> str:
    """The text ` Did you mean …?` for the nearest known word; empty if no word is near."""
    near = nearest(word, known)
    if near:
        return f" Did you mean {near}?"
    return ""


def working_folder(name: str | None) -> Path:
    """The folder with the given name, or the current folder: absolute, and without links.

    Raises:
        UsageError: the path is not a folder, or cannot be found.
    """
    name = "." if name is None else name
    try:
        # `Path.resolve` raises another exception for links in a circle.
        path = Path(os.path.realpath(name, strict=True))
        is_folder = path.is_dir()
    except (OSError, ValueError) as error:
        # A `ValueError` means a null character in the name.
        reason = getattr(error, "strerror", error)
        raise UsageError(f"cannot work in {name!r}: {reason}", code="cwd") from error
    if not is_folder:
        raise UsageError(f"cannot work in {name!r}: Not a directory", code="cwd")
    return path
