"""`@PATH` in an AGENTS.md: adds the files that it names, as Claude Code does. LIGHT.

It is loaded only if an AGENTS.md has an `@`.
"""

import os
import re
from os.path import normpath
from pathlib import Path

from codex_py.config.markdown import without_code
from codex_py.filesystem.ordinary import read_start, real_path

_MAX_DEPTH = 5
_MAX_MENTIONS = 200
"""In one file; each costs a look at the disk."""
_MENTION = r"(?:^|(?<=[\s(]))@((?:\\ |[^\s\\])+)"
_PUNCTUATION = ".,;:!?)]}'\"*_"


def with_imports(
    path: Path, content: bytes, root: Path, max_bytes: int
) -> tuple[bytes, int, list[str]]:
    """Add the files that a document imports behind it, each under its path.

    The text of the document itself stays as it is, and an `@name` that is no file is only text.

    Args:
        path: of the document, absolute.
        content: all of it.
        root: a folder that no import may lead out of.
        max_bytes: for all together.

    Returns:
        The first `max_bytes`, the size of all in bytes, and one sentence for each file that is left out.
    """
    found = _Imports(root, max_bytes - len(content), str(path))
    found.add(path, content, 1)
    return b"".join((content, *found.parts)), len(content) + found.size, found.warnings


class _Imports:
    def __init__(self, root: Path, room: int, document: str) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.warnings: list[str] = []
        self._root = root
        self._room = room
        self._seen = {real_path(document, None)}

    def add(self, document: Path, content: bytes, depth: int) -> None:
        """Add what a document imports."""
        text = without_code(content.decode(errors="replace"))
        names = dict.fromkeys(match[1] for match in re.finditer(_MENTION, text, re.MULTILINE))
        for name in list(names)[:_MAX_MENTIONS]:
            path = _file(document.parent, name.replace("\\ ", " "))
            if path is None or real_path(path, None) in self._seen:
                continue
            try:
                self._refuse(path, depth)
                self._read(path, depth)
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                self.warnings.append(f"{document} cannot import @{name}: {reason}.")

    def _refuse(self, path: Path, depth: int) -> None:
        """Raises a `ValueError`."""
        if self._root not in path.parents:
            raise ValueError(f"it is outside of {self._root}")
        if path.name.startswith(".") or ".git" in path.parts:
            raise ValueError("it is a hidden file")
        if depth > _MAX_DEPTH:
            raise ValueError(f"imports are at most {_MAX_DEPTH} deep")

    def _read(self, path: Path, depth: int) -> None:
        content, size = read_start(path, max(0, self._room), root=self._root)
        if b"\0" in content:
            raise ValueError("it is not text")
        self._seen.add(real_path(path, None))
        head = f"\n\n--- {path} ---\n\n".encode()
        part = (head + content)[: max(0, self._room)]
        self.parts.append(part)
        self.size += len(head) + size
        self._room -= len(head) + size
        if len(content) == size:
            self.add(path, content, depth + 1)


def _file(folder: Path, name: str) -> Path | None:
    """The file that a mention means: the name may be followed by the end of a sentence."""
    for each in dict.fromkeys((name, name.rstrip(_PUNCTUATION))):
        # Any word may be a mention: `Path.expanduser` and `is_file` raise for what is no path.
        path = normpath(folder / os.path.expanduser(each))  # noqa: PTH111
        if os.path.isfile(path):  # noqa: PTH113
            return Path(path)
    return None
