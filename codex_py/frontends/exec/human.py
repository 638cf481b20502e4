"""Shows people a session of `exec` as text on standard error, in the layout of Codex."""

from collections.abc import Mapping
from typing import Any

from codex_py.command_line.configuration import sandbox_summary
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import DENIALS, Denied
from codex_py.protocol.plans import without_tags
from codex_py.protocol.settings import TurnSettings
from codex_py.streams.standard import OutputStream
from codex_py.streams.terminal import Style, printable
from codex_py.version import __version__

_SHOWN_PROMPT_CHARACTERS = 20_000
"""Limit for a prompt in the log, which need not repeat more of a piped text."""
_NOTABLE_WAIT_S = 1.0
"""Waits before a retry are announced from this length on. The first one always is."""


class HumanText:
    """An `EventSink`. Events that come before `begin` wait for the header."""

    def __init__(
        self,
        stream: OutputStream,
        style: Style,
        *,
        show_reasoning: bool = True,
    ) -> None:
        self._stream = stream
        self._style = style
        self._show_reasoning = show_reasoning
        self._waiting: list[events.Event] | None = []
        self._announced = ""
        """The id of the command whose line was printed last. Results of other commands repeat the
        command."""
        self._reported = ""
        """The last error. The end of the turn repeats it, but this sink prints it once."""

    def begin(
        self,
        thread_id: str,
        settings: TurnSettings,
        prompt: str | None,
    ) -> None:
        """Print the header, the prompt if there is one, and the events so far."""
        style = self._style
        facts = {
            "workdir": str(settings.cwd),
            "model": settings.model,
            "provider": settings.provider,
            "approval": str(settings.approval_policy),
            "sandbox": sandbox_summary(settings.sandbox_policy, settings.cwd),
            "reasoning effort": settings.reasoning_effort or "none",
            "reasoning summaries": settings.reasoning_summary or "none",
            "session id": thread_id,
        }
        self._line(f"codex-py v{__version__}\n--------")
        for name, value in facts.items():
            self._line(f"{style('bold', f'{name}:')} {printable(value)}")
        self._line("--------")
        if prompt is not None:
            left_out = len(prompt) - _SHOWN_PROMPT_CHARACTERS
            if left_out > 0:
                half = _SHOWN_PROMPT_CHARACTERS // 2
                cut = f"\n… ({left_out:,} characters are not shown)\n"
                prompt = prompt[:half] + cut + prompt[-half:]
            self._line(f"{style('cyan', 'user')}\n{printable(prompt)}")
        waiting = self._waiting or []
        self._waiting = None
        for event in waiting:
            self._show(event)

    def __call__(self, event: events.Event) -> None:
        if self._waiting is not None:
            self._waiting.append(event)
        elif event.type is not None or isinstance(
            event, events.CallDenied | events.HookProgress
        ):
            self._show(event)

    def _show(self, event: events.Event) -> None:
        match event:
            case events.ItemStarted(item):
                self._started(item)
            case events.ItemUpdated(event_items.TodoList() as item):
                self._todo(item)
            case events.ItemCompleted(item):
                self._completed(item)
            case events.CallDenied() | events.HookProgress() | events.Reconnecting():
                self._notice(event)
            case events.Error(message, code):
                self._reported = message
                if code != "aborted":
                    self._error(message)
            case events.TurnFailed(error) if error.code == "aborted":
                self._line("turn interrupted")
            case events.TurnFailed(error) if error.message != self._reported:
                self._error(error.message)
            case events.TurnCompleted(usage, denied=denied, facts=facts):
                for gate in facts.get("gates", ()):
                    self._gate(gate)
                uncached = usage.input_tokens - usage.cached_input_tokens
                spent = uncached + usage.output_tokens
                self._line(f"{self._style('dim', 'tokens used')}\n{spent:,}")
                if denied is not None:
                    line = printable(denied_line(denied))
                    self._line(self._style("yellow", line))
            case _:
                pass

    def _notice(
        self, event: events.CallDenied | events.HookProgress | events.Reconnecting
    ) -> None:
        match event:
            case events.CallDenied(tool, reason):
                label = self._style("yellow", "denied:")
                self._line(f"{label} {printable(tool)}: {printable(reason)}")
            case events.HookProgress(name, status):
                end = "" if status == "running" else f" {status.capitalize()}"
                self._line(f"hook: {name}{end}")
            case events.Reconnecting(cause=cause, attempt=attempt, wait_s=wait_s):
                if attempt == 1 or wait_s >= _NOTABLE_WAIT_S:
                    again = f"trying again in {wait_s:.1f} s (try {attempt + 1})"
                    self._error(f"{cause}; {again}")

    def _started(self, item: event_items.ThreadItem) -> None:
        match item:
            case event_items.CommandExecution():
                self._command_line(item)
            case event_items.FileChange():
                self._line(self._style("bold", "apply patch"))
            case event_items.McpToolCall():
                self._line(f"mcp: {printable(f'{item.server}/{item.tool}')} started")
            case event_items.CollabToolCall(tool=tool):
                self._line(f"collab: {tool.title().replace('_', '')}")
            case event_items.TodoList():
                self._todo(item)
            case _:
                pass

    def _completed(self, item: event_items.ThreadItem) -> None:
        match item:
            case event_items.AgentMessage():
                text = printable(without_tags(item.text))
                self._line(f"{self._speaker('codex')}\n{text}")
            case event_items.ReasoningSummary() if self._show_reasoning:
                self._line(self._style("dim", printable(item.text)))
            case event_items.CommandExecution():
                self._command_result(item)
            case event_items.FileChange():
                self._file_change(item)
            case event_items.McpToolCall():
                message = (item.error or {}).get("message")
                reason = "" if message is None else f": {message}"
                name = f"{item.server}/{item.tool}"
                self._line(f"mcp: {printable(name)} ({item.status}){printable(reason)}")
            case event_items.WebSearch():
                self._line(f"web search: {printable(item.query)}")
            case event_items.ErrorItem(code=code) if code not in DENIALS:
                label = self._style("bold", self._style("yellow", "warning:"))
                self._line(f"{label} {printable(item.message)}")
            case _:
                # The last version of a plan was shown already.
                pass

    def _command_line(self, item: event_items.CommandExecution) -> None:
        self._announced = item.id
        command = self._style("bold", printable(item.command))
        where = f" in {printable(item.cwd)}" if item.cwd else ""
        self._line(f"{self._speaker('exec')}\n{command}{where}")

    def _command_result(self, item: event_items.CommandExecution) -> None:
        if item.id != self._announced:
            # Commands run side by side: say which one has this result.
            self._command_line(item)
        self._announced = ""
        if item.status == "declined":
            # `CallDenied` gives the reason.
            return
        took = ""
        if item.duration_ms is not None:
            took = f" in {duration(item.duration_ms)}"
        if item.exit_code == 0:
            self._line(self._style("green", f" succeeded{took}:"))
        elif item.exit_code is None:
            self._line(self._style("red", f" {item.status}{took}:"))
        else:
            self._line(self._style("red", f" exited {item.exit_code}{took}:"))
        if item.aggregated_output:
            self._line(printable(item.aggregated_output))

    def _file_change(self, item: event_items.FileChange) -> None:
        label = self._style("bold", "patch:")
        status = "declined" if item.is_declined else item.status
        self._line(f"{label} {status}")
        for change in item.changes:
            self._line(self._style("dim", printable(change.path)))
        # `CallDenied` gives the reason of a refusal.
        if item.status == "failed" and not item.is_declined:
            if item.error is not None:
                reason = printable(item.error["message"])
                self._line(self._style("red", reason))
        elif item.diff:
            self._line(printable(item.diff).removesuffix("\n"))

    def _gate(self, gate: Mapping[str, Any]) -> None:
        status = gate["status"]
        label = self._style("bold", "gate:")
        name = printable(gate["name"])
        verdict = self._style("green" if status == "passed" else "red", status)
        why = f": {gate['reason']}" if "reason" in gate else ""
        self._line(f"{label} {name} {verdict}{printable(why)}")
        if "output" in gate:
            self._line(printable(gate["output"]))

    def _todo(self, item: event_items.TodoList) -> None:
        style = self._style
        if item.explanation:
            self._line(style("italic", printable(item.explanation)))
        for entry in item.items:
            text = printable(entry.text)
            if entry.completed:
                self._line(f"  {style('green', '✓')} {text}")
            elif entry.in_progress:
                self._line(f"  {style('cyan', '→')} {text}")
            else:
                self._line(f"  {style('dim', '•')} {style('dim', text)}")

    def _error(self, message: str) -> None:
        self._line(f"{self._style('red', 'ERROR:')} {printable(message)}")

    def _speaker(self, name: str) -> str:
        return self._style("magenta", self._style("italic", name))

    def _line(self, text: str) -> None:
        self._stream.write_text(text + "\n")


def denied_line(denied: Denied) -> str:
    """Format as `2 calls were refused: the sandbox is read-only. To allow them: -s MODE`."""
    if denied.calls == 1:
        line = "1 call was refused"
        them = "it"
    else:
        line = f"{denied.calls} calls were refused"
        them = "them"
    if denied.causes:
        line += f": {'; '.join(denied.causes)}"
    if denied.allow:
        line += f". To allow {them}: {' and '.join(denied.allow)}"
    return line


def duration(milliseconds: int) -> str:
    """Format a duration as `295ms`, `3.20s` or `2m 05s`."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.2f}s"
    minutes, seconds = divmod(milliseconds // 1000, 60)
    return f"{minutes}m {seconds:02}s"
