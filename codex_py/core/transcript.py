"""What a frontend shows of a thread that goes on: its items as they would have been shown live."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from codex_py.protocol.events import (
    AgentMessage,
    Change,
    CommandExecution,
    ContextCompaction,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    ThreadItem,
    TodoEntry,
    TodoList,
    UserMessage,
    WebSearch,
)
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.prompts import is_summary, message_texts, prompt_of

_COMMANDS: Final = {"exec_command", "shell", "shell_command", "container.exec"}
_PATCHES: Final = {"apply_patch", "applypatch"}
_EXIT_CODE: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_OUTPUT: Final = re.compile(r"^Output:\n", re.MULTILINE)
_HUNK: Final = re.compile(r"^\*\*\* (Add|Delete|Update) File: (.+)$", re.MULTILINE)
_KINDS: Final[Mapping[str, Any]] = {"Add": "add", "Delete": "delete", "Update": "update"}


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
                self._call(full_name, _arguments(arguments), self._outputs.get(index))
            case {"type": "custom_tool_call", "name": str(name), "input": str(text)}:
                self._call(name, {"input": text}, self._outputs.get(index))
            case {"type": "local_shell_call", "action": {"command": list(), **action}}:
                command = [str(word) for word in item["action"]["command"]]
                folder = str(action.get("working_directory") or "")
                self._command(command, folder, self._outputs.get(index))
            case _:
                pass

    def _user(self, item: dict[str, Any], encoded: EncodedItem) -> None:
        if (prompt := prompt_of(item)) is not None:
            self.shown.append(UserMessage(id=self._id(), text=prompt.text, images=prompt.images))
        elif is_summary(encoded):
            self.shown.append(ContextCompaction(id=self._id(), status="completed"))

    def _call(self, name: str, arguments: dict[str, Any], output: str | None) -> None:
        name = name.removeprefix("functions.")
        if name in _COMMANDS:
            command = arguments.get("cmd", arguments.get("command"))
            words = (
                [str(word) for word in cast("list[Any]", command)]
                if isinstance(command, list)
                else ["bash", "-lc", str(command)]
            )
            self._command(words, str(arguments.get("workdir") or ""), output)
        elif name in _PATCHES:
            self._patch(str(arguments.get("input", arguments.get("patch", ""))), output)
        elif name == "update_plan":
            self._plan(arguments)
        elif name.startswith("mcp__"):
            server, _, tool = name.removeprefix("mcp__").partition("__")
            result = {"content": [{"type": "text", "text": output or ""}]}
            self.shown.append(
                McpToolCall(
                    id=self._id(),
                    server=server,
                    tool=tool,
                    arguments=arguments,
                    result=result,
                    status="completed",
                )
            )

    def _command(self, words: Sequence[str], cwd: str, output: str | None) -> None:
        code, text = _result(output or "")
        # Without a code it went on in the background, was refused, or was interrupted.
        status = "completed" if code == 0 else "failed"
        self.shown.append(
            CommandExecution(
                id=self._id(),
                command=shlex.join(words),
                aggregated_output=text,
                exit_code=code,
                status=status,
                cwd=cwd,
            )
        )

    def _patch(self, patch: str, output: str | None) -> None:
        changes = [Change(path=m[2].strip(), kind=_KINDS[m[1]]) for m in _HUNK.finditer(patch)]
        is_done = output is not None and _result(output)[0] == 0
        self.shown.append(
            FileChange(
                id=self._id(),
                changes=sorted(changes, key=lambda change: change.path),
                status="completed" if is_done else "failed",
                diff=patch,
            )
        )

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
    end = _OUTPUT.search(output)
    if end is None:
        return None, output
    code = _EXIT_CODE.search(output, 0, end.start())
    return (int(code[1]) if code else None), output[end.end() :]


def _arguments(text: str) -> dict[str, Any]:
    """A JSON object; empty where the text is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
