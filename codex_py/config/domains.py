"""The domain list of a session.

Its keys are `features.network_proxy` and `permissions.NAME.network`, as in Codex 0.169, and
`protection.allow_domains`. Two things differ from Codex: a list of the chosen profile holds even if
`features.network_proxy` is not set, and the port of a pattern counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from codex_py.config.check import KeyPath, lookup
from codex_py.config.layers import Layers
from codex_py.config.permission_profiles import profile_chain
from codex_py.errors import ConfigError
from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.hosts import pattern

_FEATURE: Final = ("features", "network_proxy")
OPENED: Final = ("protection", "allow_domains")
_UNENFORCED: Final = {"permissions.network", "features.network_proxy"}


def domain_rules(layers: Layers, accepted: set[str]) -> DomainRules | None:
    """The hosts that commands with network access may reach; None: all hosts.

    `accepted`: see `accepted_lacks`.

    Raises:
        ConfigError: a pattern has a mistake.
    """
    own = replace(
        layers, layers=tuple(each for each in layers.layers if each.name != "project")
    )
    users = None if own == layers else domain_rules(own, accepted)
    feature: Any = lookup(own.merged(), _FEATURE)
    settings: Mapping[str, Any] = (
        cast("dict[str, Any]", feature) if type(feature) is dict else {}
    )
    is_on = feature is True or settings.get("enabled", bool(settings)) is True
    networks: list[tuple[KeyPath, Mapping[str, Any]]] = [
        (("permissions", name, "network"), profile.get("network", {}))
        for name, profile in reversed(profile_chain(layers).items())
    ]
    if is_on:
        networks.append((_FEATURE, settings))
    domains: dict[str, str] = {}
    merged: dict[str, Any] = {}
    for key, network in networks:
        merged |= network
        for text, access in network.get("domains", {}).items():
            domains[parsed(text, (*key, "domains", text))] = access
    opened = _opened(layers)
    if not (is_on or opened or any("domains" in network for _, network in networks)):
        return users
    found = DomainRules(
        (*(each for each, access in domains.items() if access == "allow"), *opened),
        tuple(each for each, access in domains.items() if access == "deny"),
        opened,
        is_limited=merged.get("mode") == "limited",
        allows_local=merged.get("allow_local_binding") is True,
        may_be_unenforced=not _UNENFORCED.isdisjoint(accepted),
    )
    if users is None:
        return found
    # A project can neither add a host to the user's list nor switch the list off.
    return replace(
        users.plus(deny=found.deny), is_limited=users.is_limited or found.is_limited
    )


def _opened(layers: Layers) -> tuple[str, ...]:
    """The hosts that `protection.allow_domains` opens in every sandbox mode; the layers add up."""

    def patterns() -> Iterator[str]:
        for layer in layers.layers:
            for number, text in enumerate(
                layer.values.get("protection", {}).get(OPENED[1], ())
            ):
                yield parsed(text, (*OPENED, str(number)))

    return tuple(dict.fromkeys(patterns()))


def parsed(text: str, key: KeyPath) -> str:
    """Normalize a pattern, see `protocol.hosts.pattern`. Raises a `ConfigError` for a mistake."""
    try:
        return pattern(text)
    except ValueError as error:
        raise ConfigError(str(error), key=key) from error
