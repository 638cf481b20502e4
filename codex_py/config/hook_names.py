"""Finds unknown or misplaced names in hooks, which would disable or change a hook. LIGHT."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final

from codex_py.config.check import KeyPath, dotted
from codex_py.config.declared.names import HOOK_EVENTS
from codex_py.errors import nearest
from codex_py.protocol.frozen import frozen

_EVENTS: Final = (*HOOK_EVENTS, "state", "claude", "stop_rounds")
"""The names in the table of hooks."""
_CLAUDE_EVENTS: Final = (
    "PermissionDenied",
    "PostToolBatch",
    "PostToolUseFailure",
    "Setup",
    "UserPromptExpansion",
)
"""Events of Claude Code that resemble one of ours. Codex accepts them in its own files, which may be copies."""
_GROUP: Final = ("matcher", "hooks")
_HANDLER: Final = (
    "type",
    "command",
    "server",
    "tool",
    "input",
    "timeout",
    "async",
    "statusMessage",
    "additionalContextLimit",
)
_OF_WINDOWS: Final = frozenset({"commandWindows", "command_windows"})
"""Fields of Codex that have an effect on Windows only."""
CLAUDE_OPTIONS: Final = frozenset({"if", "args"})
"""Fields that narrow or change a hook of Claude Code."""
_OF_CLAUDE: Final = CLAUDE_OPTIONS | frozenset(
    {"once", "shell", "asyncRewake", "url", "headers", "prompt", "model"}
    | {"allowedEnvVars", "rewakeMessage", "rewakeSummary", "continueOnBlock"}
)
"""Fields of Claude Code's hooks that are not supported here."""
_REMARKS: Final = frozenset({"comment", "description", "id", "name"})
"""Fields for the user's own remarks."""
_SIGNS: Final = ("_", "$", "#", "/")
"""Further fields for remarks begin with one of these."""
_CHECKED: Final = ("command", "mcp_tool")
"""The types of handlers that can run. A handler of another type is left out with a warning."""
_MOST_UNKNOWN: Final = 100
"""The most unknown names that are reported. Finding the known name that one resembles takes some
0.3 ms, and finding its line takes time in proportion to the file's length."""


@frozen
class WrongName:
    key: KeyPath
    """The place in the table of hooks: the event, the group's number from 0, and so on."""
    text: str
    """A sentence on the effect of the mistake, with its full stop or question mark."""
    is_meant: bool
    """True if the name seems to mean a known one, so that actions its hook refuses may run."""


def wrong_names(
    events: Mapping[str, Any], *, left_out_with: Set[str] = frozenset()
) -> list[WrongName]:
    """Find the names in a table of hooks that are unknown or out of place.

    Args:
        events: the values of known events have the right types.
        left_out_with: a hook with one of these fields does not run, so its fields are not checked.

    Raises:
        ValueError: there are too many.
    """
    unknown = [name for name in events if name not in _EVENTS]
    if len(unknown) > _MOST_UNKNOWN:
        raise ValueError(f"it has {len(unknown)} names that are no hook event")
    found = [_unknown_event(name) for name in unknown]
    for event in HOOK_EVENTS:
        for number, group in enumerate(events.get(event, ())):
            for wrong in _in_group((event, str(number)), group, left_out_with):
                found.append(wrong)
                if len(found) > _MOST_UNKNOWN:
                    raise ValueError(
                        f"it has more than {_MOST_UNKNOWN} names that are unknown"
                    )
    return found


def _unknown_event(name: str) -> WrongName:
    if name in _CLAUDE_EVENTS:
        meant = None
    else:
        meant = _meant(name, _EVENTS)
    text = f"there is no hook event `{dotted([name])}`, so its hooks do not run"
    return WrongName((name,), text + _hint(meant), meant is not None)


def _in_group(
    place: KeyPath,
    group: Mapping[str, Any],
    left_out_with: Set[str],
) -> Iterator[WrongName]:
    if "hooks" not in group:
        yield _group_without_hooks(place, group)
        return
    yield from _unknown_fields(place, group, own=_GROUP, others=_HANDLER)
    for number, handler in enumerate(group["hooks"]):
        can_run = handler.get("type") in _CHECKED
        if can_run and not handler.keys() & left_out_with:
            inner = (*place, "hooks", str(number))
            yield from _unknown_fields(inner, handler, own=_HANDLER, others=_GROUP)


def _group_without_hooks(place: KeyPath, group: Mapping[str, Any]) -> WrongName:
    text = f"{_shown(place)} has no list `hooks`, so nothing of it runs"
    if "type" in group or "command" in group:
        hint = '; write `{"hooks": […]}` around its hook'
        return WrongName(place, text + hint + ".", is_meant=True)
    unknown = [name for name in group if name not in _GROUP]
    for name in unknown[:_MOST_UNKNOWN]:
        if _meant(name, _GROUP) == "hooks":
            text += f"; is `{dotted([name])}` meant to be `hooks`?"
            return WrongName(place, text, is_meant=True)
    return WrongName(place, text + ".", is_meant=True)


def _unknown_fields(
    place: KeyPath,
    table: Mapping[str, Any],
    *,
    own: Sequence[str],
    others: Sequence[str],
) -> Iterator[WrongName]:
    """Yield the fields of a group or handler that have no effect.

    Args:
        own: the fields that belong here.
        others: the fields that would have an effect in the other of the two places.
    """
    for name in table:
        if name in own or name in _OF_WINDOWS:
            continue
        key = (*place, name)
        text = f"{_shown(key)} has no effect"
        if name in others:
            text += ", because it is out of place: "
            if name in _HANDLER:
                text += "it belongs to a hook in the list `hooks`."
            else:
                text += "it belongs to the group, beside the list `hooks`."
            yield WrongName(key, text, is_meant=True)
        elif name in _OF_CLAUDE:
            yield WrongName(key, text + ".", is_meant=False)
        elif name not in _REMARKS and not name.startswith(_SIGNS):
            meant = _meant(name, own)
            yield WrongName(key, text + _hint(meant), meant is not None)


def _meant(name: str, known: Sequence[str]) -> str | None:
    """Find the known name that is similar to a name, in any spelling, such as `status_message`."""
    by_letters = {each.lower(): each for each in known}
    letters = name.replace("_", "").replace("-", "").lower()
    similar = nearest(letters, by_letters)
    if similar is None:
        return None
    return by_letters[similar]


def _hint(meant: str | None) -> str:
    if meant is None:
        return "."
    return f"; did you mean `{meant}`?"


def _shown(key: KeyPath) -> str:
    return f"`{dotted(('hooks', *key))}`"
