"""Finds the hooks of a session, and the user's trust in each.

A hook is a program of the user's, or a tool of an MCP server, that is run at an event of a session.
Files, defaults and warnings are those of Codex 0.171; so is `[hooks.state."KEY"]` of `config.toml`,
where the trust is kept, byte for byte. `config.hook_files.has_hooks` is a cheap check for hooks.
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
_ALL: Final = (None, "", "*")
"""Matchers that match everything."""
_MOST_WARNINGS: Final = 50
_LONGEST: Final = 1000
"""The length of a warning, in characters."""
_SHORT: Final = frozenset({"SessionEnd", "Interrupt"})
"""Events for which the user waits: their hooks get one second by default, and at most three."""
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
    environment: Mapping[str, str]
    """Variables that the command gets besides the session's."""
    key: str
    """The key in `[hooks.state]`: the file, the event, and from 0 the numbers of the group and of
    the hook in it."""
    hash: str
    state: HookState
    is_managed: bool
    """True for a hook of the administrator's: it is trusted, and the user cannot switch it off."""
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
    # The entries of all layers about each hook, by key. A project cannot trust its own hooks.
    own = merge([layer for layer in config.layers.layers if layer.name != "project"])
    states = own.get("hooks", {}).get("state", {})
    sources: dict[Path, Path] = {}
    for file in hook_files(config, environment):
        skipped: list[str] = []
        try:
            events = read_events(file)
            hooks = list(_hooks(file, events.groups, states, skipped))
        except (ConfigError, ValueError) as error:
            if isinstance(error, ConfigError):
                failed = "read"
            else:
                failed = "parse"
            notes.append(f"failed to {failed} hooks config {file.path}: {error}")
            continue
        found += hooks
        notes += (*skipped, *events.unsupported)
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
    set_in_config(
        home, ("hooks", "state", hook.key, "enabled"), None if enabled else False
    )


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
            if event in _WITHOUT_MATCHER:
                matcher = None
            else:
                matcher = group.get("matcher")
            fault = _fault_of_matcher(matcher)
            if fault is not None:
                skipped.append(f'invalid matcher "{matcher}" in {file.path}: {fault}')
            elif matcher is not None and file.claude is not None:
                matcher = _CLAUDE_TOOL.sub(lambda name: _CLAUDE_TOOLS[name[0]], matcher)
            for place, handler in enumerate(group.get("hooks", ())):
                # Check handlers even in a group that is left out: a mistake rejects the whole file.
                why = _fault_of_handler(file, event, handler)
                if fault is None and why is not None:
                    skipped.append(why)
                elif fault is None:
                    yield _hook(
                        file, event, f"{number}:{place}", matcher, handler, states
                    )


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
    file: HookFile, event: str, handler: Mapping[str, Any]
) -> str | None:
    """A warning about a handler that cannot run; None if it can.

    Raises:
        ValueError: the mistake rejects the whole file.
    """
    kind = handler.get("type")
    # Claude Code has further types.
    if kind not in _REQUIRED and (kind is None or file.claude is None):
        kinds = ", ".join(f"`{name}`" for name in _REQUIRED)
        raise ValueError(f"the `type` of a hook of `{event}` must be one of {kinds}")
    for name in _REQUIRED.get(kind, ()):
        if name not in handler:
            raise ValueError(f"a hook of `{event}` has no `{name}`")
    match kind:
        case _ if file.claude is not None and (
            unsupported := CLAUDE_OPTIONS & handler.keys()
        ):
            return (
                f"skipping hook in {file.path}: `{min(unsupported)}` is not supported"
            )
        case "command" if not handler["command"].strip():
            return f"skipping empty hook command in {file.path}"
        case "command" if "\0" in handler["command"]:
            return f"skipping hook in {file.path}: its command has a NUL character"
        case "mcp_tool" if not (handler["server"].strip() and handler["tool"].strip()):
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
    kind = given["type"]
    own = {name: given[name] for name in _HASHED[kind] if name in given}
    own["timeout"] = max(1, own.get("timeout", 1 if event in _SHORT else 600))
    if kind == "mcp_tool":
        own["input"] = _hashed_input(given.get("input", {}))
    else:
        own.setdefault("async", False)
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
    identity = {"event_name": snake, "hooks": [own]}
    if matcher is not None:
        identity["matcher"] = matcher
    current = "sha256:" + sha256(_compact(identity).encode()).hexdigest()
    key = f"{file.key or file.path}:{snake}:{place}"
    if file.claude is None:
        project = {}
    else:
        project = {"CLAUDE_PROJECT_DIR": str(file.claude)}
    return Hook(
        event=event,
        source=file.path,
        matcher=None if matcher in _ALL else matcher,
        kind=kind,
        command=own.get("command", ""),
        server=own.get("server", ""),
        tool=own.get("tool", ""),
        arguments=given.get("input", {}),
        timeout_s=min(own["timeout"], 3) if event in _SHORT else own["timeout"],
        is_async=own.get("async", False),
        status_message=own.get("statusMessage"),
        environment={**project, **file.environment},
        key=key,
        hash=current,
        state="trusted" if file.is_managed else _state(states.get(key, {}), current),
        is_managed=file.is_managed,
    )


def _state(entry: Mapping[str, Any], current: str) -> HookState:
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
