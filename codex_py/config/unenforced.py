"""Finds protective settings that this version does not enforce. Each stops the start until it is accepted.

Chooses between `sandbox_mode` and `default_permissions` too, whose profiles are read for what they deny alone.

A user who sets one relies on it. When a version enforces one, its row in `_LACKS` and its place are removed.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from codex_py.config.check import KeyPath, lookup
from codex_py.config.files import read_text
from codex_py.config.layers import Layers
from codex_py.config.schema import DEFAULTS
from codex_py.errors import ConfigError
from codex_py.protocol.approval import SandboxMode

_BUILT_IN: Final[dict[str, SandboxMode]] = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    ":danger-full-access": "danger-full-access",
}
"""The built-in values of `default_permissions`, which generalise the sandbox modes."""

_LACKS: Final = {
    "requirements": "an administrator's requirements are not enforced",
    "permissions.filesystem": "files that a permission profile denies can be read",
    "permissions.network": "the domains of a permission profile are not enforced",
    "features.network_proxy": "the network is open, and its domains are not restricted",
    "features.credential_masking": "credentials are not masked",
    "forced_login_method": "only API keys can be used, and no ChatGPT login",
    "shell_environment_policy.experimental_use_profile": (
        "commands are not given the environment of the shell's profile"
    ),
}
"""The missing protection, as a clause without a full stop, by the name that `allow_unenforced` accepts."""
PROTECTION_NAMES: Final = tuple(_LACKS)


def unenforced(layers: Layers) -> tuple[str, ...]:
    """A sentence with file and line for each protection that is set and not accepted."""
    # All layers count, because merging would replace one list by another. A project cannot set it.
    accepted = {n for layer in layers.layers for n in layer.values.get("allow_unenforced", ())}
    places: dict[str, str] = {}
    for name, key in _protections(layers):
        places.setdefault(name, layers.where(key))
    requirements = layers.system / "requirements.toml"
    if "requirements" not in accepted and read_text(requirements) is not None:
        places["requirements"] = str(requirements)
    return tuple(
        f"{places[name]}: {lack}; to start all the same, pass `--allow-unenforced {name}`."
        for name, lack in _LACKS.items()
        if name in places and name not in accepted
    )


def chosen_sandbox_mode(layers: Layers) -> tuple[SandboxMode | None, tuple[str, ...]]:
    """The sandbox mode, None if nothing sets one, and warnings.

    Raises:
        ConfigError: profiles are defined but none is chosen, or the chosen one or one that it extends is not
            defined, or it extends itself. Without the error, what the profile denies would be allowed.
    """
    values = layers.merged()
    mode = values.get("sandbox_mode")
    if (name := _chosen_profile(layers)) is None:
        if mode is None and values.get("permissions"):
            raise ConfigError(
                "`permissions` is defined, and `default_permissions` does not choose one"
            )
        return mode, ()
    if name in _BUILT_IN:
        return _BUILT_IN[name], ()
    _profile_chain(layers)
    # Stricter than the profile, which may allow writing. What it denies for reading stops the start.
    warning = f"Permission profile {name!r} is not supported; the sandbox is read-only instead."
    return "read-only", (warning,)


def _profile_chain(layers: Layers) -> dict[str, Mapping[str, Any]]:
    """The table of the chosen profile and of each that it extends, by name."""
    profiles = layers.merged().get("permissions", {})
    chain: dict[str, Mapping[str, Any]] = {}
    key: KeyPath = ("default_permissions",)
    name = _chosen_profile(layers)
    while name is not None and name not in _BUILT_IN:
        if name in chain or name not in profiles:
            fault = "extends itself" if name in chain else "is not defined"
            raise ConfigError(f"{layers.where(key)}: the permission profile {name!r} {fault}")
        chain[name] = profiles[name]
        key = ("permissions", name, "extends")
        name = chain[name].get("extends")
    return chain


def _chosen_profile(layers: Layers) -> str | None:
    # The strongest layer that sets either of the two decides; in one layer the profile wins, as in Codex 0.169.
    for layer in layers.layers:
        if "default_permissions" in layer.values:
            return layer.values["default_permissions"]
        if "sandbox_mode" in layer.values:
            return None
    return None


def _protections(layers: Layers) -> Iterator[tuple[str, KeyPath]]:
    """The name of each protection that is set, and the setting."""
    values = layers.merged()
    for name, profile in _profile_chain(layers).items():
        key = ("permissions", name)
        for denial in _denials(profile.get("filesystem", {}), (*key, "filesystem")):
            yield "permissions.filesystem", denial
        network = profile.get("network", {})
        if network.get("domains") and network.get("enabled") is not False:
            yield "permissions.network", (*key, "network", "domains")
    names = ["features.credential_masking", "shell_environment_policy.experimental_use_profile"]
    open_network = lookup(values, ("sandbox_workspace_write", "network_access"))
    if open_network or values.get("sandbox_mode") == "danger-full-access":
        names.append("features.network_proxy")
    provider = values.get("model_provider", DEFAULTS["model_provider"])
    own = lookup(values, ("model_providers", provider, "requires_openai_auth"))
    if values.get("forced_login_method") == "chatgpt" and (
        own or provider == DEFAULTS["model_provider"]
    ):
        names.append("forced_login_method")
    for name in names:
        match lookup(values, key := tuple(name.split("."))):
            case None | False | {"enabled": False}:
                pass
            case _:
                yield name, key


def _denials(entries: Any, key: KeyPath) -> Iterator[KeyPath]:
    if isinstance(entries, dict):
        for name, access in cast("dict[str, Any]", entries).items():
            yield from _denials(access, (*key, name))
    elif entries in {"deny", "none"}:
        yield key
