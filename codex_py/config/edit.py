"""Changes keys of the user's `config.toml`. The rest of the file stays the same, byte for byte."""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, cast

from codex_py.config.check import KeyPath, dotted, lookup
from codex_py.config.files import (
    LOCK_TIMEOUT_S,
    as_config_error,
    parse_toml,
    read_text,
    replace_text,
    require_small,
)
from codex_py.config.overrides import only_path
from codex_py.errors import ConfigError
from codex_py.filesystem.private import locked, make_private

TomlValue: TypeAlias = "Mapping[str, Any] | list[Any] | str | bool | int | float | None"
"""A value of TOML without dates; None: the key is not set."""

_WITHOUT_VALUE = re.compile(r"\s*(?:#|\Z)")
"""Matches a line that is blank or a comment."""


def edit_config(home: Path, change: Callable[[str, Path], str]) -> None:
    """Replace the text of `config.toml` as a whole or not at all.

    The file keeps its mode, and stays a link if it is one. Programs that edit it at the same time
    take turns.

    Args:
        home: `$CODEX_HOME`.
        change: called once with the text, empty if there is no file, and the path; returns the new
            text.

    Raises:
        ConfigError: the file cannot be read or written, or `change` raised it; the file is
            unchanged.
    """
    with as_config_error(home / "config.toml", "written"):
        make_private(home)
        with locked(home, LOCK_TIMEOUT_S):
            path = Path(os.path.realpath(home / "config.toml"))
            text = read_text(path) or ""
            changed = change(text, path)
            if changed != text:
                # No program could read a larger file again.
                require_small(changed, path)
                # The text has no byte order mark, because reading removed it.
                replace_text(path, changed)


def set_in_config(
    home: Path,
    key: KeyPath,
    value: TomlValue,
) -> bool:
    """Set a key of `config.toml`, or remove it if the value is None.

    Returns True if the key was set before.

    Raises:
        ConfigError: see `edit_config`; or the file spells the key in a way that cannot be changed
            safely.
    """
    found = False

    def change(text: str, path: Path) -> str:
        nonlocal found
        found = lookup(parse_toml(text, path), key) is not None
        return changed_text(text, path, {key: value})

    edit_config(home, change)
    return found


def changed_text(
    text: str,
    path: Path,
    changes: Mapping[KeyPath, TomlValue],
) -> str:
    """Return the text of `config.toml` with these keys set, or removed if the value is None.

    Raises:
        ConfigError: see `set_in_config`.
    """
    wanted = parse_toml(text, path)
    # For Python, true equals 1.
    changes = {
        key: value
        for key, value in changes.items()
        if repr(lookup(wanted, key)) != repr(value)
    }
    if not changes:
        return text
    refusal = f"{path} cannot be changed automatically"
    for key, value in changes.items():
        for length in range(1, len(key)):
            table = key[:length]
            if not isinstance(lookup(wanted, table) or {}, dict):
                raise ConfigError(f"{refusal}: `{dotted(table)}` must be a table")
        _put(wanted, key, value)
    # A table may vanish along with its last key.
    empty_tables: dict[str, Any] = {key[0]: {} for key in changes if len(key) > 1}
    # No edit works for every spelling of TOML.
    for changed in _edits(text, changes):
        with suppress(ConfigError):
            if empty_tables | parse_toml(changed, path) == wanted:
                return changed
    keys = ", ".join(f"`{dotted(key)}`" for key in changes)
    raise ConfigError(f"{refusal}; change {keys} in it by hand")


def _put(
    document: Any,
    key: KeyPath,
    value: Any,
) -> None:
    """Set a key in a parsed document, and make the tables around it; None removes the key."""
    for part in key[:-1]:
        document = document.setdefault(part, {})
    if value is None:
        del document[key[-1]]
    else:
        document[key[-1]] = value


def _edits(text: str, changes: Mapping[KeyPath, TomlValue]) -> Iterator[str]:
    """Yield the text after each edit that may work; a person's usual edit comes first."""
    import tomlkit.exceptions  # 20 ms

    newline = "\r\n" if "\r\n" in text else "\n"
    values: dict[str, Any] = {}
    for key, value in changes.items():
        if value is not None:
            _put(values, key, value)
    added = tomlkit.dumps(values).replace("\n", newline)
    yield _appended(text, added, newline)
    if len(changes) == 1:
        ((key, value),) = changes.items()
        if isinstance(value, list) and value:
            # The last part may be a new table of an array.
            last: dict[str, Any] = {}
            _put(last, key, value[-1:])
            table = tomlkit.dumps(last).replace("\n", newline)
            yield _appended(text, table, newline)
        yield _with_sections(text, key, added, newline)
        if value is not None:
            line = tomlkit.dumps({key[-1]: value}).replace("\n", newline)
            yield _with_line(text, key[:-1], line, newline)
    with suppress(tomlkit.exceptions.TOMLKitError):
        document = tomlkit.parse(text)
        for key, value in changes.items():
            if isinstance(value, Mapping):
                # The table may be within an inline one.
                value = cast("Mapping[str, Any]", tomlkit.inline_table() | dict(value))
            _put(document, key, value)
        changed = tomlkit.dumps(document)
        if text.count("\r\n") == text.count("\n"):
            changed = changed.replace("\r\n", "\n").replace("\n", "\r\n")
        yield changed


def _appended(
    text: str,
    added: str,
    newline: str,
) -> str:
    """The text, a blank line, and what is added."""
    if not text:
        return added
    if not text.endswith("\n"):
        text += newline
    return text + newline + added


def _with_sections(
    text: str,
    key: KeyPath,
    added: str,
    newline: str,
) -> str:
    """Replace the tables at and below `key` by `added`; without such tables, append it.

    Comments after the last value of a table stay, because they may be about the next table.
    """
    kept: list[str] = []
    # The number of the kept lines before the first table that is replaced.
    place: int | None = None
    gap: list[str] = []
    for section in _sections(text):
        header = _header(section[0])
        if header is None or header[: len(key)] != key:
            kept += section
            continue
        if place is None:
            place = len(kept)
        end = len(section)
        while _WITHOUT_VALUE.match(section[end - 1]):
            end -= 1
        trailing = section[end:]
        if any(line.strip() for line in trailing):
            kept += trailing
        elif len(kept) == place:
            gap = trailing
    if place is None:
        return _appended(text, added, newline)
    before = kept[:place]
    after = kept[place:]
    if added:
        before.append(added)
        if after and after[0].strip():
            before += gap
    elif not after:
        while before and not before[-1].strip():
            before.pop()
    return "".join(before + after)


def _with_line(
    text: str,
    table: KeyPath,
    line: str,
    newline: str,
) -> str:
    """Insert a line after the last value below the header of a table, or before the first header."""
    sections = _sections(text)
    for section in sections:
        header = _header(section[0]) or ()
        if header != table:
            continue
        end = len(section)
        while end and _WITHOUT_VALUE.match(section[end - 1]):
            end -= 1
        if not end:
            # The first comment may be about the whole file.
            while end < len(section) and section[end].strip():
                end += 1
        if end and not section[end - 1].endswith("\n"):
            section[end - 1] += newline
        section.insert(end, line)
        return "".join(map("".join, sections))
    return line + newline + text


def _sections(text: str) -> list[list[str]]:
    """Group the lines of a text, with line ends, by header.

    The lines before the first header are the first group, if there are any.
    """
    sections: list[list[str]] = [[]]
    for line in re.split(r"(?<=\n)", text):
        if _header(line) is not None:
            sections.append([])
        sections[-1].append(line)
    return [section for section in sections if section]


def _header(line: str) -> KeyPath | None:
    """The key in a header `[a.b]`. A line of a multi-line string can look like a header too."""
    if not line.lstrip().startswith("["):
        return None
    try:
        return only_path(tomllib.loads(line))[0]
    except ValueError:
        return None
