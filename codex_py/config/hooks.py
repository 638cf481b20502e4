"""Finds the hooks of a session, and whether the user trusts each; `config.hook_files.has_hooks` is the cheap question.

A hook is a program of the user's, or a tool of an MCP server, that is run at an event of a session. Files, defaults
and warnings are those of Codex 0.169.
"""

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from codex_py.config.check import dotted, problems
from codex_py.config.config import Config
from codex_py.config.hook_files import HookFile, hook_files
from codex_py.config.hook_trust import (
    HookState,
    hashed_input,
    hook_hash,
    hook_state,
    hook_states,
    store_states,
)
from codex_py.config.tables import HOOK_EVENTS, HOOKS, Table
from codex_py.errors import ConfigError
from codex_py.protocol.frozen import frozen

_DOCUMENT: Final[Table] = {
    "description": "any",
    "hooks": {**dict.fromkeys(HOOK_EVENTS, HOOKS), "*": "any"},
}
"""A file of JSON."""
_WITHOUT_MATCHER: Final = frozenset({"UserPromptSubmit", "Stop", "Interrupt"})
_ALL: Final = (None, "", "*")
"""Matchers that match everything."""
_MOST_WARNINGS: Final = 50
_LONGEST: Final = 1000
"""Characters of a warning."""
_TIMEOUT_S: Final = 600
_SHORT: Final = frozenset({"SessionEnd", "Interrupt"})
"""Events at which the user waits: their hooks have one second."""
_REQUIRED: Final[Mapping[str, Sequence[str]]] = {
    "command": ("command",),
    "mcp_tool": ("server", "tool"),
    "prompt": (),
    "agent": (),
}
"""The fields of each type of handler that must be there."""
_COMMON: Final = ("type", "timeout", "statusMessage")
_HASHED: Final[Mapping[str, Sequence[str]]] = {
    "command": (*_COMMON, "command", "async", "additionalContextLimit"),
    "mcp_tool": (*_COMMON, "server", "tool", "input"),
}
"""The fields that are part of the hash."""
_CLAUDE_TOOLS: Final = (
    (re.compile(r"\b(?:MultiEdit|NotebookEdit)\b"), "Edit"),
    (re.compile(r"\bTask\b"), "Agent"),
)
"""Names of Claude Code that are not among the aliases which Codex knows."""
_CLAUDE_OPTIONS: Final = frozenset({"if", "args"})
"""What would narrow or change a hook of Claude Code."""


@frozen
class Hook:
    event: str
    """`PreToolUse`."""
    source: Path
    """The file; `/<session-flags>/config.toml` for `-c`."""
    matcher: str | None
    """A valid regular expression; None matches all."""
    kind: Literal["command", "mcp_tool"]
    command: str
    """For the user's shell; empty for a tool."""
    timeout_s: float
    is_async: bool
    status_message: str | None
    server: str | None
    tool: str | None
    arguments: Mapping[str, Any]
    environment: Mapping[str, str]
    """Variables that the command gets besides those of the session."""
    key: str
    """In `[hooks.state]`: the file, the event, and from 0 the number of the group and of the hook in it."""
    hash: str
    state: HookState
    is_managed: bool
    """The administrator's: it is trusted, and the user cannot switch it off."""

    @property
    def needs_review(self) -> bool:
        """Only trusted hooks run."""
        return self.state in {"new", "changed"}


@frozen
class Hooks:
    found: tuple[Hook, ...] = ()
    """In the order of the configuration, the weakest layer first."""
    warnings: tuple[str, ...] = ()
    """Bounded: files may hold anything."""

    @property
    def to_review(self) -> tuple[Hook, ...]:
        return tuple(hook for hook in self.found if hook.needs_review)


def find_hooks(config: Config, environment: Mapping[str, str]) -> Hooks:
    """All hooks that are configured here, those that may not run included. A file with a mistake is left out."""
    found: list[Hook] = []
    notes: list[str] = []
    states = hook_states(config.layers)
    sources: dict[Path, Path] = {}
    for file in hook_files(config, environment):
        try:
            events = _events(file)
        except ConfigError as error:
            notes.append(f"failed to read hooks config {file.path}: {error}")
            continue
        except ValueError as error:
            notes.append(f"failed to parse hooks config {file.path}: {error}")
            continue
        hooks = [
            hook
            for event, groups in events.items()
            for group, table in enumerate(groups)
            for hook in _group(file, event, group, table, states, notes)
        ]
        if hooks and file.claude is None:
            other = sources.setdefault(file.path.parent, file.path)
            if other != file.path:
                notes.append(
                    f"loading hooks from both {other} and {file.path}; prefer a single representation for this layer"
                )
        found += hooks
    return Hooks(tuple(found), tuple(note[:_LONGEST] for note in notes[:_MOST_WARNINGS]))


def trust(home: Path, hooks: Sequence[Hook]) -> None:
    """Let hooks run as they are now. Raises a `ConfigError`: `config.toml` cannot be changed."""
    store_states(home, {(hook.key, "trusted_hash"): hook.hash for hook in hooks})


def enable(home: Path, hook: Hook, *, enabled: bool) -> None:
    """Switch a hook off, or on again. Raises a `ConfigError`: `config.toml` cannot be changed."""
    store_states(home, {(hook.key, "enabled"): None if enabled else False})


def _events(file: HookFile) -> dict[str, list[dict[str, Any]]]:
    """The groups of each known event.

    Raises:
        ConfigError: the file cannot be read.
        ValueError: the file is damaged, or something in it is of the wrong type.
    """
    match file.contents:
        case ConfigError() as error:
            raise error
        case str() as text:
            document = _parsed(text)
        case table:
            document = {"hooks": table}
    kinds = _DOCUMENT if file.claude is None else {**_DOCUMENT, "*": "any"}
    if mistakes := problems(document, kinds):
        where = f"`{dotted(mistakes[0].key)}`" if mistakes[0].key else "it"
        raise ValueError(f"{where} {mistakes[0].text}")
    # A setting of Claude Code.
    is_off = document.get("disableAllHooks") is True
    found: Mapping[str, Any] = {} if is_off else document.get("hooks", {})
    events = {name: found[name] for name in HOOK_EVENTS if name in found}
    for event, groups in events.items():
        for handler in (h for group in groups for h in group.get("hooks", ())):
            kind = handler.get("type")
            if kind not in _REQUIRED and (kind is None or file.claude is None):
                kinds = ", ".join(f"`{name}`" for name in _REQUIRED)
                raise ValueError(f"the `type` of a hook of `{event}` must be one of {kinds}")
            for name in _REQUIRED.get(kind, ()):
                if name not in handler:
                    raise ValueError(f"a hook of `{event}` has no `{name}`")
    return events


def _parsed(text: str) -> Any:
    try:
        document = json.loads(text, object_pairs_hook=_unique)
        # A lone surrogate, which JSON can spell, is an error.
        json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. `null` is no value; of two values for one name, one would be lost silently."""
    values = {name: value for name, value in pairs if value is not None}
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("an object has two fields of one name")
    return values


def _group(
    file: HookFile,
    event: str,
    group: int,
    table: Mapping[str, Any],
    states: Mapping[str, Mapping[str, Any]],
    notes: list[str],
) -> Iterator[Hook]:
    matcher = None if event in _WITHOUT_MATCHER else table.get("matcher")
    if matcher not in _ALL and (fault := _fault(matcher)) is not None:
        notes.append(f'invalid matcher "{matcher}" in {file.path}: {fault}')
        return
    if matcher is not None and file.claude is not None:
        for names, ours in _CLAUDE_TOOLS:
            matcher = names.sub(ours, matcher)
    for number, handler in enumerate(table.get("hooks", ())):
        if (fault := _fault_of_handler(file, event, handler)) is not None:
            notes.append(fault)
            continue
        yield _hook(file, event, f"{group}:{number}", matcher, handler, states)


def _fault(matcher: str) -> str | None:
    """Why a matcher is no regular expression."""
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return None


def _fault_of_handler(file: HookFile, event: str, handler: Mapping[str, Any]) -> str | None:
    """A warning of a handler that cannot be run."""
    match handler["type"]:
        case _ if file.claude is not None and (unsupported := _CLAUDE_OPTIONS & handler.keys()):
            return f"skipping hook in {file.path}: `{min(unsupported)}` is not supported"
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
        case kind:
            return f"skipping {kind} hook in {file.path}: {kind} hooks are not supported yet"


def _hook(
    file: HookFile,
    event: str,
    place: str,
    matcher: str | None,
    given: Mapping[str, Any],
    states: Mapping[str, Mapping[str, Any]],
) -> Hook:
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event).lower()
    handler: dict[str, Any] = {
        "timeout": 1 if event in _SHORT else _TIMEOUT_S,
        **({"async": False} if given["type"] == "command" else {"input": {}}),
        **given,
    }
    handler["timeout"] = max(1, handler["timeout"])
    hashed = {name: handler[name] for name in _HASHED[given["type"]] if name in handler}
    if "input" in hashed:
        hashed["input"] = hashed_input(hashed["input"])
    current = hook_hash(snake, matcher, hashed)
    key = f"{file.key or file.path}:{snake}:{place}"
    project = {} if file.claude is None else {"CLAUDE_PROJECT_DIR": str(file.claude)}
    return Hook(
        event=event,
        source=file.path,
        matcher=None if matcher in _ALL else matcher,
        kind=handler["type"],
        command=handler.get("command", ""),
        timeout_s=handler["timeout"],
        is_async=handler.get("async", False),
        status_message=handler.get("statusMessage"),
        server=handler.get("server"),
        tool=handler.get("tool"),
        arguments=handler.get("input", {}),
        environment={**project, **file.environment},
        key=key,
        hash=current,
        state="trusted" if file.is_managed else hook_state(states.get(key, {}), current),
        is_managed=file.is_managed,
    )
