"""Finds protective settings that this version does not enforce. Each stops the start until it is accepted.

A user who sets one relies on it. When a version enforces one, its row in `_PROTECTIONS` is removed.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from codex_py.config.check import KeyPath, lookup
from codex_py.config.files import read_text
from codex_py.config.layers import Layers
from codex_py.config.overrides import parse_key
from codex_py.config.permissions import selected_profiles
from codex_py.config.project_trust import Trusted
from codex_py.config.schema import DEFAULTS
from codex_py.errors import ConfigError
from codex_py.protocol.frozen import frozen

ACCEPT_KEY: Final = "allow_unenforced"
"""The setting that accepts protections by name. A project cannot set it."""


@frozen
class _Protection:
    name: str
    """What `allow_unenforced` calls it."""
    lack: str
    """The missing protection, as a clause without a full stop."""
    places: "Callable[[Layers, Mapping[str, Any]], Iterator[str]]"
    """The places that set it, as files with lines. Gets the layers and their merged values."""


def unenforced(layers: Layers) -> tuple[str, ...]:
    """A sentence with file and line for each protection that is set and not accepted.

    Raises:
        ConfigError: a file of hooks cannot be read.
    """
    values = layers.merged()
    # All layers count, because merging would replace one list by another.
    accepted = {name for layer in layers.layers for name in layer.values.get(ACCEPT_KEY, ())}
    found: list[str] = []
    for protection in _PROTECTIONS:
        if protection.name in accepted:
            continue
        place = next(protection.places(layers, values), None)
        if place is not None:
            found.append(
                f"{place}: {protection.lack}; to start all the same,"
                f" pass `--allow-unenforced {protection.name}`."
            )
    return tuple(found)


def _hooks(layers: Layers, values: Mapping[str, Any]) -> Iterator[str]:
    if values.get("features", {}).get("hooks") is False:
        return
    # Hooks of all layers run; merging would hide some.
    for layer in layers.layers:
        for event, groups in layer.values.get("hooks", {}).items():
            if isinstance(groups, list) and groups:
                yield layer.where(("hooks", event))
    trust = layers.project_trust
    texts = dict(trust.files) if isinstance(trust, Trusted) else {}
    for folder in (layers.home, layers.system):
        if (text := read_text(folder / "hooks.json")) is not None:
            texts[folder / "hooks.json"] = text
    yield from (str(path) for path, text in texts.items() if _has_hooks(path, text))


def _has_hooks(path: Path, text: str) -> bool:
    if path.name != "hooks.json":
        return False
    try:
        match json.loads(text):
            case {"hooks": {**events}}:
                return any(events.values())
            case _:
                return False
    except (ValueError, RecursionError):
        raise ConfigError(f"{path} is not valid JSON") from None


def _denied_paths(layers: Layers, _values: Mapping[str, Any]) -> Iterator[str]:
    for key, profile in selected_profiles(layers):
        for path in _denials(profile.get("filesystem", {}), (*key, "filesystem")):
            yield layers.where(path)


def _denials(entries: Any, key: KeyPath) -> Iterator[KeyPath]:
    if isinstance(entries, dict):
        for name, access in cast("dict[str, Any]", entries).items():
            yield from _denials(access, (*key, name))
    elif entries in {"deny", "none"}:
        yield key


def _profile_domains(layers: Layers, _values: Mapping[str, Any]) -> Iterator[str]:
    for key, profile in selected_profiles(layers):
        network = profile.get("network", {})
        if network.get("domains") and network.get("enabled") is not False:
            yield layers.where((*key, "network", "domains"))


def _proxied_domains(layers: Layers, values: Mapping[str, Any]) -> Iterator[str]:
    open_network = values.get("sandbox_mode") == "danger-full-access" or values.get(
        "sandbox_workspace_write", {}
    ).get("network_access")
    if open_network:
        yield from _feature("network_proxy")(layers, values)


def _feature(name: str) -> "Callable[[Layers, Mapping[str, Any]], Iterator[str]]":
    def places(layers: Layers, values: Mapping[str, Any]) -> Iterator[str]:
        match values.get("features", {}).get(name, False):
            case False | {"enabled": False}:
                pass
            case _:
                yield layers.where(("features", name))

    return places


def _chatgpt_login(layers: Layers, values: Mapping[str, Any]) -> Iterator[str]:
    provider = values.get("model_provider", DEFAULTS["model_provider"])
    own = values.get("model_providers", {}).get(provider, {})
    if provider == DEFAULTS["model_provider"] or own.get("requires_openai_auth"):
        yield from _value("forced_login_method", "chatgpt")(layers, values)


def _value(key: str, *asking: Any) -> "Callable[[Layers, Mapping[str, Any]], Iterator[str]]":
    """The place of a key that is set to one of these values, or to any non-empty value if none is given."""
    path = parse_key(key)

    def places(layers: Layers, values: Mapping[str, Any]) -> Iterator[str]:
        value = lookup(values, path)
        if value in asking if asking else value:
            yield layers.where(path)

    return places


def _requirements(layers: Layers, _values: Mapping[str, Any]) -> Iterator[str]:
    path = layers.system / "requirements.toml"
    if read_text(path) is not None:
        yield str(path)


_PROTECTIONS: Final = (
    _Protection("requirements", "an administrator's requirements are not enforced", _requirements),
    _Protection("hooks", "hooks are not run", _hooks),
    _Protection(
        "permissions.filesystem",
        "files that a permission profile denies can be read",
        _denied_paths,
    ),
    _Protection(
        "permissions.network",
        "the domains of a permission profile are not enforced",
        _profile_domains,
    ),
    _Protection(
        "features.network_proxy",
        "the network is open, and its domains are not restricted",
        _proxied_domains,
    ),
    _Protection(
        "features.credential_masking",
        "credentials are not masked",
        _feature("credential_masking"),
    ),
    _Protection(
        "features.rollout_budget", "the token budget is not enforced", _feature("rollout_budget")
    ),
    _Protection("budget", "budgets are not enforced", _value("budget")),
    _Protection(
        "forced_login_method", "only API keys can be used, and no ChatGPT login", _chatgpt_login
    ),
    _Protection(
        "approvals_reviewer",
        "there is no automatic reviewer of approvals",
        _value("approvals_reviewer", "auto_review", "guardian_subagent"),
    ),
    _Protection(
        "auto_review.policy",
        "there is no automatic reviewer that could follow a policy",
        _value("auto_review.policy"),
    ),
    _Protection(
        "shell_environment_policy.experimental_use_profile",
        "commands are not given the environment of the shell's profile",
        _value("shell_environment_policy.experimental_use_profile", True),
    ),
)

PROTECTION_NAMES: Final = tuple(protection.name for protection in _PROTECTIONS)
