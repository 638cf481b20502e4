"""Trust in hooks: `[hooks.state."KEY"]` of `config.toml`, byte for byte as Codex 0.169 reads and writes it."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from codex_py.config.edit import changed_text, edit_config
from codex_py.config.layers import Layers

HookState: TypeAlias = Literal["trusted", "new", "changed", "disabled"]

_NUMBER: Final = "$serde_json::private::Number"


def hook_hash(event: str, matcher: str | None, handler: Mapping[str, Any]) -> str:
    """The hash of what a user trusts. The programs that the command starts are not part of it.

    Args:
        event: as in the key: `pre_tool_use`.
        handler: with the names of `hooks.json`, and with the defaults that are part of the hash.
    """
    identity: dict[str, Any] = {"event_name": event, "hooks": [_hashed(handler)]}
    if matcher is not None:
        identity["matcher"] = matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + sha256(text.encode()).hexdigest()


def _hashed(handler: Mapping[str, Any]) -> dict[str, Any]:
    if "input" not in handler:
        return dict(handler)
    return {**handler, "input": _with_wrapped_numbers(handler["input"])}


def _with_wrapped_numbers(value: Any) -> Any:
    """The arguments of a tool as Codex 0.169 hashes them: its numbers are tables with their text."""
    match value:
        case dict():
            table = cast("dict[str, Any]", value)
            return {name: _with_wrapped_numbers(part) for name, part in table.items()}
        case list():
            return [_with_wrapped_numbers(part) for part in cast("list[Any]", value)]
        case bool() | str() | None:
            return value
        case _:
            return {_NUMBER: json.dumps(value)}


class HookStates:
    """What the layers say about each hook. A project cannot trust its own."""

    def __init__(self, layers: Layers) -> None:
        self._entries: dict[str, dict[str, Any]] = {}
        for layer in reversed(layers.layers):
            if layer.name != "project":
                for key, entry in layer.values.get("hooks", {}).get("state", {}).items():
                    self._entries.setdefault(key, {}).update(entry)

    def state(self, key: str, current: str) -> HookState:
        entry = self._entries.get(key, {})
        if entry.get("enabled") is False:
            return "disabled"
        match entry.get("trusted_hash"):
            case None:
                return "new"
            case known:
                return "trusted" if known == current else "changed"


def store_trust(home: Path, hashes: Mapping[str, str]) -> None:
    """Trust hooks, given as hashes by their keys. Raises a `ConfigError`: see `edit_config`."""
    _store(home, [(key, "trusted_hash", value) for key, value in hashes.items()])


def store_enabled(home: Path, key: str, *, enabled: bool) -> None:
    """Switch a hook off or on again; its trust stays. Raises a `ConfigError`: see `edit_config`."""
    _store(home, [(key, "enabled", None if enabled else False)])


def _store(home: Path, entries: Sequence[tuple[str, str, str | bool | None]]) -> None:
    def change(text: str, path: Path) -> str:
        for key, name, value in entries:
            text = changed_text(text, path, ("hooks", "state", key, name), value)
        return text

    edit_config(home, change)
