"""Chooses between `sandbox_mode` and `default_permissions`."""

from collections.abc import Mapping
from typing import Any, Final

from codex_py.config.check import KeyPath
from codex_py.config.layers import Layers
from codex_py.errors import ConfigError
from codex_py.protocol.approval import SandboxMode

_BUILT_IN: Final[dict[str, SandboxMode]] = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    ":danger-full-access": "danger-full-access",
}
"""The built-in values of `default_permissions`, which generalise the sandbox modes."""


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
    profile_chain(layers)
    # Stricter than the profile, which may allow writing. What it denies for reading stops the start.
    warning = f"Permission profile {name!r} is not supported; the sandbox is read-only instead."
    return "read-only", (warning,)


def profile_chain(layers: Layers) -> dict[str, Mapping[str, Any]]:
    """The table of the chosen profile and of each that it extends, by name.

    Raises:
        ConfigError: see `chosen_sandbox_mode`.
    """
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
