"""Commands that are known to change nothing, and those that are known to destroy."""

from collections.abc import Sequence


def is_known_safe(argv: Sequence[str]) -> bool:
    """Whether all that `argv` runs is known to only read."""
    raise NotImplementedError(argv)


def dangerous(argv: Sequence[str]) -> str | None:
    """Why `argv` must not run unasked; None where nothing is known against it."""
    raise NotImplementedError(argv)
