"""Replays an earlier session: makes the thread items that were shown live."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from codex_py.core.response_items import item_events
from codex_py.errors import MalformedItem
from codex_py.protocol import calls, event_items
from codex_py.protocol.bugs import bug_line
from codex_py.protocol.items import parse_item
from codex_py.protocol.json_fields import json_object, text_field
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.prompts import is_summary, message_texts, prompt_of
from codex_py.protocol.tools import called_tool, read_coded_text
from codex_py.tools.past import past_tool_finder

_OWN_COMMAND: Final = re.compile(
    r"<user_shell_command>\n<command>\n(.*)\n</command>\n<result>\n(Exit code: .*)"
    r"\n</result>\n</user_shell_command>",
    re.DOTALL,
)
"""The message to the model about a command that the user ran."""


def past_items(items: Iterable[EncodedItem]) -> list[event_items.ThreadItem]:
    """Return the items of a history in its order, with new ids: `history_0`, `history_1`, …

    A call and its output become one item, which the tool makes. Items that were not shown live,
    such as the context, are left out, and so are calls of unknown tools. If the session file has
    the resulting diff of a patch, the item has that diff. Otherwise its `diff` is the envelope that
    the model wrote, and its paths are those in the envelope.
    """
    return _Transcript(list(items)).replay()


class _Transcript:
    def __init__(self, encoded: Sequence[EncodedItem]) -> None:
        self._past = calls.PastItems()
        self._find_tool = past_tool_finder()
        self._patches: dict[int, event_items.FileChange] = {}
        """Applied patches of the current response, by the index of their call. Their diffs come
        later in the file."""
        self._answered: int | None = None
        """The index of the last call in the current response that has an output so far."""
        self._encoded = encoded
        self._items: Sequence[dict[str, Any]] = [decode_json(item) for item in encoded]
        self._output_of = _outputs(self._items)
        """The indices of outputs, by those of their calls."""
        self._call_of = {output: call for call, output in self._output_of.items()}

    def replay(self) -> list[event_items.ThreadItem]:
        """Return the thread items. Call this once."""
        for index, item in enumerate(self._items):
            self._replay_item(index, item, self._encoded[index])
        return list(self._past.items.values())

    def _show(self, item: event_items.ThreadItem) -> None:
        self._past.items[item.id] = item

    def _replay_item(
        self, index: int, item: dict[str, Any], encoded: EncodedItem
    ) -> None:
        match item:
            case {"role": "user"}:
                self._user(item, encoded)
            case {"type": "function_call_output" | "custom_tool_call_output"}:
                self._answered = self._call_of.get(index)
            case {"role": "assistant"} | {"type": "reasoning" | "web_search_call"}:
                with suppress(MalformedItem):
                    for event in item_events(parse_item(item), self._past.next_id):
                        self._show(event.item)
            case {"type": "compaction" | "compaction_summary"}:
                self._show_compaction()
            case {
                "type": "function_call",
                "name": str(name),
                "arguments": str(arguments),
            }:
                self._call(index, item, name, json_object(arguments))
            case {"type": "custom_tool_call", "name": str(name), "input": str(text)}:
                self._call(index, item, name, {"input": text})
            case {"type": "local_shell_call", "action": {"command": list()} as action}:
                folder = action.get("working_directory")
                given = {"command": action["command"], "workdir": folder}
                self._call(index, item, "local_shell", given)
            case _:
                self._fact(item)

    def _fact(self, item: dict[str, Any]) -> None:
        """Show a line of the session file that is not an item of the model."""
        match item:
            case {"type": "patch_applied", "diff": str(diff)}:
                self._show(replace(self._applied_patch(), diff=diff))
            case {"type": "task_complete", "error": {"message": str(message)}}:
                id_ = self._past.next_id()
                self._show(event_items.ErrorItem(id=id_, message=message, code="turn"))
            case {"type": "task_complete", "duration_ms": int(duration_ms)}:
                id_ = self._past.next_id()
                self._show(event_items.TurnTime(id=id_, duration_ms=duration_ms))
            case {"type": "turn_aborted", "reason": "interrupted"}:
                message = event_items.INTERRUPTED
                id_ = self._past.next_id()
                why = text_field(item, "error")
                if why:
                    message = f"{message}: {why}"
                self._show(
                    event_items.ErrorItem(id=id_, message=message, code="aborted")
                )
            case _:
                pass

    def _applied_patch(self) -> event_items.FileChange:
        """Return the item of the patch whose diff comes next in the file."""
        index = self._answered
        if index is None and self._patches:
            # In older files the diffs come before the outputs of their response, in the order of
            # the calls.
            index = next(iter(self._patches))
        if index in self._patches:
            return self._patches.pop(index)
        # A command applied the patch.
        id_ = self._past.next_id()
        return event_items.FileChange(id=id_, changes=[], status="completed")

    def _user(self, item: dict[str, Any], encoded: EncodedItem) -> None:
        prompt = prompt_of(item)
        if prompt is not None:
            self._show(
                event_items.UserMessage(
                    id=self._past.next_id(), text=prompt.text, images=prompt.images
                )
            )
        elif is_summary(encoded):
            self._show_compaction()
        else:
            self._own_command("".join(message_texts(item.get("content"))))

    def _own_command(self, text: str) -> None:
        """Show a command that the user ran, if the text is a message about one."""
        found = _OWN_COMMAND.fullmatch(text)
        if found is not None:
            report = calls.read_report(found[2])
            ran = calls.past_command(self._past.next_id(), found[1], "", report)
            self._show(replace(ran, is_users=True))

    def _show_compaction(self) -> None:
        id_ = self._past.next_id()
        self._show(event_items.ContextCompaction(id=id_, status="completed"))

    def _call(
        self, index: int, item: dict[str, Any], name: str, arguments: dict[str, Any]
    ) -> None:
        if self._answered is not None:
            # The outputs of a response come after all of its calls: this call is of the next one.
            self._answered = None
            self._patches.clear()
        call = self._past_call(index, item, name, arguments)
        shown = self._item_of(call)
        if shown is not None:
            self._show(shown)
        if isinstance(shown, event_items.FileChange) and shown.status == "completed":
            self._patches[index] = shown

    def _past_call(
        self, index: int, item: dict[str, Any], name: str, arguments: dict[str, Any]
    ) -> calls.PastCall:
        """Return a call with its output; the output is empty if the file has none."""
        answer: dict[str, Any] = {}
        if index in self._output_of:
            answer = self._items[self._output_of[index]]
        text = "".join(message_texts(answer.get("output")))
        error_code, output = read_coded_text(text)
        call_id = str(item.get("call_id") or item.get("id") or "")
        name = called_tool(str(item.get("namespace") or ""), name)
        return calls.PastCall(call_id, name, arguments, output, error_code)

    def _item_of(self, call: calls.PastCall) -> event_items.ThreadItem | None:
        """Return the item that shows a call; None if its tool shows none."""
        tool = self._find_tool(call.tool_name)
        shown = None
        if tool is not None:
            shown = _replayed(tool, call, self._past)
        if shown is None and call.error_code is not None:
            id_ = self._past.next_id()
            return calls.failed_call(
                id_, call.tool_name, call.id, call.error_code, call.output
            )
        return shown


def _replayed(
    tool: calls.Replayable, call: calls.PastCall, past: calls.PastItems
) -> event_items.ThreadItem | None:
    try:
        return tool.replay(call, past)
    except Exception as bug:  # noqa: BLE001 - the session is worth more than the item of one call
        text = f"it cannot be shown: {bug_line(bug)}"
        return calls.failed_call(
            past.next_id(), call.tool_name, call.id, "UnknownError", text
        )


def _outputs(items: Sequence[dict[str, Any]]) -> dict[int, int]:
    """Return the index of each call's output, by the index of the call.

    A `call_id` may occur twice.
    """
    open_calls: dict[str, list[int]] = {}
    outputs: dict[int, int] = {}
    for index, item in enumerate(items):
        kind = str(item.get("type", ""))
        call_id = str(item.get("call_id") or item.get("id"))
        if kind.endswith("_call_output") and open_calls.get(call_id):
            outputs[open_calls[call_id].pop(0)] = index
        elif kind.endswith("_call"):
            open_calls.setdefault(call_id, []).append(index)
    return outputs
