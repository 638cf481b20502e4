"""Trust in hooks: `[hooks.state."KEY"]` of `config.toml`, byte for byte as Codex 0.169 reads and writes it."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.config.edit import TomlValue, changed_text, edit_config
from codex_py.config.layers import Layers

HookState: TypeAlias = Literal["trusted", "new", "changed", "disabled"]


def hook_hash(event: str, matcher: str | None, handler: Mapping[str, Any]) -> str:
    """The hash of what a user trusts. The programs that the command starts are not part of it.

    Args:
        event: as in the key: `pre_tool_use`.
        handler: with the names of `hooks.json`, and with the defaults that are part of the hash.
    """
    identity = {"event_name": event, "hooks": [handler]}
    if matcher is not None:
        identity["matcher"] = matcher
    return "sha256:" + sha256(_compact(identity).encode()).hexdigest()


def hashed_input(arguments: Mapping[str, Any]) -> Any:
    """The arguments of a tool as Codex 0.169 hashes them: a number becomes a table with its text."""

    def number(text: str) -> dict[str, str]:
        return {"$serde_json::private::Number": text}

    return json.loads(_compact(arguments), parse_int=number, parse_float=number)


def hook_states(layers: Layers) -> Mapping[str, Mapping[str, Any]]:
    """What the layers say about each hook, by key. A project cannot trust its own."""
    entries: dict[str, dict[str, Any]] = {}
    for layer in reversed(layers.layers):
        if layer.name != "project":
            for key, entry in layer.values.get("hooks", {}).get("state", {}).items():
                entries.setdefault(key, {}).update(entry)
    return entries


def hook_state(entry: Mapping[str, Any], current: str) -> HookState:
    """The state of a hook with this hash."""
    if entry.get("enabled") is False:
        return "disabled"
    known = entry.get("trusted_hash")
    if known is None:
        return "new"
    return "trusted" if known == current else "changed"


def store_states(home: Path, values: Mapping[tuple[str, str], TomlValue]) -> None:
    """Set fields of `[hooks.state]`, by the key of the hook and the name. Raises a `ConfigError`: see `edit_config`."""

    changes = {("hooks", "state", *names): value for names, value in values.items()}
    edit_config(home, lambda text, path: changed_text(text, path, changes))


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
