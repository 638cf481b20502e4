"""`@PATH` in an AGENTS.md: adds the files that it names, as Claude Code does. LIGHT.

It is loaded only if an AGENTS.md has an `@`.
"""

import os
import re
from collections.abc import Iterator
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
    parts, size, warnings = [content], len(content), list[str]()
    seen = {real_path(path, None)}
    documents = [(path, content, 1)]
    while documents:
        document, text, depth = documents.pop(0)
        for name, named in _mentioned(document, text):
            room = max(0, max_bytes - size)
            try:
                if (real := real_path(named, None)) in seen:
                    continue
                _refuse(named, root, depth)
                imported, its_size = read_start(named, room, root=root)
                if b"\0" in imported:
                    raise ValueError("it is not text")
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                warnings.append(f"{document} cannot import @{name}: {reason}.")
                continue
            seen.add(real)
            head = f"\n\n--- {named} ---\n\n".encode()
            parts.append((head + imported)[:room])
            size += len(head) + its_size
            documents.append((named, imported, depth + 1))
    return b"".join(parts), size, warnings


def _mentioned(document: Path, content: bytes) -> Iterator[tuple[str, Path]]:
    """The names behind an `@` in a document that mean files, with the absolute paths."""
    text = without_code(content.decode(errors="replace"))
    names = dict.fromkeys(match[1] for match in re.finditer(_MENTION, text, re.MULTILINE))
    for name in list(names)[:_MAX_MENTIONS]:
        if (path := _file(document.parent, name.replace("\\ ", " "))) is not None:
            yield name, path


def _refuse(path: Path, root: Path, depth: int) -> None:
    """Raises a `ValueError` if the file must not be imported."""
    if root not in path.parents:
        raise ValueError(f"it is outside of {root}")
    if path.name.startswith(".") or ".git" in path.parts:
        raise ValueError("it is a hidden file")
    if depth > _MAX_DEPTH:
        raise ValueError(f"imports are at most {_MAX_DEPTH} deep")


def _file(folder: Path, name: str) -> Path | None:
    """The file that a mention means: the name may be followed by the end of a sentence."""
    for each in dict.fromkeys((name, name.rstrip(_PUNCTUATION))):
        # Any word may be a mention: `Path.expanduser` and `is_file` raise for what is no path.
        path = normpath(folder / os.path.expanduser(each))  # noqa: PTH111
        if os.path.isfile(path):  # noqa: PTH113
            return Path(path)
    return None
