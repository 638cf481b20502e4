"""Add and remove `[mcp_servers.NAME]` in the user's `config.toml`; comments and all else stay."""

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
    """Write a server, in the place of one that has its name; whether there was one.

    Raises:
        ConfigError: the table is no server, or the file cannot be changed; it is as it was.
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
    """Remove a server, be it one that cannot be used; False if the file has none of that name.

    Raises:
        ConfigError: the file cannot be changed; it is as it was.
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
    # The table that only held the server's may go with it, or stay.
    aims = [aim] if after else [aim, {k: v for k, v in before.items() if k != "mcp_servers"}]

    def edit_document(document: Any) -> None:
        if table is None:
            del document["mcp_servers"][name]
        else:
            # Where no table could be put in its place, it is one of one line.
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
    """The text with `own`, a few tables, in place of those at and below `key`; at its end if there are none.

    Comments that stand behind the last value of a table stay: they may well be about what follows.
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
    """The lines of a text, each with its end: those before the first header, then each header's."""
    sections: list[list[str]] = [[]]
    for line in re.split(r"(?<=\n)", text):
        if _header(line) is not None:
            sections.append([])
        sections[-1].append(line)
    return [section for section in sections if section]


def _header(line: str) -> KeyPath | None:
    """What `[a.b]` names. A line of a longer string can look like one, as whoever uses this must expect."""
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
