"""The options of `codex-py apply`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from codex_py.frontends.command_parser import (
    UsageError,
    flag,
    one_of,
    option,
    parse_options,
)

_MAX_STRIP = 99


def _count(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and int(word) <= _MAX_STRIP):
        raise argparse.ArgumentTypeError(f"{word!r} is no number of directories")
    return int(word)


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    file: str | None = option()
    """None takes standard input, or on a terminal the last session; `-` takes standard input."""
    check: bool = flag("--check")
    reverse: bool = flag("-R", "--reverse")
    directory: str | None = option("--directory")
    strip: int | None = option("-p", "--strip", type=_count)
    strict: bool = flag("--strict")
    three_way: bool = flag("-3", "--3way")
    partial: bool = flag("--partial")
    json: bool = flag("--json")
    convert: Literal["envelope", "unified"] | None = option(
        "--convert", type=one_of("envelope", "unified")
    )
    cd: str = option("-C", "--cd", default=".")

    def refuse_for_envelope(self) -> None:
        """
        Raises:
            UsageError: an option was given that is not for envelopes.
        """
        if self.reverse and not self.convert:
            raise UsageError(
                "an envelope cannot be reversed; `codex-py undo` takes back one that was applied"
            )
        for name, is_given in (
            ("--strip", self.strip is not None),
            ("--3way", self.three_way),
            ("--partial", self.partial),
        ):
            if is_given:
                raise UsageError(f"{name} is for unified diffs, and this is an envelope")


def apply_options(argv: Sequence[str]) -> ApplyOptions:
    """Read the words after `apply`.

    Raises:
        UsageError: an option is unknown, lacks a good value, or contradicts another.
    """
    options = parse_options(ApplyOptions, argv)
    if options.convert:
        for name in ("check", "directory", "strip", "strict", "three_way", "partial", "json"):
            if getattr(options, name) not in {None, False}:
                word = {"three_way": "3way"}.get(name, name)
                raise UsageError(f"--{word} does not go with --convert, which changes nothing")
        if options.reverse and options.convert == "envelope":
            raise UsageError("--reverse goes with --convert unified only")
    return options
