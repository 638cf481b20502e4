"""What a frontend shows of a thread that goes on: its items as they would have been shown live."""

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from codex_py.protocol.calls import failed_call, named_changes, shortened
from codex_py.protocol.events import (
    AgentMessage,
    CommandExecution,
    ContextCompaction,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    ThreadItem,
    TodoEntry,
    TodoList,
    TurnTime,
    UserMessage,
    WebSearch,
)
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.prompts import is_summary, message_texts, prompt_of
from codex_py.protocol.tools import read_coded_text

_COMMANDS: Final = {"exec_command", "shell", "shell_command", "container.exec", "local_shell"}
_PATCHES: Final = {"apply_patch", "applypatch"}
_EXIT_CODE: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_WALL_TIME: Final = re.compile(
    r"^(?:Wall time|Duration): (\d{1,9}(?:\.\d{1,9})?) seconds$", re.MULTILINE
)
_IN_BACKGROUND: Final = re.compile(r"^Process running with session ID (\d+)$", re.MULTILINE)
_OUTPUT: Final = re.compile(r"^Output:\n", re.MULTILINE)
_OWN_COMMAND: Final = re.compile(
    r"<user_shell_command>\n<command>\n(.*)\n</command>\n<result>\n(Exit code: .*)"
    r"\n</result>\n</user_shell_command>",
    re.DOTALL,
)
"""What the model is told of a command that the user has run."""
_SERVER_TOOLS: Final = {
    *("view_image", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
}
"""Our own tools that are shown as calls of an MCP server: the one they name, or `codex`."""
_NOT_RUN: Final = {"InvalidArgs", "UnknownTool"}
"""Error codes of calls that no tool has seen."""


def thread_items(items: Iterable[EncodedItem]) -> list[ThreadItem]:
    """The items of a history in its order, with ids of their own: `history_0`, `history_1`, …

    Calls and their outputs become one item. What was not shown live, such as the context, is left out, and
    so is what no tool of ours made. What a call came to is read from the text that the model was given,
    which may have been cut: a command's output, its exit code where the text has one. The `diff` of a
    patch is the envelope that the model wrote, and its paths are those in it.
    """
    encoded = list(items)
    return _Transcript([decode_json(item) for item in encoded], encoded).shown


class _Transcript:
    def __init__(self, items: Sequence[dict[str, Any]], encoded: Sequence[EncodedItem]) -> None:
        self.shown: list[ThreadItem] = []
        self._patches: list[int] = []
        """Places in `shown` of the patches of a response."""
        self._background: dict[str, int] = {}
        """Places in `shown` of commands that went on in the background, by the id of their process."""
        self._outputs = _outputs(items)
        for index, item in enumerate(items):
            self._take(index, item, encoded[index])

    def _id(self) -> str:
        return f"history_{len(self.shown)}"

    def _take(self, index: int, item: dict[str, Any], encoded: EncodedItem) -> None:
        match item:
            case {"role": "user"}:
                self._user(item, encoded)
            case {"type": "message", "role": "assistant", "content": content}:
                if text := "".join(message_texts(content)):
                    self.shown.append(AgentMessage(id=self._id(), text=text))
            case {"type": "reasoning", "summary": summary}:
                if text := "\n".join(message_texts(summary)):
                    self.shown.append(ReasoningSummary(id=self._id(), text=text))
            case {"type": "compaction" | "compaction_summary"}:
                self.shown.append(ContextCompaction(id=self._id(), status="completed"))
            case {"type": "web_search_call"}:
                action: dict[str, Any] = item.get("action") or {}
                query = str(action.get("query") or action.get("url") or "")
                self.shown.append(WebSearch(id=self._id(), query=query, action=action or None))
            case {"type": "function_call", "name": str(name), "arguments": str(arguments)}:
                full_name = f"{item.get('namespace') or ''}{name}"
                self._call(index, item, full_name, _arguments(arguments))
            case {"type": "custom_tool_call", "name": str(name), "input": str(text)}:
                self._call(index, item, name, {"input": text})
            case {"type": "local_shell_call", "action": {"command": list(), **action}}:
                folder = action.get("working_directory")
                arguments = {"command": item["action"]["command"], "workdir": folder}
                self._call(index, item, "local_shell", arguments)
            case _:
                self._fact(item)

    def _fact(self, item: dict[str, Any]) -> None:
        """What a session file has beside the items of the model."""
        match item:
            case {"type": "patch_applied", "diff": str(diff)}:
                self._applied(diff)
            case {"type": "turn_completed", "duration_ms": int(duration_ms)}:
                self.shown.append(TurnTime(id=self._id(), duration_ms=duration_ms))
            case {"type": "function_call_output" | "custom_tool_call_output"}:
                # The diffs of a response stand before the outputs of its calls.
                self._patches.clear()
            case _:
                pass

    def _user(self, item: dict[str, Any], encoded: EncodedItem) -> None:
        if (prompt := prompt_of(item)) is not None:
            self.shown.append(UserMessage(id=self._id(), text=prompt.text, images=prompt.images))
        elif is_summary(encoded):
            self.shown.append(ContextCompaction(id=self._id(), status="completed"))
        elif told := _OWN_COMMAND.fullmatch("".join(message_texts(item.get("content")))):
            self._command(told[1], "", None, told[2])

    def _call(self, index: int, item: dict[str, Any], name: str, arguments: dict[str, Any]) -> None:
        name = name.removeprefix("functions.")
        code, output = read_coded_text(self._outputs.get(index, ""))
        is_server_tool = name.startswith("mcp__") or name in _SERVER_TOOLS
        is_shown = is_server_tool or name in _COMMANDS or name in _PATCHES
        if code is not None and not (is_shown and (is_server_tool or code not in _NOT_RUN)):
            call_id = str(item.get("call_id") or item.get("id") or "")
            self.shown.append(failed_call(self._id(), name, call_id, code, output))
        elif name in _COMMANDS:
            command = arguments.get("cmd", arguments.get("command"))
            words = (
                [str(word) for word in cast("list[Any]", command)]
                if isinstance(command, list)
                # Which shell it was is not kept; it was one of the system or the user's.
                else ["/bin/bash", "-lc", str(command)]
            )
            self._command(shlex.join(words), str(arguments.get("workdir") or ""), code, output)
        elif name in _PATCHES:
            self._patch(str(arguments.get("input", arguments.get("patch", ""))), code, output)
        elif name == "update_plan":
            self._plan(arguments)
        elif name == "write_stdin":
            self._heard(str(arguments.get("session_id")), output)
        elif is_server_tool:
            self._server_call(name, arguments, code, output)

    def _server_call(
        self, name: str, arguments: dict[str, Any], error_code: str | None, output: str
    ) -> None:
        server, _, tool = name.removeprefix("mcp__").partition("__")
        if name in _SERVER_TOOLS:
            server, tool = str(arguments.get("server") or "codex"), name
        item = McpToolCall(id=self._id(), server=server, tool=tool, arguments=arguments)
        if error_code is None:
            result = {"content": [{"type": "text", "text": output}]}
            self.shown.append(replace(item, result=result, status="completed"))
        else:
            self.shown.append(replace(item, error={"message": output}, status="failed"))

    def _command(self, command: str, cwd: str, error_code: str | None, output: str) -> None:
        code, text = _result(output)
        running = _IN_BACKGROUND.search(_header(output))
        if running is not None:
            self._background[running[1]] = len(self.shown)
        # Without a code it went on in the background, was refused, or was interrupted.
        status = "completed" if code == 0 or running is not None else "failed"
        if error_code == "ApprovalDenied":
            status = "declined"
        self.shown.append(
            CommandExecution(
                id=self._id(),
                command=command,
                aggregated_output=text,
                exit_code=code,
                status=status,
                cwd=cwd,
                duration_ms=_duration_ms(output) if code is not None else None,
            )
        )

    def _heard(self, process: str, output: str) -> None:
        """What a command in the background has printed since, and its exit code if it is over."""
        code, text = _result(output)
        place = self._background.get(process)
        if place is None or _OUTPUT.search(output) is None:
            return
        item = self.shown[place]
        assert isinstance(item, CommandExecution)
        self.shown[place] = replace(
            item,
            aggregated_output=item.aggregated_output + text,
            exit_code=code,
            status="failed" if code else "completed",
        )

    def _applied(self, diff: str) -> None:
        """Show the diff that was made for the patch, with line numbers, in place of the patch itself."""
        if self._patches:
            place = self._patches.pop(0)
            item = self.shown[place]
            assert isinstance(item, FileChange)
            self.shown[place] = replace(item, diff=diff)
        else:
            # A command has applied it.
            change = FileChange(id=self._id(), changes=[], status="completed", diff=diff)
            self.shown.append(change)

    def _patch(self, patch: str, error_code: str | None, output: str) -> None:
        exit_code, text = _result(output)
        item = FileChange(id=self._id(), changes=named_changes(patch), diff=patch)
        if exit_code == 0:
            self._patches.append(len(self.shown))
            self.shown.append(replace(item, status="completed"))
            return
        status = "declined" if error_code in {"ApprovalDenied", "SandboxDenied"} else "failed"
        error = {"code": error_code or "PatchFailed", "message": shortened(text.rstrip("\n"))}
        self.shown.append(replace(item, status=status, error=error if text else None))

    def _plan(self, arguments: dict[str, Any]) -> None:
        plan = arguments.get("plan")
        steps = [
            cast("dict[str, Any]", step)
            for step in (cast("list[Any]", plan) if isinstance(plan, list) else [])
            if isinstance(step, dict)
        ]
        entries = [
            TodoEntry(
                text=str(step.get("step", "")),
                completed=step.get("status") == "completed",
                in_progress=step.get("status") == "in_progress",
            )
            for step in steps
        ]
        explanation = arguments.get("explanation")
        self.shown.append(
            TodoList(
                id=self._id(),
                items=entries,
                explanation=explanation if isinstance(explanation, str) else None,
            )
        )


def _outputs(items: Sequence[dict[str, Any]]) -> dict[int, str]:
    """The text of each call's output, by the place of the call. Ids may come again."""
    open_calls: dict[str, list[int]] = {}
    outputs: dict[int, str] = {}
    for index, item in enumerate(items):
        kind = str(item.get("type", ""))
        call_id = str(item.get("call_id") or item.get("id"))
        if kind.endswith("_call_output") and open_calls.get(call_id):
            outputs[open_calls[call_id].pop(0)] = "".join(message_texts(item.get("output")))
        elif kind.endswith("_call"):
            open_calls.setdefault(call_id, []).append(index)
    return outputs


def _result(output: str) -> tuple[int | None, str]:
    """The exit code and the text below the header that the model was given."""
    if output.startswith("{"):
        data = _arguments(output)
        metadata = data.get("metadata")
        code = (
            cast("dict[str, Any]", metadata).get("exit_code")
            if isinstance(metadata, dict)
            else None
        )
        if isinstance(code, int):
            return code, str(data.get("output", ""))
    header = _header(output)
    if not header:
        return None, output
    code = _EXIT_CODE.search(header)
    return (int(code[1]) if code else None), output[len(header) + len("Output:\n") :]


def _header(output: str) -> str:
    """The lines before the text that a command printed; empty where there are none."""
    end = _OUTPUT.search(output)
    return "" if end is None else output[: end.start()]


def _duration_ms(output: str) -> int | None:
    found = _WALL_TIME.search(_header(output))
    return None if found is None else int(float(found[1]) * 1000)


def _arguments(text: str) -> dict[str, Any]:
    """A JSON object; empty where the text is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
