"""Applies a client's patch of a provider to the text of the user's `config.toml`.

Names, limits and the words of errors are those of Codex 0.171.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from codex_py.app.providers.summaries import KeyPlace
from codex_py.config.check import KeyPath, lookup
from codex_py.config.edit import changed_text
from codex_py.config.files import parse_toml
from codex_py.errors import ConfigError
from codex_py.frontends.app_server.configuration.config_edits import (
    INVALID,
    invalid,
    write_error,
)
from codex_py.frontends.app_server.configuration.config_params import (
    REMOVED,
    ProviderPatch,
)
from codex_py.protocol.addresses import shown_url, url_problem
from codex_py.protocol.json_fields import as_object
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS

_NOT_FOUND: Final = "configPathNotFound"
_MAX_NAME: Final = 200
"""The length of the name of a provider, in characters."""


def patched(
    text: str,
    path: Path,
    patch: ProviderPatch,
    key_place: KeyPlace | None,
) -> tuple[str, str]:
    """Return the text of the file with a new or changed provider, and the id of the provider.

    Args:
        key_place: the place of the provider's key before the patch; None if there is none yet.

    Raises:
        RpcError: the patch is not possible.
    """
    tables = as_object(lookup(parse_toml(text, path), ("model_providers",)))
    _check(patch)
    changes: dict[str, Any] = {
        "base_url": patch.base_url,
        "env_key": patch.env_key,
        "name": patch.name,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    name = patch.provider_id
    if name is None:
        _require_whole(patch)
        name = _new_id(patch.name or "", {*BUILT_IN_PROVIDERS, *tables})
        table = {key: part for key, part in changes.items() if part is not REMOVED}
        table["wire_api"] = "responses"
        return _changed(text, path, (name,), table), name
    if name in BUILT_IN_PROVIDERS:
        problem = "A custom provider or gateway cannot use a built-in provider ID."
        raise write_error(INVALID, problem)
    if name not in tables:
        raise write_error(_NOT_FOUND, "Unknown provider ID.")
    if key_place == "elsewhere" and patch.env_key is not None:
        problem = "Authentication is configured externally. Omit envKey to preserve it."
        raise write_error(INVALID, problem)
    for key, value in changes.items():
        if value is REMOVED:
            value = None
        text = _changed(text, path, (name, key), value)
    return text, name


def _changed(text: str, path: Path, key: KeyPath, value: Any) -> str:
    try:
        return changed_text(text, path, {("model_providers", *key): value})
    except ConfigError as error:
        raise invalid(error) from error


def _check(patch: ProviderPatch) -> None:
    """Raise an `RpcError` for a value that no provider can have."""
    name = patch.name
    if name is not None and not (name.strip() and len(name) <= _MAX_NAME):
        raise write_error(INVALID, "Enter a provider name.")
    url = patch.base_url
    if url not in (None, REMOVED):
        is_usable = isinstance(url, str) and url_problem(url) is None
        if not is_usable or shown_url(url) != url:
            problem = (
                "Enter an HTTP(S) base URL without credentials, a query, or a fragment."
            )
            raise write_error(INVALID, problem)
    variable = patch.env_key
    if variable not in (None, REMOVED):
        is_name = isinstance(variable, str) and re.fullmatch(
            r"[A-Za-z_]\w*", variable, re.ASCII
        )
        if not is_name:
            problem = "Invalid API key environment variable name."
            raise write_error(INVALID, problem)


def _require_whole(patch: ProviderPatch) -> None:
    """Raise an `RpcError` if the patch does not make a new provider."""
    if patch.name is None:
        raise write_error(INVALID, "Enter a provider name.")
    if patch.base_url in (None, REMOVED):
        problem = "A base URL is required to create a custom provider."
        raise write_error(INVALID, problem)


def _new_id(name: str, taken: Collection[str]) -> str:
    """Make an id of the letters and digits of a name."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "provider"
    found = plain
    number = 1
    while found in taken:
        number += 1
        found = f"{plain}-{number}"
    return found
