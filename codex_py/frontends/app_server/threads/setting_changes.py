"""Finds what a client changes in the settings of an open thread.

The files of the configuration may have changed since the session was opened. Their new values must not
reach the thread because the client changes another setting.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from codex_py.app.settings import configured_choices
from codex_py.config.config import Config
from codex_py.protocol.approval import SandboxMode
from codex_py.protocol.frozen import frozen
from codex_py.protocol.settings import Choices

_CHOICES: Final[Mapping[str, frozenset[str]]] = {
    "model": frozenset({"model"}),
    "reasoning_effort": frozenset({"model_reasoning_effort"}),
    "reasoning_summary": frozenset({"model_reasoning_summary"}),
    "approval_policy": frozenset({"approval_policy"}),
    "sandbox_policy": frozenset({"sandbox_mode", "sandbox_workspace_write"}),
}
"""The fields of `Choices`, with the keys of `config.toml` that set each."""


@frozen
class SettingsChange:
    """A change of the settings of a thread."""

    table: dict[str, Any]
    """All settings that the client has asked for so far, as in `config.toml`."""
    config: Config
    """The configuration with these settings."""
    choices: Choices | None = None
    """The choices for the next turns; None for those of the configuration."""
    needs_opening: bool = True
    """The session has to be opened anew."""


def change_in_folder(
    own: Config,
    current: Choices,
    before: Config,
    change: SettingsChange,
    asked: Mapping[str, Any],
    add_dirs: Sequence[Path],
) -> SettingsChange | None:
    """Return the change with its choices, for a thread that stays in its folder; None for no change.

    Args:
        own: the configuration with which the session was opened.
        current: the choices of the session.
        before: the configuration of now, without the change.
        asked: the settings that have other values than the client has asked for before.
        add_dirs: writable folders besides those of the configuration.
    """
    after = change.config
    choices = _next_choices(
        current,
        configured_choices(before, add_dirs),
        configured_choices(after, add_dirs),
        asked,
    )
    needs_opening = _needs_opening(own, before, after, asked)
    is_same = replace(after, layers=before.layers) == before
    if is_same and choices == current and not needs_opening:
        return None
    return replace(change, choices=choices, needs_opening=needs_opening)


def change_of_folder(
    current: Choices,
    before: Config,
    change: SettingsChange,
    in_mode: Callable[[SandboxMode], Config],
    asked: Mapping[str, Any],
    add_dirs: Sequence[Path],
) -> SettingsChange:
    """Return the change with its choices, for a thread that goes to another folder.

    What the other folder sets in another way than the folder before counts, too.

    Args:
        in_mode: returns the configuration of the other folder in a sandbox mode.

    Other arguments are those of `change_in_folder`.
    """
    after = configured_choices(change.config, add_dirs)
    earlier = configured_choices(before, add_dirs)
    choices = _next_choices(current, earlier, after, asked)
    # The writable roots are those of the other folder.
    policy = after.sandbox_policy
    mode = current.sandbox_policy.mode
    is_asked = bool(_CHOICES["sandbox_policy"] & asked.keys())
    if policy.mode == earlier.sandbox_policy.mode != mode and not is_asked:
        # Only an edited file has another mode.
        policy = in_mode(mode).sandbox_policy(add_dirs)
    return replace(change, choices=replace(choices, sandbox_policy=policy))


def _next_choices(
    current: Choices,
    before: Choices,
    after: Choices,
    asked: Mapping[str, Any],
) -> Choices:
    """The current choices, with those that the client asks for, or changes by other settings."""
    changed: dict[str, Any] = {}
    for name, keys in _CHOICES.items():
        value = getattr(after, name)
        if keys & asked.keys() or value != getattr(before, name):
            changed[name] = value
    return replace(current, **changed)


def _needs_opening(
    own: Config,
    before: Config,
    after: Config,
    asked: Mapping[str, Any],
) -> bool:
    """True if the client changes a setting that cannot change while a session is open."""
    fixed = _fixed_settings(after)
    for name, value in fixed.items():
        is_asked = name in asked and value != _fixed_settings(own)[name]
        if is_asked or value != _fixed_settings(before)[name]:
            return True
    return False


def _fixed_settings(config: Config) -> dict[str, Any]:
    """The settings that cannot change while a session is open, by their keys."""
    settings = config.settings
    return {
        "approvals_reviewer": settings.approvals_reviewer or "user",
        "service_tier": settings.service_tier,
    }
