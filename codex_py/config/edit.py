"""Changes the user's `config.toml`; everything else in it stays as it is, byte for byte."""

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
)
from codex_py.config.overrides import only_path
from codex_py.errors import ConfigError
from codex_py.filesystem.private import locked, make_private

TomlValue: TypeAlias = "Mapping[str, Any] | str | bool | int | None"

_BLANK = re.compile(r"\s*(?:#|\Z)")


def edit_config(home: Path, change: Callable[[str, Path], str]) -> None:
    """Replace the text of `config.toml` by the result of `change`, which gets text and path.

    The file is replaced as a whole or not at all, keeps its mode, and stays a link if it is one.
    Programs that edit it at the same time take turns.

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
                # The text has no byte order mark, because reading removed it.
                replace_text(path, changed)


def set_in_config(
    home: Path,
    key: KeyPath,
    value: TomlValue,
) -> bool:
    """Set a key of `config.toml` to a word, a boolean or a table; None removes it.

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
    """The text of `config.toml` with these keys changed; see `set_in_config`."""
    aim = parse_toml(text, path)
    changes = {
        key: value for key, value in changes.items() if lookup(aim, key) != value
    }
    if not changes:
        return text
    refusal = f"{path} cannot be changed automatically"
    for key, value in changes.items():
        for length in range(1, len(key)):
            table = key[:length]
            if not isinstance(lookup(aim, table) or {}, dict):
                raise ConfigError(f"{refusal}: `{dotted(table)}` must be a table")
        _put(aim, key, value)
    for changed in _edits(text, changes):
        # No edit works for every spelling of TOML. A table may vanish along with its last key.
        with suppress(ConfigError):
            if {key[0]: {} for key in changes} | parse_toml(changed, path) == aim:
                return changed
    keys = ", ".join(f"`{dotted(key)}`" for key in changes)
    raise ConfigError(f"{refusal}; change {keys} in it by hand")


def _put(
    document: Any,
    key: KeyPath,
    value: Any,
) -> None:
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
    added: dict[str, Any] = {}
    for key, value in changes.items():
        if value is not None:
            _put(added, key, value)
    own = tomlkit.dumps(added).replace("\n", newline)
    yield _appended(text, own, newline)
    if len(changes) == 1:
        yield _with_sections(text, next(iter(changes)), own, newline)
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
    own: str,
    newline: str,
) -> str:
    if text:
        gap = ("" if text.endswith("\n") else newline) + newline
    else:
        gap = ""
    return text + gap + own


def _with_sections(
    text: str,
    key: KeyPath,
    own: str,
    newline: str,
) -> str:
    """The text with the tables of `own` in place of those at and below `key`, else at the end.

    Comments after the last value of a table stay, because they may be about the next table.
    """
    kept: list[str] = []
    place: int | None = None
    gap: list[str] = []
    for section in _sections(text):
        path = _header(section[0])
        if path is None or path[: len(key)] != key:
            kept += section
            continue
        if place is None:
            place = len(kept)
        end = len(section)
        while _BLANK.match(section[end - 1]):
            end -= 1
        if any(line.strip() for line in section[end:]):
            kept += section[end:]
        elif len(kept) == place:
            gap = section[end:]
    if place is None:
        return _appended(text, own, newline)
    if place == len(kept) and not own:
        while kept and not kept[-1].strip():
            kept.pop()
    if own:
        added = [own]
        follows = "".join(kept[place : place + 1]).strip()
        if follows:
            added += gap
        kept[place:place] = added
    return "".join(kept)


def _sections(text: str) -> list[list[str]]:
    """The lines of a text, with line ends, grouped by header; those before the first header come first."""
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
