"""Runs the hooks of a session.

All hooks of an event run side by side, and commands run as the user's own programs. LIGHT.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

from codex_py.app.features.hooks.answers import HookAnswer, read_answer
from codex_py.app.features.turn_changes import TurnChanges
from codex_py.app.options import SessionSetup
from codex_py.config.hooks import Hook
from codex_py.errors import CodexError
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.calls import shortened
from codex_py.protocol.events import HookProgress, HookStatus
from codex_py.protocol.extension import Thread
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import as_object, objects, text_field
from codex_py.protocol.mcp import RequestFailed
from codex_py.protocol.messages import encode_json
from codex_py.protocol.prompts import Note
from codex_py.protocol.settings import TurnSettings

_GRACE_S: Final = 2.0
"""The time that background hooks get when the session ends."""
_SHOWN_CHARS: Final = 300
_MATCHED: Final = ("tool_name", "source", "trigger", "reason", "agent_type")
"""Matchers are compared with the first of these fields that an event has."""
_ALIASES: Final = {"apply_patch": ("Edit", "Write"), "spawn_agent": ("Agent",)}
"""Further names of tools that matchers accept."""
_PLACEHOLDER: Final = re.compile(r"\$\{([^{}]+)\}")
_NAMES: Final = re.compile(r"[A-Za-z0-9_|]+")
_BEFORE_REQUESTS: Final = {"SessionStart", "UserPromptSubmit"}
_WITHOUT: Final = {
    "SessionStart": ("turn_id",),
    "SessionEnd": ("turn_id", "model", "permission_mode"),
    "PreCompact": ("permission_mode",),
    "PostCompact": ("permission_mode",),
}
"""The common fields that an event does not have."""


class HookFailed(Exception):
    """Raised when a hook gave no answer.

    The text continues a sentence that begins with the hook's name.
    """


@frozen
class HookRun:
    hook: Hook
    answer: HookAnswer
    ended_at: float
    """When the hook ended, on the clock of the event loop."""


class HookRuns:
    """Runs the hooks of one session. A hook that fails in any way only causes a warning."""

    def __init__(
        self, hooks: Callable[[], Sequence[Hook]], setup: SessionSetup, thread: Thread
    ) -> None:
        self._hooks = hooks
        self._warn = setup.warn
        self._thread = thread
        self._background: set[asyncio.Task[HookRun]] = set()

    async def run(self, event: str, **fields: Any) -> list[HookRun]:
        """Run the hooks of an event side by side. Background hooks are only started.

        Args:
            fields: the fields of the hook input besides the common ones.

        Returns:
            The runs, in the order of the configuration.
        """
        given = _input(self._thread, event) | fields
        names = _matched_names(given)
        waited: list[asyncio.Task[HookRun]] = []
        async with asyncio.TaskGroup() as group:
            for hook in self._hooks():
                if hook.event == event and matches(hook.matcher, names):
                    if hook.is_async:
                        task = asyncio.create_task(self._run_one(hook, given))
                        self._background.add(task)
                        task.add_done_callback(self._background.discard)
                    else:
                        waited.append(group.create_task(self._run_one(hook, given)))
        return [task.result() for task in waited]

    async def aclose(self) -> None:
        """Give background hooks a while to end, then stop the rest."""
        try:
            if self._background:
                await asyncio.wait(self._background, timeout=_GRACE_S)
        finally:
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)

    async def _run_one(self, hook: Hook, given: Mapping[str, Any]) -> HookRun:
        self._show(hook, "running")
        answer = await self._answer(hook, given)
        if answer.failure is not None:
            name = shortened(hook.target, _SHOWN_CHARS)
            why = shortened(answer.failure, _SHOWN_CHARS)
            self._warn(f"The {hook.event} hook {name!r} {why}.")
        if answer.message is not None:
            self._warn(answer.message)
        run = HookRun(hook, answer, asyncio.get_running_loop().time())
        if stop_reason([run]):
            self._show(hook, "blocked")
        elif answer.failure:
            self._show(hook, "failed")
        else:
            self._show(hook, "completed")
        if hook.is_async:
            for note in notes_of([run]):
                self._thread.tell(note)
        return run

    async def _answer(self, hook: Hook, given: Mapping[str, Any]) -> HookAnswer:
        try:
            async with asyncio.timeout(hook.timeout_s):
                async with self._changing(hook):
                    if hook.kind == "command":
                        return await self._run_command(hook, encode_json(given))
                    output = await _call_tool(hook, self._thread, given)
                    return read_answer(hook.event, 0, output)
        except TimeoutError:
            return HookAnswer(
                failure=f"did not end within {hook.timeout_s:g} s, and was stopped"
            )
        except HookFailed as failure:
            return HookAnswer(failure=str(failure))

    def _changing(self, hook: Hook) -> AbstractAsyncContextManager[None]:
        """Record the changes that a hook makes, as a formatter does.

        Changes before the first request are not recorded.
        """
        if hook.event in _BEFORE_REQUESTS:
            undo = None
        else:
            undo = self._thread.feature(TurnChanges)
        if undo is None:
            return nullcontext()
        return undo.changing()

    async def _run_command(self, hook: Hook, given: bytes) -> HookAnswer:
        """Run the command of a hook, and read its answer.

        Raises:
            TimeoutError: the command did not end in time.
        """
        try:
            ran = await self._thread.run_command(
                hook.command,
                sandboxed=False,
                timeout_s=hook.timeout_s,
                stdin=given,
                environment=hook.environment,
            )
        except CodexError as error:
            return HookAnswer(failure=f"could not be started: {error}")
        if ran.exit_code is None:
            raise TimeoutError
        return read_answer(hook.event, ran.exit_code, ran.stdout, ran.stderr)

    def _show(self, hook: Hook, status: HookStatus) -> None:
        # As in Codex, background hooks and hooks at the end of the session are not shown.
        if not hook.is_async and hook.event != "SessionEnd":
            self._thread.emit(HookProgress(hook.event, status, hook.status_message))


async def _call_tool(
    hook: Hook,
    thread: Thread,
    given: Mapping[str, Any],
) -> str:
    """Call the MCP tool of a hook. Returns its texts, which are read like a command's output.

    Raises:
        HookFailed: the server is not configured, or the call failed.
    """
    from codex_py.app.features.mcp import McpFeature  # 8 ms if no server is configured

    servers = thread.feature(McpFeature)
    if servers is None:
        server = None
    else:
        server = servers.by_name.get(hook.server)
    if server is None:
        raise HookFailed(
            f"needs the MCP server {hook.server!r}, which is not configured"
        )
    call = {"name": hook.tool, "arguments": filled(hook.arguments, given)}
    try:
        result = await server.request("tools/call", call)
    except RequestFailed as error:
        raise HookFailed(f"failed: {error}") from error
    parts = objects(result.get("content"))
    texts = [text_field(part, "text") for part in parts]
    text = "\n".join(filter(None, texts))
    if result.get("isError") is True:
        raise HookFailed(f"failed: {text}")
    return text


def filled(template: Any, given: Mapping[str, Any]) -> Any:
    """Put fields of the event, such as `${tool_input.path}`, into the arguments of a tool.

    A text that consists of one placeholder becomes the value, with its type. Source:
    `codex-rs/hooks/src/engine/mcp_runner.rs`.

    Raises:
        HookFailed: the event has no such field.
    """
    match template:
        case {**fields}:
            return {name: filled(value, given) for name, value in fields.items()}
        case [*values]:
            return [filled(value, given) for value in values]
        case str():
            return _filled_text(template, given)
        case _:
            return template


def _filled_text(template: str, given: Mapping[str, Any]) -> Any:
    whole = _PLACEHOLDER.fullmatch(template)
    if whole is not None:
        return _field(whole, given)
    return _PLACEHOLDER.sub(lambda found: _as_text(_field(found, given)), template)


def _field(placeholder: re.Match[str], given: Mapping[str, Any]) -> Any:
    value: Any = given
    for name in placeholder[1].split("."):
        fields = as_object(value)
        if name not in fields:
            raise HookFailed(
                f"needs `{placeholder[0]}`, which this event does not have"
            )
        value = fields[name]
    return value


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return encode_json(value).decode()


def _input(thread: Thread, event: str) -> dict[str, Any]:
    """Return the common fields of the hook input, as in Codex 0.171."""
    settings = thread.settings
    parent = thread.parent
    turn = thread.turn
    file = thread.session_file
    data = {
        "session_id": thread.thread_id if parent is None else parent.root_id,
        "transcript_path": file and str(file),
        "cwd": str(settings.cwd),
        "hook_event_name": event,
        "turn_id": turn and turn.id,
        "model": settings.model,
        "permission_mode": _permission_mode(settings),
    }
    for name in _WITHOUT.get(event, ()):
        del data[name]
    if parent is not None:
        data |= {"agent_id": thread.thread_id, "agent_type": parent.role or "default"}
        if event == "SubagentStop":
            data["agent_transcript_path"] = data["transcript_path"]
            data["transcript_path"] = parent.session_file and str(parent.session_file)
    return data


def _permission_mode(settings: TurnSettings) -> str:
    if settings.mode == "plan":
        return "plan"
    if settings.approval_policy is ApprovalPolicy.NEVER:
        return "bypassPermissions"
    return "default"


def _matched_names(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the name with which matchers are compared, and its aliases."""
    for field in _MATCHED:
        if field in given:
            name = given[field]
            return (name, *_ALIASES.get(name, ()))
    return ("",)


def matches(matcher: str | None, names: Sequence[str]) -> bool:
    """True if the matcher accepts one of the names.

    A matcher of only letters, digits, `_` and `|` is a list of exact names. Any other one is a
    valid regular expression, which may match a part of a name. None, `""` and `*` accept
    everything.
    """
    if not matcher or matcher == "*":
        return True
    if _NAMES.fullmatch(matcher):
        return not set(matcher.split("|")).isdisjoint(names)
    return any(re.search(matcher, name) for name in names)


def notes_of(runs: Sequence[HookRun]) -> tuple[Note, ...]:
    """Return the notes for the model from these hooks."""
    return tuple(
        Note(run.answer.context) for run in runs if run.answer.context is not None
    )


def stop_reason(runs: Sequence[HookRun]) -> str | None:
    """Return the reason of the first hook that refuses or stops something; None if no hook does."""
    reasons = (run.answer.refusal or run.answer.stop for run in runs)
    return next(filter(None, reasons), None)
