"""Adds and removes `[mcp_servers.NAME]` in the user's `config.toml`; everything else stays, comments too."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import tomlkit

from codex_py.config.check import KeyPath, dotted, problems
from codex_py.config.edit import (
    Edit,
    appended,
    edit_config,
    edited_values,
    first_that_fits,
    newline_of,
)
from codex_py.config.files import parse_toml
from codex_py.config.mcp import mcp_servers
from codex_py.errors import ConfigError


def put_server(home: Path, name: str, table: Mapping[str, Any]) -> bool:
    """Write a server, replacing one of the same name. True if there was one.

    Raises:
        ConfigError: the table is not a valid server, or the file cannot be changed; it is then unchanged.
    """
    for problem in problems({"mcp_servers": {name: table}}):
        raise ConfigError(f"`{dotted(problem.key)}` {problem.text}")
    mcp_servers({name: table})
    found = False

    def change(text: str, path: Path) -> str:
        nonlocal found
        found = name in _servers(parse_toml(text, path))
        return _changed(text, path, name, table)

    edit_config(home, change)
    return found


def remove_server(home: Path, name: str) -> bool:
    """Remove a server, even an invalid one; False if the file has none of that name.

    Raises:
        ConfigError: the file cannot be changed; it is then unchanged.
    """
    found = False

    def change(text: str, path: Path) -> str:
        nonlocal found
        found = name in _servers(parse_toml(text, path))
        return _changed(text, path, name, None) if found else text

    edit_config(home, change)
    return found


def _servers(values: Mapping[str, Any]) -> dict[str, Any]:
    servers = values.get("mcp_servers")
    return cast("dict[str, Any]", servers) if isinstance(servers, dict) else {}


def _changed(text: str, path: Path, name: str, table: Mapping[str, Any] | None) -> str:
    before = parse_toml(text, path)
    key = dotted(("mcp_servers", name))
    if not isinstance(before.get("mcp_servers", {}), dict):
        raise ConfigError(f"Error loading config.toml: {path}: `mcp_servers` must be a table")
    servers = _servers(before)
    others = {other: value for other, value in servers.items() if other != name}
    own = "" if table is None else tomlkit.dumps({"mcp_servers": {name: table}})
    after = others if table is None else {**others, name: table}
    aim = {**before, "mcp_servers": after}
    # `mcp_servers` may be removed along with its last server, or stay empty.
    aims = [aim] if after else [aim, {k: v for k, v in before.items() if k != "mcp_servers"}]

    def edit_document(document: Any) -> None:
        if table is None:
            del document["mcp_servers"][name]
        else:
            # This edit is used if the server is an inline table.
            document["mcp_servers"][name] = tomlkit.inline_table()
            document["mcp_servers"][name].update(table)

    edits: list[Edit] = [
        lambda text: _with_sections(text, ("mcp_servers", name), own),
        lambda text: edited_values(text, edit_document),
    ]
    for one in aims:
        if (changed := first_that_fits(text, path, one, edits)) is not None:
            return changed
    raise ConfigError(f"{path} cannot be changed automatically; change `{key}` in it by hand")


def _with_sections(text: str, key: KeyPath, own: str) -> str:
    """The text with the tables of `own` in place of those at and below `key`, or at its end.

    Comments behind the last value of a table stay, because they may be about the next table.
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
        while _is_blank(section[end - 1]):
            end -= 1
        if any(line.strip() for line in section[end:]):
            kept += section[end:]
        elif len(kept) == place:
            gap = section[end:]
    if place is None:
        return appended(text, own)
    if place == len(kept) and not own:
        while kept and not kept[-1].strip():
            kept.pop()
    if own:
        follows = "".join(kept[place : place + 1]).strip()
        kept[place:place] = [own.replace("\n", newline_of(text)), *(gap if follows else ())]
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
        value: Any = tomllib.loads(line)
    except ValueError:
        return None
    path: list[str] = []
    while isinstance(value, dict) and value:
        ((part, value),) = cast("dict[str, Any]", value).items()
        path.append(part)
    return tuple(path)


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")
