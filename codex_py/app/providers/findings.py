"""Keeps the findings of `codex-py providers test`, and fits a provider to them. LIGHT.

One file for all providers: `$CODEX_HOME/codex-py/providers.json`.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codex_py.config.files import as_config_error
from codex_py.filesystem.private import make_private, open_emptied
from codex_py.filesystem.reading import read_whole
from codex_py.model.providers import Provider
from codex_py.protocol.json_fields import as_object, json_or, object_field

_MAX_BYTES = 1 << 20
"""The limit for the file of findings; a larger one counts as damaged."""


def fitted(
    provider: Provider,
    model: str,
    home: Path,
    own: Mapping[str, Any],
) -> Provider:
    """Return the provider with the profile that suits the findings of a test with this model.

    A model that could not call tools gets text tools, and a `warning` says so. The user's own
    settings of the profile, which are in `own`, stay.
    """
    of_provider = object_field(_read(home), provider.id)
    found = object_field(of_provider, model)
    tested_server = (found.get("base_url"), found.get("wire_api"))
    if tested_server != (provider.base_url, provider.wire_api):
        return provider
    profile = provider.profile
    works = object_field(found, "works")
    warning = None
    if works.get("freeform tools") is False and "function_tools_only" not in own:
        profile = replace(profile, function_tools_only=True)
    could_not_call = works.get("tools") is False
    is_configured = "tools" in own
    if could_not_call and profile.tools == "native" and not is_configured:
        profile = replace(profile, tools="text")
        warning = (
            f"{model!r} could not call tools when `codex-py providers test {provider.id}` tried it"
            f" ({found.get('date')}), so its calls are written as text."
        )
    return replace(provider, profile=profile, warning=warning)


def remember(
    provider: Provider,
    model: str,
    home: Path,
    works: Mapping[str, bool],
    date: str,
) -> None:
    """Write down the features that work.

    Args:
        works: True or False for each feature that was tested.
        date: the date of the test.

    Raises:
        ConfigError: the file cannot be written.
    """
    known = _read(home)
    found = {
        "base_url": provider.base_url,
        "wire_api": provider.wire_api,
        "date": date,
        "works": dict(works),
    }
    models = {**object_field(known, provider.id), model: found}
    known = {**known, provider.id: models}
    path = findings_path(home)
    with as_config_error(path, "written"):
        make_private(path.parent)
        with os.fdopen(open_emptied(path), "w", encoding="utf-8") as file:
            json.dump(known, file, indent=1)


def _read(home: Path) -> dict[str, Any]:
    """Read the findings.

    A file that is missing or damaged has none: the next test writes it anew.
    """
    try:
        return as_object(json_or(read_whole(findings_path(home), _MAX_BYTES), None))
    except OSError:
        return {}


def findings_path(home: Path) -> Path:
    return home / "codex-py" / "providers.json"
