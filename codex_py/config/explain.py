"""Says where a setting comes from: the layer that sets it, and those that it overrides."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast

from codex_py.config.check import (
    KeyPath,
    dotted,
    escaped,
    kind_of,
    leaves,
    lookup,
    suggestion,
)
from codex_py.config.declared.names import HOOK_EVENTS
from codex_py.config.declared.requirements import RequirementKeys
from codex_py.config.declared.section import defaults
from codex_py.config.declared.settings import Settings
from codex_py.config.hidden import hidden_text
from codex_py.config.layers import Layer, Layers
from codex_py.config.overrides import parse_key
from codex_py.errors import ConfigError

_OTHER_HOOKS: Final = (
    "Hooks of `hooks.json` files run too; /hooks in the terminal lists them all."
)
_DEPENDENT_DEFAULTS: Final = {
    "sandbox_mode": '"read-only"; in a trusted project "workspace-write"',
    "approval_policy": '"on-request"; for `exec` "never"',
}
"""Defaults that are not in `Settings`, because they depend on trust or on the command."""


def explain(
    key: str,
    layers: Layers,
    required: Layer,
) -> str:
    """Explain where the value of a key comes from, or the values of all keys in a table.

    Returns lines without a last line end. Credentials are shown as `***`, and those in addresses
    are left out.

    Args:
        required: the administrator's `requirements.toml`, whose own keys are explained too.

    Raises:
        ConfigError: there is no such key.
    """
    path = parse_key(key)
    if lookup(layers.merged(), path) is None and required.sets(path):
        layers = replace(layers, layers=(required,))
    text = _explained(key, path, layers)
    if path[0] == "hooks":
        return f"{text}\n{_OTHER_HOOKS}"
    return text


def _explained(
    key: str,
    path: KeyPath,
    layers: Layers,
) -> str:
    found = lookup(layers.merged(), path)
    if found is not None:
        lines: list[str] = []
        for leaf in leaves(found, path):
            lines += _explained_value(leaf, layers)
        return "\n".join(lines)
    if kind_of(path) is None and kind_of(path, RequirementKeys) is None:
        similar = suggestion(path)
        if similar:
            hint = f"; did you mean `{similar}`?"
        else:
            hint = ""
        raise ConfigError(f"`{key}` is no known setting{hint}")
    return _explained_default(path)


def _explained_default(path: KeyPath) -> str:
    """Show the defaults at and below a key that no layer sets."""
    name = dotted(path)
    if name in _DEPENDENT_DEFAULTS:
        value = _DEPENDENT_DEFAULTS[name]
        return f"{name} = {value}\n  the default; it is set nowhere"
    unset = [
        f"{each} = {_shown(value, path)}\n  the default; it is set nowhere"
        for each, value in defaults(Settings)
        if each == name or each.startswith(f"{name}.")
    ]
    return "\n".join(unset) or f"{name} is set nowhere and has no default"


def _explained_value(leaf: KeyPath, layers: Layers) -> list[str]:
    """Show the value of a key that is no table, its layer, and those that it overrides."""
    winner, *weaker = [layer for layer in layers.layers if layer.sets(leaf)]
    value = _shown(lookup(winner.values, leaf), leaf)
    lines = [f"{dotted(leaf)} = {value}", f"  from {_source(winner, leaf)}"]
    # The hooks of all layers run.
    if leaf[0] == "hooks" and leaf[1] in HOOK_EVENTS:
        word = "besides"
    else:
        word = "overrides"
    for layer in weaker:
        other = _shown(lookup(layer.values, leaf), leaf)
        lines.append(f"  {word} {other} from {_source(layer, leaf)}")
    return lines


def _source(layer: Layer, path: KeyPath) -> str:
    if layer.path is None:
        return layer.name
    return f"{layer.name} config {layer.where(path)}"


def _shown(value: Any, path: KeyPath) -> str:
    """A value as TOML writes it, safe to print."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            text = hidden_text(value, path)
            # JSON leaves C1 controls as they are, and these could control the terminal.
            return escaped(json.dumps(text, ensure_ascii=False))
        case list() | tuple():
            parts = cast("Sequence[Any]", value)
            return f"[{', '.join(_shown(part, path) for part in parts)}]"
        case dict():
            table = cast("dict[str, Any]", value)
            if not table:
                return "{}"
            pairs: list[str] = []
            for name, part in table.items():
                pairs.append(f"{dotted((name,))} = {_shown(part, (*path, name))}")
            return f"{{ {', '.join(pairs)} }}"
        case _:
            return str(value)
