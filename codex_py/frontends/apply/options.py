"""What may be asked of `codex-py apply`."""

import argparse
from collections.abc import Sequence

from codex_py.errors import ExitCode, PatchError
from codex_py.frontends.command_parser import CommandParser, UsageError

_MAX_STRIP = 99


class ApplyOptions(argparse.Namespace):
    file: str | None = None
    """None takes standard input, or on a terminal the session held last; `-` standard input."""
    check: bool = False
    reverse: bool = False
    directory: str | None = None
    strip: int | None = None
    strict: bool = False
    three_way: bool = False
    partial: bool = False
    json: bool = False
    convert: str | None = None
    """`envelope` or `unified`."""
    cd: str = "."

    def refuse_for_envelope(self) -> None:
        """
        Raises:
            UsageError: an option was given that an envelope cannot follow.
        """
        if self.reverse and not self.convert:
            raise UsageError(
                "an envelope cannot be reversed; `codex-py undo` takes back one that was applied"
            )
        for name, given in (
            ("--strip", self.strip is not None),
            ("--3way", self.three_way),
            ("--partial", self.partial),
        ):
            if given:
                raise UsageError(f"{name} is for unified diffs, and this is an envelope")


def apply_options(argv: Sequence[str]) -> ApplyOptions:
    """Read the words after `apply`.

    Raises:
        UsageError: an option is unknown, lacks a good value, or does not go with another.
    """
    options = _parser().parse_args(argv, namespace=ApplyOptions())
    if options.convert:
        for name in ("check", "directory", "strip", "strict", "three_way", "partial", "json"):
            if getattr(options, name) not in {None, False}:
                word = {"three_way": "3way"}.get(name, name)
                raise UsageError(f"--{word} does not go with --convert, which changes nothing")
        if options.reverse and options.convert == "envelope":
            raise UsageError("--reverse goes with --convert unified only")
    return options


def exit_code(error: PatchError, *, written: bool) -> ExitCode:
    """What a failure means for whoever called.

    Args:
        written: the patch fits, and failed when it was written.
    """
    if error.kind in {"parse", "empty"}:
        return ExitCode.INPUT
    return ExitCode.TURN_FAILED if written else ExitCode.PATCH


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser()
    add = parser.add_argument
    add("file", nargs="?")
    add("--check", action="store_true")
    add("-R", "--reverse", action="store_true")
    add("--directory")
    add("-p", "--strip", type=_count)
    add("--strict", action="store_true")
    add("-3", "--3way", dest="three_way", action="store_true")
    add("--partial", action="store_true")
    add("--json", action="store_true")
    add("--convert", type=_format)
    add("-C", "--cd")
    return parser


def _count(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and int(word) <= _MAX_STRIP):
        raise argparse.ArgumentTypeError(f"{word!r} is no number of directories")
    return int(word)


def _format(word: str) -> str:
    if word not in {"envelope", "unified"}:
        raise argparse.ArgumentTypeError(f"{word!r} is not a possible value: envelope, unified")
    return word
