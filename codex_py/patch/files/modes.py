"""Modes of directory entries. git writes the kind of an entry as the file type of its mode."""

import os
import re
import stat
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["file", "link", "submodule"]

SUBMODULE = 0o160000
"""The mode of a submodule as git writes it. On disk it is a directory."""

_KINDS: dict[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFLNK: "link",
    SUBMODULE: "submodule",
}


def kind_of(mode: int | None) -> Kind | None:
    """Return the kind of entry that has this mode; None for no mode, and for any other type."""
    if mode is None:
        return None
    return _KINDS.get(stat.S_IFMT(mode))


def written_mode(mode: int | None) -> str:
    """Write a mode as git does, with the permissions of a file reduced to whether it is executable.

    None, which leaves the mode to the umask, counts as not executable.
    """
    if kind_of(mode) in {"link", "submodule"}:
        return f"{stat.S_IFMT(mode or 0):o}"
    if mode is not None and mode & 0o100:
        return "100755"
    return "100644"


def permissions_by_umask(wanted: int) -> int:
    """Return the permission bits that the umask leaves to a new file."""
    try:
        status = Path("/proc/self/status").read_bytes()
    except OSError:
        status = b""
    found = re.search(rb"^Umask:\s*([0-7]+)", status, re.MULTILINE)
    if found:
        return wanted & ~int(found[1], 8)
    # Except on Linux, the umask can only be read by setting it. The one set here makes files that
    # other threads create meanwhile private.
    umask = os.umask(0o077)
    os.umask(umask)
    return wanted & ~umask
