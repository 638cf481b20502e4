"""`.rules` files: which commands are allowed, asked about or forbidden, by how they begin."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias


class Decision(StrEnum):
    ALLOW = "allow"
    PROMPT = "prompt"
    FORBIDDEN = "forbidden"


Pattern: TypeAlias = tuple[tuple[str, ...], ...]
"""For each word of a prefix, the words that it may be."""


@dataclass(frozen=True, slots=True)
class PrefixRule:
    pattern: Pattern
    decision: Decision = Decision.ALLOW
    justification: str | None = None


@dataclass(frozen=True, slots=True)
class MatchedRule:
    prefix: tuple[str, ...]
    """The words of the command that the pattern covers."""
    decision: Decision
    justification: str | None = None


@dataclass(frozen=True, slots=True)
class RuleMatch:
    decision: Decision
    """The strictest of `matched`."""
    justification: str | None
    """Of the first rule with that decision."""
    matched: tuple[MatchedRule, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    prefix_rules: tuple[PrefixRule, ...] = ()
    warnings: tuple[str, ...] = ()
    """What was accepted and has no effect, a sentence each."""

    def decide(self, argv: Sequence[str]) -> RuleMatch | None:
        raise NotImplementedError(argv)


def parse_rules(text: str, source: str) -> Rules:
    """Read one file; `source` is its name in errors.

    Raises:
        ConfigError: `Error loading rules: FILE:LINE:COLUMN: …`, and what is expected there.
    """
    raise NotImplementedError(text, source)


def load_rules(folders: Sequence[Path]) -> Rules:
    """The rules of all `*.rules` files of the folders, sorted by name; a missing folder has none.

    Raises:
        ConfigError: as for `parse_rules`, or a file can not be read.
    """
    raise NotImplementedError(folders)


def allow_prefix(rules_folder: Path, prefix: Sequence[str]) -> None:
    """Write down in `default.rules` that commands which begin with `prefix` are allowed.

    Raises:
        OSError: the file can not be read or written.
    """
    raise NotImplementedError(rules_folder, prefix)
