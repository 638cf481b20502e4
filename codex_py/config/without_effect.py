"""Warns, in one sentence, of settings that have no effect in this version.

Settings that protect are not among them, see `config.unenforced`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from codex_py.config.check import KeyPath, dotted
from codex_py.config.features import FEATURES
from codex_py.config.schema import UNUSED

_FEATURES_WITH_EFFECT: Final = {
    *("shell_tool", "view_image", "unified_exec", "unified_exec_tty", "steer", "fast_mode"),
    # These protect.
    *("hooks", "codex_hooks", "network_proxy", "credential_masking", "rollout_budget"),
}


def without_effect(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The warning, or nothing."""
    names = [
        dotted(key)
        for pattern, harmless in UNUSED.items()
        for key, value in _matches(values, pattern.split("."))
        if value not in harmless
    ]
    names += [
        f"features.{name}"
        for name, value in values.get("features", {}).items()
        if value is not False and name in FEATURES - _FEATURES_WITH_EFFECT
    ]
    if not names:
        return ()
    these = "This setting has" if len(names) == 1 else "These settings have"
    return (f"{these} no effect in this version: {', '.join(sorted(names))}.",)


def _matches(value: Any, pattern: list[str], key: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    if not pattern:
        yield key, value
    elif isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        first, *rest = pattern
        for name in table if first == "*" else table.keys() & {first}:
            yield from _matches(table[name], rest, (*key, name))
