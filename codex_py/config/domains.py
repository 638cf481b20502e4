"""Reads the domain list of a session.

The settings are `features.network_proxy` and `permissions.NAME.network`, as in Codex 0.169, and
`protection.allow_domains`. Two things differ from Codex: a list of the chosen profile holds even if
`features.network_proxy` is not set, and the port of a pattern counts.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from codex_py.config.check import KeyPath, lookup
from codex_py.config.layers import Layers, merge
from codex_py.config.permission_profiles import profile_chain
from codex_py.errors import ConfigError
from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.hosts import pattern

_FEATURE: Final = ("features", "network_proxy")
OPENED: Final = ("protection", "allow_domains")
_UNENFORCED: Final = {"permissions.network", "features.network_proxy"}


def domain_rules(layers: Layers, accepted: set[str]) -> DomainRules | None:
    """The hosts that commands with network access may reach; None: all hosts.

    Args:
        accepted: the names of `allow_unenforced`; see `accepted_lacks`.

    Raises:
        ConfigError: a pattern has a mistake.
    """
    others = tuple(each for each in layers.layers if each.name != "project")
    if others == layers.layers:
        return _rules(layers, accepted)
    # A project can neither add a host to the user's list nor switch the list off.
    users = _rules(replace(layers, layers=others), accepted)
    found = _rules(layers, accepted)
    if users is None:
        return found
    if found is None:
        return users
    is_limited = users.is_limited or found.is_limited
    return replace(users.plus(deny=found.deny), is_limited=is_limited)


def _rules(layers: Layers, accepted: set[str]) -> DomainRules | None:
    """The rules of these layers, with all that a project sets; None: all hosts."""
    networks = _networks(layers)
    domains: dict[str, str] = {}
    merged: dict[str, Any] = {}
    for key, network in networks.items():
        merged |= network
        for text, access in network.get("domains", {}).items():
            domains[parsed(text, (*key, "domains", text))] = access
    opened = _opened(layers)
    has_list = _FEATURE in networks or "domains" in merged
    if not has_list and not opened:
        return None
    allowed = [each for each, access in domains.items() if access == "allow"]
    denied = [each for each, access in domains.items() if access == "deny"]
    return DomainRules(
        (*allowed, *opened),
        tuple(denied),
        opened,
        is_limited=merged.get("mode") == "limited",
        allows_local=merged.get("allow_local_binding") is True,
        may_be_unenforced=not _UNENFORCED.isdisjoint(accepted),
    )


def _networks(layers: Layers) -> dict[KeyPath, Mapping[str, Any]]:
    """The tables with domain lists, the weakest first, by their keys.

    The table of the feature is there only if the feature is on. A project cannot switch it on.
    """
    networks: dict[KeyPath, Mapping[str, Any]] = {}
    for name, profile in reversed(profile_chain(layers).items()):
        networks["permissions", name, "network"] = profile.get("network", {})
    others = [each for each in layers.layers if each.name != "project"]
    feature: Any = lookup(merge(others), _FEATURE)
    if feature is True:
        networks[_FEATURE] = {}
    elif isinstance(feature, dict):
        table = cast("dict[str, Any]", feature)
        # A table without `enabled` switches the feature on, unless it is empty.
        if table.get("enabled", bool(table)) is True:
            networks[_FEATURE] = table
    return networks


def _opened(layers: Layers) -> tuple[str, ...]:
    """The hosts that `protection.allow_domains` opens in every sandbox mode; the layers add up."""
    opened: dict[str, None] = {}
    for layer in layers.layers:
        patterns = layer.settings.protection.allow_domains or ()
        for number, text in enumerate(patterns):
            opened[parsed(text, (*OPENED, str(number)))] = None
    return tuple(opened)


def parsed(text: str, key: KeyPath) -> str:
    """Normalize a pattern, see `protocol.hosts.pattern`. Raises a `ConfigError` for a mistake."""
    try:
        return pattern(text)
    except ValueError as error:
        raise ConfigError(str(error), key=key) from error
