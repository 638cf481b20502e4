"""Merge a file that went its own way with what a diff makes of the version that it was made from."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """What merging takes. Both may block, and are called before anything is written."""

    read_blob: Callable[[str], bytes | None]
    """The contents of a git blob by its name, which may be shortened; None if there is none."""
    merge: Callable[[bytes, bytes, bytes], tuple[bytes, bool]]
    """Ours, base and theirs to the merged contents, and whether conflicts are marked in them."""
