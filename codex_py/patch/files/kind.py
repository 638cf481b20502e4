"""The kinds of directory entries that git knows; it writes them as the file type of a mode."""

import stat
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["file", "link", "submodule"]

SUBMODULE = 0o160000
"""The mode of a submodule, which is a directory on disk; `stat` knows no such type."""

_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFLNK: "link", SUBMODULE: "submodule"}


def kind_of(mode: int | None) -> Kind | None:
    """The kind that a mode says; None for no mode, and for one of something else."""
    return None if mode is None else _KINDS.get(stat.S_IFMT(mode))


def written_mode(mode: int | None) -> str:
    """A mode as git writes it: all it says of a file is whether it is executable.

    None, for what the umask decides, is that of a file which is not.
    """
    match kind_of(mode):
        case "link":
            return "120000"
        case "submodule":
            return f"{SUBMODULE:o}"
        case _:
            return "100755" if mode is not None and mode & 0o100 else "100644"
