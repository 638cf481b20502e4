"""Tells cheaply if a session can have hooks at all. LIGHT."""

import os
from typing import Final

from codex_py.config.config import Config
from codex_py.config.project_trust import Trusted

HOOKS_FILE: Final = "hooks.json"


def has_hooks(config: Config) -> bool:
    """False if no hook can be configured here. No file is read."""
    if config.requirements.file.values.get("hooks"):
        return True
    if not hooks_enabled(config):
        return False
    layers = config.layers
    for layer in layers.layers:
        if layer.values.get("hooks", {}).keys() - {"state"}:
            return True
    if any(plugin.hooks for plugin in config.plugins):
        return True
    for folder in (layers.home, layers.system):
        if os.path.lexists(folder / HOOKS_FILE):
            return True
    trust = config.project_trust
    if isinstance(trust, Trusted):
        return any(path.name == HOOKS_FILE for path in trust.files)
    return False


def hooks_enabled(config: Config) -> bool:
    """False if the user has turned hooks off. The administrator's hooks run all the same."""
    features = config.features
    return features.hooks is not False and features.codex_hooks is not False
