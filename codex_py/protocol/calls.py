"""Thread items of calls that no running tool shows: failed calls and past calls. LIGHT."""

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol, runtime_checkable

from codex_py.protocol.event_items import (
    Change,
    CommandExecution,
    ErrorItem,
    ThreadItem,
)
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import json_object
from codex_py.protocol.tools import AGENTS_NAMESPACE

_HEADING: Final = re.compile(r"^\*\*\* (Add|Delete|Update) File: (.+)$", re.MULTILINE)
_KINDS: Final[Mapping[str, Any]] = {
    "Add": "add",
    "Delete": "delete",
    "Update": "update",
}
_MAX_NAME_CHARS = 200
_MAX_MESSAGE_CHARS = 10_000
_EXIT_CODE: Final = re.compile(
    r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.MULTILINE
)
_WALL_TIME: Final = re.compile(
    r"^(?:Wall time|Duration): (\d{1,9}(?:\.\d{1,9})?) seconds$", re.MULTILINE
)
_IN_BACKGROUND: Final = re.compile(
    r"^Process running with session ID (\d+)$", re.MULTILINE
)
_OUTPUT: Final = re.compile(r"^Output:\n", re.MULTILINE)


@frozen
class PastCall:
    """A call of an earlier session, with its output."""

    id: str
    tool_name: str
    """The name from `called_tool`."""
    arguments: Mapping[str, Any]
    """The unchecked arguments; empty if they cannot be parsed. The text of a freeform tool is
    `input`."""
    output: str
    """The output that the model got, perhaps cut, without the error code."""
    error_code: str | None

    @property
    def has_run(self) -> bool:
        """False if the call failed before it reached its tool."""
        return self.error_code not in {"InvalidArgs", "UnknownTool"}


class PastItems:
    """The thread items that have been read back so far."""

    def __init__(self) -> None:
        self.items: dict[str, ThreadItem] = {}
        """The items by id, in the order of display."""
        self.noted: dict[str, str] = {}
        """Ids of items that later calls of a tool may change, by keys that the tool chooses."""

    def next_id(self) -> str:
        return f"history_{len(self.items)}"


@runtime_checkable
class Replayable(Protocol):
    """A tool whose calls are shown when a session is read back."""

    def replay(self, call: PastCall, past: PastItems) -> ThreadItem | None:
        """The item of a call: a new one, or a changed version of an earlier one in `past`.

        After None, a call with an error code is shown as an error, and any other call is not shown.
        """
        ...


@frozen
class CommandReport:
    """The output of a command as the model got it."""

    text: str
    """The text that the command printed; the whole output if it has no header."""
    exit_code: int | None = None
    duration_ms: int | None = None
    process_id: str | None = None
    """The id of a command that continued in the background."""
    has_header: bool = True


def read_report(output: str) -> CommandReport:
    """Parse a command's output in any of the formats of Codex."""
    if output.startswith("{"):
        match json_object(output):
            case {"metadata": {"exit_code": int(code)}, **others}:
                return CommandReport(str(others.get("output", "")), code)
            case _:
                pass
    heading = _OUTPUT.search(output)
    if heading is None or heading.start() == 0:
        return CommandReport(output, has_header=False)
    header = output[: heading.start()]
    text = output[heading.end() :]
    running = _IN_BACKGROUND.search(header)
    process_id = None if running is None else running[1]
    exited = _EXIT_CODE.search(header)
    if exited is None:
        return CommandReport(text, process_id=process_id)
    duration_ms = None
    time = _WALL_TIME.search(header)
    if time is not None:
        duration_ms = int(float(time[1]) * 1000)
    return CommandReport(text, int(exited[1]), duration_ms, process_id)


def past_command(
    item_id: str,
    command: str,
    cwd: str,
    report: CommandReport,
    *,
    declined: bool = False,
) -> CommandExecution:
    """The item of a past command.

    Without an exit code, it runs in the background if it has a `process_id`; else it was refused or
    interrupted.
    """
    if declined:
        status = "declined"
    elif report.exit_code == 0 or report.process_id is not None:
        status = "completed"
    else:
        status = "failed"
    return CommandExecution(
        id=item_id,
        command=command,
        aggregated_output=report.text,
        exit_code=report.exit_code,
        status=status,
        cwd=cwd,
        duration_ms=report.duration_ms,
    )


def failed_call(
    item_id: str, tool: str, call_id: str, code: str, reason: str
) -> ErrorItem:
    """The item of a call that failed before its tool could show one.

    Its tool is unknown, for instance, or its arguments are invalid.
    """
    tool = shortened(tool, _MAX_NAME_CHARS)
    name = tool.removeprefix(AGENTS_NAMESPACE) or "a call without a name"
    prefix = f"{name} failed: "
    return ErrorItem(
        id=item_id,
        message=prefix + shortened(reason.removeprefix(prefix)),
        tool=tool,
        call_id=call_id,
        code=code,
    )


def named_changes(patch: str) -> list[Change]:
    """The files that the headings of a patch name, sorted by path. Paths are as written there."""
    changes: list[Change] = []
    for heading in _HEADING.finditer(patch):
        word, path = heading.groups()
        changes.append(Change(path=path.strip(), kind=_KINDS[word]))
    return sorted(changes, key=lambda change: change.path)


def shortened(text: str, max_chars: int = _MAX_MESSAGE_CHARS) -> str:
    """The text, or its first and last characters with an ellipsis between them."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}…{text[-half:]}"
