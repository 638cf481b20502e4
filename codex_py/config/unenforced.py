"""Finds protective settings that this version does not enforce.

A user who sets one relies on it, so each stops the start until the user accepts that it is missing.
When a version enforces one, its row in `_LACKS` and its lines in `_protections` are removed.
"""

from collections.abc import Iterator
from typing import Final

from codex_py.config.check import KeyPath, lookup
from codex_py.config.layers import Layers
from codex_py.config.permission_profiles import chosen_permissions

_LACKS: Final = {
    "permissions.filesystem": "files that a permission profile does not name can be read",
    "features.credential_masking": "credentials are not masked",
    "shell_environment_policy.experimental_use_profile": (
        "commands are not given the environment of the shell's profile"
    ),
}
"""The effect of each missing protection, as a clause, by its name in `allow_unenforced`."""
PROTECTION_NAMES: Final = (*_LACKS, "permissions.network", "features.network_proxy")
"""The names in `_LACKS`, and those of protections that only some backends of the sandbox enforce."""


def accepted_lacks(layers: Layers) -> set[str]:
    """The names in the `allow_unenforced` of all layers; a project cannot set it."""
    # Merging would replace one list by another.
    accepted: set[str] = set()
    for layer in layers.layers:
        accepted.update(layer.values.get("allow_unenforced", ()))
    return accepted


def unenforced(layers: Layers) -> tuple[str, ...]:
    """One sentence, with file and line, for each missing protection that is set and not accepted."""
    accepted = accepted_lacks(layers)
    places: dict[str, str] = {}
    for name, key in _protections(layers):
        places.setdefault(name, layers.where(key))
    return tuple(
        f"{places[name]}: {lack}; to start all the same, pass `--allow-unenforced {name}`."
        for name, lack in _LACKS.items()
        if name in places and name not in accepted
    )


def _protections(layers: Layers) -> Iterator[tuple[str, KeyPath]]:
    """Yield the name of each protection that is set, with its setting."""
    values = layers.merged()
    _, chosen = chosen_permissions(layers)
    if chosen is not None and not chosen.reads_all:
        yield "permissions.filesystem", ("permissions", chosen.name)
    names = (
        "features.credential_masking",
        "shell_environment_policy.experimental_use_profile",
    )
    for name in names:
        key = tuple(name.split("."))
        match lookup(values, key):
            case None | False | {"enabled": False}:
                pass
            case _:
                yield name, key
