"""Describes the layers of the configuration in the format of Codex, without credentials."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from typing import Any, Final, cast

from codex_py.config.check import KeyPath, leaves, lookup
from codex_py.config.config import Config
from codex_py.config.files import parse_toml
from codex_py.config.hidden import hidden
from codex_py.config.layers import Layer, merge
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.approval import GranularPolicy

_KEYS: Final = (
    "model",
    "review_model",
    "model_context_window",
    "model_auto_compact_token_limit",
    "model_auto_compact_token_limit_scope",
    "model_provider",
    "approval_policy",
    "approvals_reviewer",
    "sandbox_mode",
    "sandbox_workspace_write",
    "forced_chatgpt_workspace_id",
    "forced_login_method",
    "web_search",
    "client_search_provider",
    "tools",
    "instructions",
    "developer_instructions",
    "compact_prompt",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_verbosity",
    "service_tier",
    "analytics",
    "apps",
    "browser_use",
    "computer_use",
    "desktop",
)
"""The keys that Codex names in its answer even if they are not set."""
_SANDBOX: Final[Mapping[str, Any]] = {
    "writable_roots": [],
    "network_access": False,
    "exclude_tmpdir_env_var": False,
    "exclude_slash_tmp": False,
}
"""The defaults of `sandbox_workspace_write`, which has all of its keys in the protocol."""
REVIEWERS: Final = ("user", "auto_review", "guardian_subagent")
"""The reviewers of approvals that the protocol knows."""
_MAX_ORIGINS: Final = 20_000
"""The number of values whose origin is told. A file can have more values than an answer may hold."""


def shown_layers(config: Config) -> list[Layer]:
    """Return the layers that the protocol knows, the strongest first.

    What the administrator requires is one layer. The user's file and the system's file are layers
    even if they do not exist. The servers of plugins are left out, as in Codex.
    """
    layers: list[Layer] = []
    required: list[Layer] = []
    for layer in config.layers.layers:
        if layer.name == "requirements":
            required.append(layer)
        elif layer.name != "plugin":
            layers.append(layer)
    if required:
        file = config.requirements.file
        layers.insert(0, replace(file, values=merge(required)))
    names = [layer.name for layer in layers]
    if "system" not in names:
        layers.append(Layer("system", {}, config.layers.system / "config.toml"))
    if "user" not in names:
        place = len(layers) - 1
        layers.insert(place, Layer("user", {}, config.home / "config.toml"))
    return layers


def effective(config: Config) -> Fields:
    """Return the settings that all layers make together."""
    found: dict[str, Any] = dict.fromkeys(_KEYS) | hidden(merge(shown_layers(config)))
    # These have more values here than in the protocol.
    found["approval_policy"] = _policy(config)
    if found["approvals_reviewer"] not in REVIEWERS:
        found["approvals_reviewer"] = None
    if found["sandbox_workspace_write"] is not None:
        found["sandbox_workspace_write"] = {
            **_SANDBOX,
            **found["sandbox_workspace_write"],
        }
    tools = found["tools"]
    if tools is not None and not isinstance(tools.get("web_search"), Mapping):
        found["tools"] = {**tools, "web_search": None}
    return found


def _policy(config: Config) -> Any:
    """Return the configured approval policy in the form of the protocol."""
    match config.approval_policy:
        case None:
            return None
        case GranularPolicy() as policy:
            kinds = {
                "sandbox_approval": policy.sandbox_approval,
                "rules": policy.rules,
                "mcp_elicitations": policy.mcp_elicitations,
                "request_permissions": policy.request_permissions,
                "skill_approval": policy.skill_approval,
            }
            return {"granular": kinds}
        case policy:
            return policy_name(str(policy))


def policy_name(name: str) -> str:
    """Return the name of an approval policy in the protocol, which has no `on-failure` any more."""
    if name == "on-failure":
        return "on-request"
    return name


def described(layer: Layer) -> Fields:
    """Describe a layer with its settings."""
    return {**metadata(layer), "config": hidden(layer.values)}


def metadata(layer: Layer) -> Fields:
    """Return the name and the version of a layer."""
    return {"name": _source(layer), "version": _layer_version(layer)}


def _source(layer: Layer) -> Fields:
    """Return the name of a layer in the format of Codex."""
    path = layer.path
    if path is None:
        return {"type": "sessionFlags"}
    match layer.name:
        case "project":
            return {"type": "project", "dotCodexFolder": str(path.parent)}
        case "profile":
            profile = path.name.removesuffix(".config.toml")
            return {"type": "user", "file": str(path), "profile": profile}
        case "own" | "user":
            return {"type": "user", "file": str(path), "profile": None}
        case "managed":
            return {"type": "legacyManagedConfigTomlFromFile", "file": str(path)}
        case _:
            # The system's file, and what the administrator requires.
            return {"type": "system", "file": str(path)}


def override_message(layer: Layer) -> str:
    """Say which layer replaces a value of the user's, in the words of Codex."""
    match layer.name:
        case "managed":
            return f"Overridden by legacy managed_config.toml: {layer.path}"
        case "own" | "profile":
            return f"Overridden by user config: {layer.path}"
        case "system":
            return f"Overridden by managed config (system): {layer.path}"
        case "requirements":
            return f"Overridden by requirements: {layer.path}"
        case _:
            return "Overridden by session flags"


def version(values: Mapping[str, Any]) -> str:
    """Return the version of a file with these values, as Codex computes it."""
    text = json.dumps(
        values,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        default=str,
    )
    return "sha256:" + sha256(text.encode(errors="replace")).hexdigest()


def _layer_version(layer: Layer) -> str:
    # The values of a layer are not those of its file: their paths are absolute, for instance.
    if layer.path is not None and layer.text:
        return version(parse_toml(layer.text, layer.path))
    return version(layer.values)


def origins(layers: Sequence[Layer]) -> Fields:
    """Return the layer of each value: a dotted name, as Codex writes it, and metadata.

    The parts of an array have numbers as their names. The name of a part is not quoted.
    """
    about = [metadata(layer) for layer in layers]
    found: dict[str, Any] = {}
    for name, number in islice(_origins(layers), _MAX_ORIGINS):
        found[name] = about[number]
    return found


def _origins(layers: Sequence[Layer]) -> Iterator[tuple[str, int]]:
    """Yield the dotted name of each value, and the number of its layer."""
    merged = merge(layers)
    for leaf in leaves(merged, ()):
        for number, layer in enumerate(layers):
            if layer.sets(leaf):
                for path in _parts(lookup(merged, leaf), leaf):
                    yield ".".join(path), number
                break


def setting_layer(layers: Sequence[Layer], key: KeyPath) -> Layer | None:
    """Return the strongest layer that sets a key; None if there is none."""
    return next((layer for layer in layers if layer.sets(key)), None)


def _parts(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """Yield the paths of all values in a value. Empty arrays and tables have none."""
    match value:
        case dict():
            for name, part in cast("dict[str, Any]", value).items():
                yield from _parts(part, (*path, name))
        case list():
            for number, part in enumerate(cast("list[Any]", value)):
                yield from _parts(part, (*path, str(number)))
        case _:
            yield path
