"""Makes the fields of calls in ACP: title, kind, places, and contents of bounded size.

Patches are shown as whole files.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.app.export.entries import ExportEntry, Text, entries
from codex_py.app.export.markdown import fenced
from codex_py.app.views.diffs import DiffLine, read_diff
from codex_py.app.views.item_text import agent_verb, script_of
from codex_py.protocol import event_items
from codex_py.protocol.approval import ApprovalRequest
from codex_py.protocol.calls import shortened
from codex_py.protocol.patched_file import PatchedFile
from codex_py.streams.plain_text import cut, plain

Fields: TypeAlias = dict[str, Any]
_KINDS: Final[Mapping[str, str]] = {
    "command_execution": "execute",
    "web_search": "fetch",
    "collab_tool_call": "think",
    "context_compaction": "think",
}
_MAX_TITLE: Final = 300
"""Limit in characters."""
_MAX_TEXT: Final = 32_000
"""Limit in characters."""
_MAX_FILE: Final = 1_000_000
"""Limit in bytes for a file that is shown whole. Only the hunks of larger files are shown."""
_MAX_FILES: Final = 200


def text_content(text: str) -> Fields:
    """Make a block of content from Markdown."""
    shown = {"type": "text", "text": shortened(text, _MAX_TEXT)}
    return {"type": "content", "content": shown}


def shown_call(
    item: event_items.ThreadItem,
    cwd: Path,
    *,
    is_done: bool,
    is_known: bool,
) -> Fields:
    """Make the fields of an item's call.

    Args:
        is_known: the call was shown before; the diffs of a patch that went well are not repeated.
    """
    (entry,) = entries([item])
    texts = [part for part in entry.parts if isinstance(part, Text)]
    content = [text_content(_markdown(text)) for text in texts]
    status = _status(item, entry, is_done=is_done)
    match item:
        case event_items.FileChange():
            paths = [cwd / change.path for change in item.changes]
            fields = _files(paths, cwd, _patch_kind(item))
            if status == "failed" or not is_known:
                diffs = _diffs(item.files, item.diff, paths, cwd)
                fields["content"] = [*diffs, *content]
        case event_items.CommandExecution():
            arguments = _arguments(item.command, item.cwd)
            fields = _call(entry.title, "execute", arguments)
            if is_done:
                fields["content"] = content
                fields["rawOutput"] = {"exit_code": item.exit_code}
        case event_items.McpToolCall():
            kind = "read" if item.tool == "view_image" else "other"
            fields = _call(f"{item.server}.{item.tool}", kind, item.arguments)
            if is_done:
                fields["content"] = content
        case _:
            title = _title(item, is_done=is_done) or entry.title
            kind = _KINDS.get(item.type, "other")
            fields = _call(title, kind, None)
            fields["content"] = content
    return {**fields, "status": status}


def asked_call(request: ApprovalRequest, cwd: Path) -> Fields:
    """The fields of the call in a question, with everything that the user needs to decide."""
    content: list[Fields] = []
    match request.kind:
        case "command":
            script = script_of(request.summary)
            arguments = _arguments(request.summary, str(request.cwd))
            fields = _call(script, "execute", arguments)
            shown = fenced(plain(script), "sh")
            content.append(text_content(shown))
        case "patch":
            fields = _files(request.paths, cwd, "edit")
            content += _diffs(
                request.files, request.summary, request.paths, request.cwd
            )
        case "mcp" | "network":
            name = request.summary
            arguments = None
            if request.tool is not None:
                name, arguments = request.tool
            # `mcp__server__tool` is shown as `server.tool`.
            title = name.removeprefix("mcp__").replace("__", ".", 1)
            fields = _call(title, "other", arguments)
    if request.reason:
        # Put the reason on one line: the model may have written it, and a line of it could pass
        # for the command.
        reason = " ".join(plain(request.reason).split())
        content.append(text_content(f"Reason: {reason}"))
    if request.agent:
        fields["title"] = f"{request.agent}: {fields['title']}"
    return {**fields, "content": content}


def _status(item: event_items.ThreadItem, entry: ExportEntry, *, is_done: bool) -> str:
    """The status of a call, in ACP's words."""
    if not is_done:
        return "in_progress"
    own = getattr(item, "status", None)
    if entry.failed or own in {"failed", "declined"}:
        return "failed"
    return "completed"


def _patch_kind(item: event_items.FileChange) -> str:
    kinds = {change.kind for change in item.changes}
    if kinds == {"delete"}:
        return "delete"
    return "edit"


def _title(item: event_items.ThreadItem, *, is_done: bool) -> str | None:
    """A title for the calls that have one in ACP only; None for the other calls."""
    match item:
        case event_items.ErrorItem(tool=tool):
            return tool
        case event_items.CollabToolCall():
            verb = agent_verb(item.tool, is_done=is_done)
            names = [item.names.get(each, each) for each in item.receiver_thread_ids]
            return " ".join([verb, *names])
        case event_items.ContextCompaction():
            return "Sum up the conversation, to make room"
        case _:
            return None


def _call(
    title: str,
    kind: str,
    arguments: Any,
) -> Fields:
    line = " ".join(plain(title).split())
    shown = cut(line, _MAX_TITLE) or "?"
    return {"title": shown, "kind": kind, "rawInput": arguments}


def _markdown(part: Text) -> str:
    if part.form == "code":
        return fenced(part.text)
    return part.text


def _arguments(command: str, cwd: str) -> Fields:
    script = shortened(script_of(command), _MAX_TEXT)
    return {"command": script, "cwd": cwd}


def _files(
    paths: Sequence[Path],
    cwd: Path,
    kind: str,
) -> Fields:
    """The fields of a call that changes files: their names in the title, and their places."""
    names: list[str] = []
    for path in paths:
        if path.is_relative_to(cwd):
            path = path.relative_to(cwd)
        names.append(str(path))
    fields = _call(f"{kind.capitalize()} {', '.join(names)}", kind, None)
    first = paths[:_MAX_FILES]
    places = [{"path": os.path.normpath(path)} for path in first]
    return {**fields, "locations": places}


def _diffs(
    files: Sequence[PatchedFile],
    diff: str,
    paths: Sequence[Path],
    cwd: Path,
) -> Sequence[Fields]:
    """Show the files whole. If one is unknown, too large or not text, show all hunks instead."""
    whole: list[Fields] = []
    for file in files[:_MAX_FILES]:
        old = _text(file.old)
        new = _text(file.new)
        if old is None or new is None:
            return list(_hunks(diff, paths, cwd))
        before = None if file.old is None else old
        whole.append(_diff(file.destination, before, new))
    return whole or list(_hunks(diff, paths, cwd))


def _text(data: bytes | None) -> str | None:
    """The text of a file, empty if there is no file; None if it cannot be shown."""
    if data is None:
        return ""
    if len(data) > _MAX_FILE or b"\0" in data:
        return None
    return data.decode(errors="replace")


def _hunks(
    diff: str,
    paths: Sequence[Path],
    cwd: Path,
) -> Iterator[Fields]:
    """Show each hunk of a diff as a file that has only the lines of the hunk."""
    # A diff leaves out the first slash.
    elsewhere = {str(path).lstrip("/"): path for path in paths}
    for file in read_diff(diff)[:_MAX_FILES]:
        name = file.moved_to or file.path
        path = elsewhere.get(name, cwd / name)
        for old, new in _sides(file.lines):
            before = None if file.verb == "Added" else old
            yield _diff(path, before, new)


def _sides(lines: Sequence[DiffLine]) -> Iterator[tuple[str, str]]:
    """The text of each hunk before and after the change."""
    old = ""
    new = ""
    for line in lines:
        match line.sign:
            case "@":
                yield old, new
                old = ""
                new = ""
            case "+":
                new += f"{line.text}\n"
            case "-":
                old += f"{line.text}\n"
            case " ":
                old += f"{line.text}\n"
                new += f"{line.text}\n"
            case "\\":
                # A remark, for example that the file has no newline at its end.
                pass
    yield old, new


def _diff(
    path: Path,
    old: str | None,
    new: str,
) -> Fields:
    return {
        "type": "diff",
        "path": os.path.normpath(path),
        "oldText": old,
        "newText": new,
    }
