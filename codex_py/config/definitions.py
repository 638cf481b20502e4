"""Finds and reads files in which people define skills, roles and commands. LIGHT.

Markdown files have fields between lines of `---`, which are read as the subset of YAML that such heads use: names
with plain, quoted or block text. This is more lenient than YAML: plain text may contain a colon. The entries of a
list are joined by commas; other nested values are skipped.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from codex_py.config.definition_folders import Folder
from codex_py.config.files import read_text
from codex_py.errors import ConfigError
from codex_py.filesystem.reading import Refusal

_MOST: Final = 2_000
"""The files and folders that are looked at below one folder: a link to `/` must not search the
whole disk."""
_HEAD: Final = re.compile(
    r"\ufeff?---[ \t\r]*$\n?(?:(.*?)^---[ \t\r]*$\n?)?", re.DOTALL | re.MULTILINE
)
_FIELD: Final = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*))?")
_BLOCK: Final = re.compile(r"[|>][+-]?\d?")
_COMMENT: Final = re.compile(r"[ \t]#.*")


def definitions(
    folders: Iterable[Folder],
    names: str,
    what: str,
    warnings: list[str],
    *,
    max_depth: int = 0,
) -> Iterator[tuple[Path, Folder]]:
    """The files in these folders and their subfolders, sorted, each with the folder it came from.

    Links are followed, but not out of `Folder.root`. Hidden files and folders are skipped.

    Args:
        names: a pattern that must match the whole name.
        what: the plural noun for the things that are searched for, used in warnings.
    """
    seen: set[str] = set()
    for folder in folders:
        within = f"{os.path.realpath(folder.root or '/').rstrip('/')}/"
        reals: dict[str, str] = {}
        room = _MOST
        if folder.texts is not None:
            yield from ((path, folder) for path in folder.texts)
            continue
        for path, inner, others in os.walk(folder.path, followlinks=True):
            above, _, name = path.rpartition("/")
            # Resolving every path from the root would take half of the whole time.
            is_plain = above in reals and not Path(path).is_symlink()
            real = f"{reals[above]}/{name}" if is_plain else os.path.realpath(path)
            reals[path] = real
            is_deep = path.count("/") - str(folder.path).count("/") == max_depth
            hidden = {
                name for name in inner if name[0] == "." or name == "node_modules"
            }
            files = [*filter(re.compile(names).fullmatch, sorted((*others, *inner)))]
            inner[:] = [] if is_deep or real in seen else sorted({*inner} - hidden)
            if real in seen:
                continue
            if not real.startswith(within):
                reason = f"it is a link that leads out of {folder.root}"
                warnings.append(f"{path} is not searched for {what}: {reason}.")
                inner.clear()
                continue
            seen.add(real)
            yield from ((Path(path, name), folder) for name in files[:room])
            room -= 1 + len(files)
            if room < 0:
                warnings.append(
                    f"Only the first {_MOST} files and folders below {folder.path} were searched for {what}."
                )
                break


def read_definition(
    path: Path, folder: Folder, max_bytes: int, refuses: Refusal | None = None
) -> str:
    """The text of a file; raises as `read_text` does."""
    if folder.texts is not None:
        return folder.texts[path]
    return read_text(path, root=folder.root, max_bytes=max_bytes, refuses=refuses) or ""


def front_matter(text: str, path: Path) -> tuple[Mapping[str, str], str]:
    """The fields, and the text below them. No fields if the text does not begin with `---`.

    Raises:
        ConfigError: the fields are not closed, a line is not a field, or a quote is not closed.
    """
    found = _HEAD.match(text)
    if found is None:
        return {}, text
    if found[1] is None:
        raise ConfigError(f"{path}:1: the front matter has no end")
    head = [line.rstrip("\r") for line in found[1].split("\n")]
    margin = min(
        (len(line) - len(line.lstrip(" ")) for line in head if line.strip()), default=0
    )
    head = [line[margin:] for line in head]
    fields: dict[str, str] = {}
    place = 0
    while place < len(head):
        line = head[place]
        place += 1
        if not line.strip() or line.startswith("#") or line == "...":
            continue
        field = _FIELD.fullmatch(line.rstrip(" \t"))
        # Line 1 is the `---`.
        number = place + 1
        if field is None:
            raise ConfigError(
                f"{path}:{number}: the front matter has a line that is no field: {line[:80]!r}"
            )
        below: list[str] = []
        while place < len(head) and _continues(head[place]):
            below.append(head[place].strip())
            place += 1
        try:
            fields[field[1]] = _value(field[2] or "", below)
        except ValueError as error:
            raise ConfigError(
                f"{path}:{number}: the front matter has {error}"
            ) from error
    return fields, text[found.end() :]


def _continues(line: str) -> bool:
    """True if the line belongs to the field above it, as list items do even without indentation."""
    return not line.strip() or line[0] in " \t" or line == "-" or line.startswith("- ")


def _value(value: str, below: list[str]) -> str:
    if _BLOCK.fullmatch(value):
        separator = "\n" if value[0] == "|" else " "
        return separator.join(below).strip()
    whole = " ".join((value, *below))
    if value[:1] == '"':
        try:
            text, _ = json.JSONDecoder(strict=False).raw_decode(whole)
        except ValueError as error:
            raise ValueError(f"a bad quoted text: {value[:80]!r}") from error
        return str(text)
    if value[:1] == "'":
        end = re.match(r"'((?:[^']|'')*)'", whole)
        if end is None:
            raise ValueError(f"a quote without an end: {value[:80]!r}")
        return end[1].replace("''", "'")
    plain = _COMMENT.sub("", value).rstrip(" \t")
    if not plain:
        # A name without text is followed by a list, or by a table, which is not used.
        return ", ".join(line[2:].strip() for line in below if line.startswith("- "))
    return " ".join(filter(None, (plain, *below)))
