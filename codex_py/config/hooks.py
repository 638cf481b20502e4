"""Finds the hooks of a session, and reads and records the user's trust in each.

A hook is a program of the user's, or a tool of an MCP server, that is run at an event of a session.
Files, defaults and warnings are those of Codex 0.171. The trust is kept in `[hooks.state."KEY"]` of
`config.toml`, byte for byte as Codex writes it. `config.hook_files.has_hooks` is a cheap check for
hooks.
"""

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from codex_py.config.check import KeyPath
from codex_py.config.config import Config
from codex_py.config.declared.names import HOOK_EVENTS
from codex_py.config.edit import TomlValue, changed_text, edit_config, set_in_config
from codex_py.config.hook_files import HookFile, hook_files, read_events
from codex_py.config.hook_names import CLAUDE_OPTIONS
from codex_py.config.layers import merge
from codex_py.errors import ConfigError
from codex_py.protocol.frozen import frozen

HookState: TypeAlias = Literal["trusted", "new", "changed", "disabled"]

_WITHOUT_MATCHER: Final = frozenset({"UserPromptSubmit", "Stop", "Interrupt"})
"""Events whose groups ignore their matcher."""
_ALL: Final = (None, "", "*")
"""Matchers that match everything."""
_MOST_WARNINGS: Final = 50
_LONGEST: Final = 1000
"""The length of a warning, in characters."""
_SHORT: Final = frozenset({"SessionEnd", "Interrupt"})
"""Events for which the user waits."""
_SHORT_TIMEOUT_S: Final = 1
_MAX_SHORT_TIMEOUT_S: Final = 3
_TIMEOUT_S: Final = 600
_REQUIRED: Final[Mapping[str, Sequence[str]]] = {
    "command": ("command",),
    "mcp_tool": ("server", "tool"),
    "prompt": (),
    "agent": (),
}
"""The required fields of each type of handler."""
_COMMON: Final = ("type", "timeout", "statusMessage")
_HASHED: Final[Mapping[str, Sequence[str]]] = {
    "command": (*_COMMON, "command", "async", "additionalContextLimit"),
    "mcp_tool": (*_COMMON, "server", "tool", "input"),
}
"""The fields that are part of the hash."""
_CLAUDE_TOOLS: Final = {"MultiEdit": "Edit", "NotebookEdit": "Edit", "Task": "Agent"}
"""Claude Code's tool names that are not among the aliases in Codex."""
_CLAUDE_TOOL: Final = re.compile(rf"\b(?:{'|'.join(_CLAUDE_TOOLS)})\b")


@frozen
class Hook:
    """A configured hook; `state` tells if it may run."""

    event: str
    """The name of the event, such as `PreToolUse`."""
    source: Path
    """The file that defines the hook; `/<session-flags>/config.toml` for `-c`."""
    matcher: str | None
    """A valid regular expression; None matches everything."""
    kind: Literal["command", "mcp_tool"]
    command: str
    """The command for the user's shell; empty if the hook is a tool."""
    server: str
    tool: str
    arguments: Mapping[str, Any]
    timeout_s: float
    is_async: bool
    status_message: str | None
    """The text to show while the hook runs."""
    environment: Mapping[str, str]
    """Variables that the command gets besides the session's."""
    key: str
    """The key in `[hooks.state]`: the file, the event, and from 0 the numbers of the group and of
    the hook in it."""
    hash: str
    """The digest of all that the hook does. The user trusts a hook as long as this is the same."""
    state: HookState
    is_managed: bool
    """True for a hook of the administrator's: it is trusted, and the user cannot switch it off."""
    trusted_hash: str | None = None
    """The hash that the user has trusted; None: no one."""
    origin: str = "user"
    """The name of the layer that the hook belongs to; see `Layer.name`."""
    number: int = 0
    """The number of the hook among all configured ones, from 0."""

    @property
    def target(self) -> str:
        """The command, or `server/tool` for a tool."""
        return self.command or f"{self.server}/{self.tool}"

    @property
    def needs_review(self) -> bool:
        """True if the user must trust the hook, as it is now, before it can run."""
        return self.state in {"new", "changed"}


@frozen
class Hooks:
    found: tuple[Hook, ...] = ()
    """The hooks in the order of the configuration, the weakest layer first."""
    warnings: tuple[str, ...] = ()
    """The warnings, bounded in number and length, because they quote files."""

    @property
    def to_review(self) -> tuple[Hook, ...]:
        return tuple(hook for hook in self.found if hook.needs_review)


def find_hooks(config: Config, environment: Mapping[str, str]) -> Hooks:
    """Find all configured hooks, including those that may not run.

    A file with a mistake is left out.

    Raises:
        ConfigError: a name is misspelt or out of place, or a group has no hooks: the actions that
            such a hook refuses could run.
    """
    found: list[Hook] = []
    notes: list[str] = []
    misspelt: list[str] = []
    states = _states(config)
    sources: dict[Path, Path] = {}
    for file in hook_files(config, environment):
        skipped: list[str] = []
        try:
            events = read_events(file)
            hooks = list(_hooks(file, events.groups, states, skipped))
        except ConfigError as error:
            notes.append(f"failed to read hooks config {file.path}: {error}")
            continue
        except ValueError as error:
            notes.append(f"failed to parse hooks config {file.path}: {error}")
            continue
        found += hooks
        notes += skipped
        notes += events.unsupported
        misspelt += events.misspelt
        if hooks and file.claude is None:
            other = sources.setdefault(file.path.parent, file.path)
            if other != file.path:
                notes.append(
                    f"loading hooks from both {other} and {file.path}; prefer a single representation for this layer"
                )
    if misspelt:
        raise ConfigError("\n".join(_bounded(misspelt)))
    numbered = tuple(replace(hook, number=number) for number, hook in enumerate(found))
    return Hooks(numbered, _bounded(notes))


def _states(config: Config) -> Mapping[str, Mapping[str, Any]]:
    """The tables of `[hooks.state]` by the key of their hook.

    A project's tables are left out: it cannot trust its own hooks.
    """
    own = merge([layer for layer in config.layers.layers if layer.name != "project"])
    return own.get("hooks", {}).get("state", {})


def _bounded(notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(note[:_LONGEST] for note in notes[:_MOST_WARNINGS])


def trust(home: Path, hooks: Sequence[Hook]) -> None:
    """Trust hooks as they are now. Raises a `ConfigError` if `config.toml` cannot be changed."""
    changes: dict[KeyPath, TomlValue] = {
        ("hooks", "state", hook.key, "trusted_hash"): hook.hash for hook in hooks
    }
    edit_config(home, lambda text, path: changed_text(text, path, changes))


def enable(
    home: Path,
    hook: Hook,
    *,
    enabled: bool,
) -> None:
    """Switch a hook on or off. Raises a `ConfigError` if `config.toml` cannot be changed."""
    key = ("hooks", "state", hook.key, "enabled")
    # A hook without the key is on.
    set_in_config(home, key, None if enabled else False)


def _hooks(
    file: HookFile,
    groups_by_event: Mapping[str, Any],
    states: Mapping[str, Mapping[str, Any]],
    skipped: list[str],
) -> Iterator[Hook]:
    """Yield the hooks of a file that can run; `skipped` gets a warning for each other hook.

    Raises:
        ValueError: something in the file is of the wrong type.
    """
    for event in HOOK_EVENTS:
        for number, group in enumerate(groups_by_event.get(event, ())):
            yield from _hooks_of_group(file, event, number, group, states, skipped)


def _hooks_of_group(
    file: HookFile,
    event: str,
    group_number: int,
    group: Mapping[str, Any],
    states: Mapping[str, Mapping[str, Any]],
    skipped: list[str],
) -> Iterator[Hook]:
    """Yield the hooks of a group that can run; otherwise like `_hooks`."""
    matcher = None
    if event not in _WITHOUT_MATCHER:
        matcher = group.get("matcher")
    fault = _fault_of_matcher(matcher)
    if fault is not None:
        skipped.append(f'invalid matcher "{matcher}" in {file.path}: {fault}')
    elif matcher is not None and file.claude is not None:
        matcher = _CLAUDE_TOOL.sub(lambda name: _CLAUDE_TOOLS[name[0]], matcher)
    for number, handler in enumerate(group.get("hooks", ())):
        # Check handlers even in a group that is left out: a mistake rejects the whole file.
        why = _fault_of_handler(file, event, handler)
        if fault is not None:
            continue
        if why is not None:
            skipped.append(why)
            continue
        place = f"{group_number}:{number}"
        yield _hook(file, event, place, matcher, handler, states)


def _fault_of_matcher(matcher: str | None) -> str | None:
    """The reason why a matcher is not a regular expression; None if it is one."""
    if matcher in _ALL:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return None


def _fault_of_handler(
    file: HookFile,
    event: str,
    handler: Mapping[str, Any],
) -> str | None:
    """A warning about a handler that cannot run; None if it can.

    Raises:
        ValueError: the mistake rejects the whole file.
    """
    kind = handler.get("type")
    is_for_claude = file.claude is not None
    # Claude Code has further types.
    if kind is None or (kind not in _REQUIRED and not is_for_claude):
        kinds = ", ".join(f"`{name}`" for name in _REQUIRED)
        raise ValueError(f"the `type` of a hook of `{event}` must be one of {kinds}")
    for name in _REQUIRED.get(kind, ()):
        if name not in handler:
            raise ValueError(f"a hook of `{event}` has no `{name}`")
    unsupported = CLAUDE_OPTIONS & handler.keys()
    if is_for_claude and unsupported:
        return f"skipping hook in {file.path}: `{min(unsupported)}` is not supported"
    match kind:
        case "command" if not handler["command"].strip():
            return f"skipping empty hook command in {file.path}"
        case "command" if "\0" in handler["command"]:
            return f"skipping hook in {file.path}: its command has a NUL character"
        case "mcp_tool" if not all(
            handler[name].strip() for name in ("server", "tool")
        ):
            return f"skipping MCP tool hook in {file.path}: server and tool must not be empty"
        case "mcp_tool" if event == "SessionEnd":
            return f"skipping MCP tool hook in {file.path}: SessionEnd MCP hooks are not supported"
        case "command" | "mcp_tool":
            return None
        case _:
            return f"skipping {kind} hook in {file.path}: {kind} hooks are not supported yet"


def _hook(
    file: HookFile,
    event: str,
    place: str,
    matcher: str | None,
    given: Mapping[str, Any],
    states: Mapping[str, Mapping[str, Any]],
) -> Hook:
    """Read a hook that can run.

    Args:
        place: the numbers of the group and of the hook, `0:1`.
        given: the fields as the file has them.
    """
    hashed = _hashed_fields(event, given)
    event_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
    digest = _hash(event_name, matcher, hashed)
    key = f"{file.key or file.path}:{event_name}:{place}"
    if file.is_managed:
        state = "trusted"
    else:
        state = _state(states.get(key, {}), digest)
    timeout_s = hashed["timeout"]
    if event in _SHORT:
        timeout_s = min(timeout_s, _MAX_SHORT_TIMEOUT_S)
    environment = dict(file.environment)
    if file.claude is not None:
        environment.setdefault("CLAUDE_PROJECT_DIR", str(file.claude))
    return Hook(
        event=event,
        source=file.path,
        matcher=None if matcher in _ALL else matcher,
        kind=hashed["type"],
        command=hashed.get("command", ""),
        server=hashed.get("server", ""),
        tool=hashed.get("tool", ""),
        arguments=given.get("input", {}),
        timeout_s=timeout_s,
        is_async=hashed.get("async", False),
        status_message=hashed.get("statusMessage"),
        environment=environment,
        key=key,
        hash=digest,
        state=state,
        is_managed=file.is_managed,
        trusted_hash=states.get(key, {}).get("trusted_hash"),
        origin=file.origin,
    )


def _hashed_fields(event: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are part of the hash, with their defaults."""
    kind = given["type"]
    hashed = {name: given[name] for name in _HASHED[kind] if name in given}
    usual = _SHORT_TIMEOUT_S if event in _SHORT else _TIMEOUT_S
    hashed["timeout"] = max(1, given.get("timeout", usual))
    if kind == "mcp_tool":
        hashed["input"] = _hashed_input(given.get("input", {}))
    else:
        hashed.setdefault("async", False)
    return hashed


def _hash(
    event_name: str,
    matcher: str | None,
    fields: Mapping[str, Any],
) -> str:
    """The digest of a hook, as Codex computes it."""
    identity: dict[str, Any] = {"event_name": event_name, "hooks": [fields]}
    if matcher is not None:
        identity["matcher"] = matcher
    return "sha256:" + sha256(_compact(identity).encode()).hexdigest()


def _state(entry: Mapping[str, Any], current: str) -> HookState:
    """The state of a hook with the hash `current`, by its table in `[hooks.state]`."""
    match entry:
        case {"enabled": False}:
            return "disabled"
        case {"trusted_hash": known}:
            if known == current:
                return "trusted"
            return "changed"
        case _:
            return "new"


def _hashed_input(arguments: Mapping[str, Any]) -> Any:
    """The arguments of a tool as Codex hashes them: a number becomes a table with its text."""

    def number(text: str) -> dict[str, str]:
        return {"$serde_json::private::Number": text}

    return json.loads(_compact(arguments), parse_int=number, parse_float=number)


def _compact(value: Any) -> str:
    return json.dumps(
        value,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
