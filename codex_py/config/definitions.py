"""Finds and reads files in which people define skills, roles and commands. LIGHT.

Markdown files begin with fields between lines of `---`. The fields are read as a subset of YAML:
names with plain, quoted or block text. In contrast to YAML, plain text may contain a colon. The
entries of a list are joined by commas; other nested values are skipped.
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
"""The most files and folders that are looked at below one folder. A link to `/` must not lead to a
search of the whole disk."""
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
    """Yield the files in these folders and their subfolders, each with the folder it came from.

    The files of each folder are sorted. Links are followed, but not out of `Folder.root`. Hidden
    folders are skipped.

    Args:
        names: a pattern that must match the whole name.
        what: the plural noun for the things that are searched for, used in warnings.
        max_depth: how many levels of subfolders are searched.
    """
    wanted = re.compile(names)
    seen: set[str] = set()
    for folder in folders:
        if folder.texts is not None:
            yield from ((path, folder) for path in folder.texts)
            continue
        room = _MOST
        for path, entries in _walk(folder, max_depth, seen, what, warnings):
            files = [name for name in entries if wanted.fullmatch(name)]
            yield from ((Path(path, name), folder) for name in files[:room])
            room -= 1 + len(files)
            if room < 0:
                warnings.append(
                    f"Only the first {_MOST} files and folders below {folder.path} were searched for {what}."
                )
                break


def _walk(
    top: Folder,
    max_depth: int,
    seen: set[str],
    what: str,
    warnings: list[str],
) -> Iterator[tuple[str, list[str]]]:
    """Yield the path of `top` and of each folder below it, with the sorted names of its entries.

    Folders whose real path is in `seen` are skipped; those that are yielded are added to it.
    """
    real_root = os.path.realpath(top.root or "/").rstrip("/")
    depth_of_top = str(top.path).count("/")
    reals: dict[str, str] = {}
    for path, folders, files in os.walk(top.path, followlinks=True):
        entries = sorted((*folders, *files))
        real = _real_path(path, reals)
        reals[path] = real
        is_inside = real.startswith(f"{real_root}/")
        is_deepest = path.count("/") - depth_of_top == max_depth
        # The list tells `os.walk` which folders to enter.
        if real in seen or not is_inside or is_deepest:
            folders.clear()
        else:
            folders[:] = sorted(name for name in folders if not _is_hidden(name))
        if real in seen:
            continue
        if not is_inside:
            reason = f"it is a link that leads out of {top.root}"
            warnings.append(f"{path} is not searched for {what}: {reason}.")
            continue
        seen.add(real)
        yield path, entries


def _real_path(path: str, reals: Mapping[str, str]) -> str:
    """The path without links. `reals` has the real paths of the folders above."""
    above, _, name = path.rpartition("/")
    # Resolving every path from the root would take half of the whole time.
    if above in reals and not Path(path).is_symlink():
        return f"{reals[above]}/{name}"
    return os.path.realpath(path)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "node_modules"


def read_definition(
    path: Path,
    folder: Folder,
    max_bytes: int,
    refuses: Refusal | None = None,
) -> str:
    """The text of a file; empty if it does not exist. Raises as `read_text` does."""
    if folder.texts is not None:
        return folder.texts[path]
    text = read_text(
        path,
        root=folder.root,
        max_bytes=max_bytes,
        refuses=refuses,
    )
    return text or ""


def front_matter(text: str, path: Path) -> tuple[Mapping[str, str], str]:
    """Return the fields and the text below them; no fields if no `---` begins the text.

    Raises:
        ConfigError: the fields are not closed, a line is not a field, or a quote is not closed.
    """
    found = _HEAD.match(text)
    if found is None:
        return {}, text
    if found[1] is None:
        raise ConfigError(f"{path}:1: the front matter has no end")
    fields: dict[str, str] = {}
    for number, line, below in _field_lines(found[1]):
        where = f"{path}:{number}: the front matter has"
        field = _FIELD.fullmatch(line.rstrip(" \t"))
        if field is None:
            raise ConfigError(f"{where} a line that is no field: {line[:80]!r}")
        try:
            fields[field[1]] = _value(field[2] or "", below)
        except ValueError as error:
            raise ConfigError(f"{where} {error}") from error
    return fields, text[found.end() :]


def _field_lines(head: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the first line of each field, with its number in the file and the lines below it.

    The lines below are stripped.
    """
    lines = [line.rstrip("\r") for line in head.split("\n")]
    lines = _without_margin(lines)
    place = 0
    while place < len(lines):
        first = lines[place]
        place += 1
        if not first.strip() or first.startswith("#") or first == "...":
            continue
        # Line 1 is the `---`.
        number = place + 1
        below: list[str] = []
        while place < len(lines) and _continues(lines[place]):
            below.append(lines[place].strip())
            place += 1
        yield number, first, below


def _without_margin(lines: list[str]) -> list[str]:
    """Remove the indentation that all lines have in common."""
    texts = [line for line in lines if line.strip()]
    indents = [len(line) - len(line.lstrip(" ")) for line in texts]
    margin = min(indents, default=0)
    return [line[margin:] for line in lines]


def _continues(line: str) -> bool:
    """True if the line belongs to the field above it, as list items do even without indentation."""
    is_item = line == "-" or line.startswith("- ")
    return is_item or not line.strip() or line[0] in " \t"


def _value(value: str, below: list[str]) -> str:
    """The text of a field.

    Args:
        value: the rest of the field's first line.
        below: the further lines, stripped.

    Raises:
        ValueError: a quote is not closed. The message is a noun.
    """
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
        items = [line for line in below if line.startswith("- ")]
        return ", ".join(item[2:].strip() for item in items)
    return " ".join(filter(None, (plain, *below)))
