"""Switches skills on and off in the user's `config.toml`."""

import os
from pathlib import Path
from typing import Any, cast

from codex_py.app.json_rpc import INVALID_PARAMS, RpcError
from codex_py.config.check import KeyPath, lookup
from codex_py.config.config import Config
from codex_py.config.edit import changed_text
from codex_py.config.files import parse_toml
from codex_py.errors import ConfigError
from codex_py.frontends.app_server.configuration.config_edits import invalid
from codex_py.frontends.app_server.configuration.config_params import SkillWrite
from codex_py.protocol.json_fields import as_object

_KEY: KeyPath = ("skills", "config")


def skill_selector(asked: SkillWrite) -> tuple[str, str]:
    """Return the field that names a skill, `path` or `name`, and its value.

    Raises:
        RpcError: the request does not have exactly one of them, or the path is relative.
    """
    name = (asked.name or "").strip()
    path = asked.path or ""
    if bool(name) == bool(path):
        # The words are Codex's.
        problem = "skills/config/write requires exactly one of path or name"
        raise RpcError(INVALID_PARAMS, problem)
    if name:
        return "name", name
    if not Path(path).is_absolute() or not path.isprintable():
        raise RpcError(INVALID_PARAMS, f"{path!r} is not the path of a skill")
    return "path", os.path.normpath(path)


def with_skill(
    text: str,
    path: Path,
    selector: tuple[str, str],
    *,
    is_enabled: bool,
) -> str:
    """Return the text of the file with an entry that disables a skill, or without it.

    Raises:
        RpcError: the file has the setting in a way that cannot be changed.
    """
    found = lookup(parse_toml(text, path), _KEY)
    entries: list[Any] = []
    if isinstance(found, list):
        entries = cast("list[Any]", found)
    kept = [entry for entry in entries if not _selects(entry, selector)]
    if not is_enabled:
        field, value = selector
        kept.append({field: value, "enabled": False})
    try:
        return changed_text(text, path, {_KEY: kept or None})
    except ConfigError as error:
        raise invalid(error) from error


def _selects(entry: Any, selector: tuple[str, str]) -> bool:
    """True if an entry of the setting is about a skill by this selector alone."""
    field, value = selector
    fields = as_object(entry)
    other = {"path": "name", "name": "path"}[field]
    return fields.get(field) == value and other not in fields


def disables(config: Config, selector: tuple[str, str]) -> bool:
    """True if the configuration disables a skill by this selector."""
    for entry in config.settings.skills.config or ():
        if entry.get("enabled") is False and _selects(dict(entry), selector):
            return True
    return False
