"""What a patch has made of one file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedFile:
    """What a patch has made of the file of one name; a file that moves counts under both names."""

    path: str
    """Absolute."""
    old: bytes | None
    """None where there was no file, or, if there is an `old_mode`, one that was removed unread."""
    new: bytes | None
    """None where there is no file any more."""
    old_mode: int | None
    """File type and permission bits, as `st_mode`; None where there was no file."""
    new_mode: int | None
    """None where there is no file any more, and for a new one whose bits the umask decides."""
    moved_from: str | None = None
    """Absolute; where the contents were before."""
