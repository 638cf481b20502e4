"""Makes the fields of calls in ACP: title, kind, places, and contents of bounded size.

Patches are shown as whole files.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.app.export.entries import Text, entries
from codex_py.app.export.markdown import fenced
from codex_py.app.views.diffs import read_diff
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
_MAX_TEXT: Final = 32_000
_MAX_FILE: Final = 1_000_000
"""Limit in bytes for a file that is shown whole. Only the hunks of larger files are shown."""
_MAX_FILES: Final = 200


def text_content(text: str) -> Fields:
    """Make a block of content from Markdown."""
    shown = {"type": "text", "text": shortened(text, _MAX_TEXT)}
    return {"type": "content", "content": shown}


def shown_call(
    item: event_items.ThreadItem, cwd: Path, *, is_done: bool, is_known: bool
) -> Fields:
    """The fields of an item's call. `is_known`: it was shown before, a patch with its diffs."""
    (entry,) = entries([item])
    has_failed = entry.failed or getattr(item, "status", None) in {"failed", "declined"}
    content = [
        text_content(_markdown(part)) for part in entry.parts if isinstance(part, Text)
    ]
    match item:
        case event_items.FileChange():
            paths = [cwd / change.path for change in item.changes]
            kinds = {change.kind for change in item.changes}
            fields = _files(paths, cwd, "delete" if kinds == {"delete"} else "edit")
            if has_failed or not is_known:
                fields["content"] = [
                    *_diffs(item.files, item.diff, paths, cwd),
                    *content,
                ]
        case event_items.CommandExecution():
            fields = _call(entry.title, "execute", _arguments(item.command, item.cwd))
            if is_done:
                fields |= {
                    "content": content,
                    "rawOutput": {"exit_code": item.exit_code},
                }
        case event_items.McpToolCall():
            if item.tool == "view_image":
                kind = "read"
            else:
                kind = "other"
            fields = _call(f"{item.server}.{item.tool}", kind, item.arguments)
            if is_done:
                fields["content"] = content
        case _:
            title = _title(item, is_done=is_done) or entry.title
            fields = _call(title, _KINDS.get(item.type, "other"), None) | {
                "content": content
            }
    ended = "failed" if has_failed else "completed"
    return {**fields, "status": ended if is_done else "in_progress"}


def asked_call(request: ApprovalRequest, cwd: Path) -> Fields:
    """The fields of the call in a question, with everything that the user needs to decide."""
    content: list[Fields] = []
    match request.kind:
        case "command":
            script = script_of(request.summary)
            fields = _call(
                script, "execute", _arguments(request.summary, str(request.cwd))
            )
            content.append(text_content(fenced(plain(script), "sh")))
        case "patch":
            fields = _files(request.paths, cwd, "edit")
            content += _diffs(
                request.files, request.summary, request.paths, request.cwd
            )
        case "mcp" | "network":
            name, arguments = request.tool or (request.summary, None)
            fields = _call(
                name.removeprefix("mcp__").replace("__", ".", 1), "other", arguments
            )
    if request.reason:
        # Put the reason on one line: the model may have written it, and a line of it could pass
        # for the command.
        content.append(
            text_content(f"Reason: {' '.join(plain(request.reason).split())}")
        )
    if request.agent:
        fields["title"] = f"{request.agent}: {fields['title']}"
    return {**fields, "content": content}


def _title(item: event_items.ThreadItem, *, is_done: bool) -> str | None:
    match item:
        case event_items.ErrorItem(tool=tool):
            return tool
        case event_items.CollabToolCall():
            names = [item.names.get(each, each) for each in item.receiver_thread_ids]
            return " ".join([agent_verb(item.tool, is_done=is_done), *names])
        case event_items.ContextCompaction():
            return "Sum up the conversation, to make room"
        case _:
            return None


def _call(
    title: str,
    kind: str,
    arguments: Any,
) -> Fields:
    title = cut(" ".join(plain(title).split()), _MAX_TITLE) or "?"
    return {"title": title, "kind": kind, "rawInput": arguments}


def _markdown(part: Text) -> str:
    if part.form == "code":
        return fenced(part.text)
    return part.text


def _arguments(command: str, cwd: str) -> Fields:
    return {"command": shortened(script_of(command), _MAX_TEXT), "cwd": cwd}


def _files(
    paths: Sequence[Path],
    cwd: Path,
    kind: str,
) -> Fields:
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
    files: Sequence[PatchedFile], diff: str, paths: Sequence[Path], cwd: Path
) -> Iterator[Fields]:
    """Show the files whole. If one is unknown, too large or not text, show all hunks instead."""
    first = files[:_MAX_FILES]
    texts = [(_text(file.old), _text(file.new)) for file in first]
    if not texts or any(None in pair for pair in texts):
        yield from _hunks(diff, paths, cwd)
        return
    for file, (old, new) in zip(first, texts, strict=True):
        if file.old is None:
            old = None
        yield _diff(file.destination, old, new or "")


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
    # A diff leaves out the first slash.
    elsewhere = {str(path).lstrip("/"): path for path in paths}
    for file in read_diff(diff)[:_MAX_FILES]:
        name = file.moved_to or file.path
        path = elsewhere.get(name, cwd / name)
        old = ""
        new = ""
        hunks: list[tuple[str, str]] = []
        for line in file.lines:
            if line.sign == "\\":
                continue
            if line.sign == "@":
                hunks.append((old, new))
                old = ""
                new = ""
                continue
            if line.sign != "+":
                old += f"{line.text}\n"
            if line.sign != "-":
                new += f"{line.text}\n"
        hunks.append((old, new))
        for old, new in hunks:
            before = None if file.verb == "Added" else old
            yield _diff(path, before, new)


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
