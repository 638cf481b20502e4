"""Says where a setting comes from: the layer that sets it, and those that it overrides."""

import json
import re
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
from codex_py.config.declared.kinds import Secret
from codex_py.config.declared.names import HOOK_EVENTS
from codex_py.config.declared.requirements import RequirementKeys
from codex_py.config.declared.section import defaults
from codex_py.config.declared.settings import Settings
from codex_py.config.layers import Layer, Layers
from codex_py.config.overrides import parse_key
from codex_py.errors import ConfigError
from codex_py.protocol.addresses import shown_url

_OTHER_HOOKS: Final = (
    "Hooks of `hooks.json` files run too; /hooks in the terminal lists them all."
)


def explain(
    key: str,
    layers: Layers,
    required: Layer,
) -> str:
    """Explain where the value of a key comes from, or the values of all keys in a table.

    `required`: the administrator's `requirements.toml`, whose own keys are explained too. The lines
    have no last line end. Credentials are shown as `***`, and those in addresses are left out.
    Raises a `ConfigError` if there is no such key.
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
    if found is None:
        if kind_of(path) is None and kind_of(path, RequirementKeys) is None:
            similar = suggestion(path)
            if similar:
                hint = f"; did you mean `{similar}`?"
            else:
                hint = ""
            raise ConfigError(f"`{key}` is no known setting{hint}")
        name = dotted(path)
        unset = [
            f"{each} = {_shown(value, path)}\n  the default; it is set nowhere"
            for each, value in defaults(Settings)
            if each == name or each.startswith(f"{name}.")
        ]
        return "\n".join(unset) or f"{name} is set nowhere and has no default"
    lines: list[str] = []
    for leaf in leaves(found, path):
        values = [(layer, lookup(layer.values, leaf)) for layer in layers.layers]
        (winner, value), *overridden = [each for each in values if each[1] is not None]
        lines += [
            f"{dotted(leaf)} = {_shown(value, leaf)}",
            f"  from {_source(winner, leaf)}",
        ]
        # The hooks of all layers run.
        if leaf[0] == "hooks" and leaf[1] in HOOK_EVENTS:
            word = "besides"
        else:
            word = "overrides"
        for layer, other in overridden:
            lines.append(f"  {word} {_shown(other, leaf)} from {_source(layer, leaf)}")
    return "\n".join(lines)


def _source(layer: Layer, path: KeyPath) -> str:
    if layer.path is None:
        return layer.name
    return f"{layer.name} config {layer.where(path)}"


def _shown(value: Any, path: KeyPath) -> str:
    if kind_of(path) is Secret:
        return '"***"'
    match value:
        case bool():
            return str(value).lower()
        case str():
            if re.match(r"\w+://", value):
                value = shown_url(value)
            # JSON leaves C1 controls as they are, and these could control the terminal.
            return escaped(json.dumps(value, ensure_ascii=False))
        case list() | tuple():
            return f"[{', '.join(_shown(part, path) for part in cast('Sequence[Any]', value))}]"
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            inner = ", ".join(
                f"{dotted((name,))} = {_shown(part, (*path, name))}"
                for name, part in pairs
            )
            if inner:
                return f"{{ {inner} }}"
            return "{}"
        case _:
            return str(value)
