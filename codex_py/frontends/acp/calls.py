"""Makes the fields of calls in ACP: title, kind, places, and contents of bounded size.

Patches are shown as whole files.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.app.views.command_script import script_of
from codex_py.app.views.diffs import DiffLine, read_diff
from codex_py.app.views.fences import fenced
from codex_py.app.views.item_words import ItemWords, Passage, item_words, tool_name
from codex_py.app.views.passages import safe_passages
from codex_py.protocol import event_items
from codex_py.protocol.approval import ApprovalRequest
from codex_py.protocol.calls import shortened
from codex_py.protocol.patched_file import PatchedFile
from codex_py.streams.plain_text import cut, plain

Fields: TypeAlias = dict[str, Any]
_KINDS: Final[Mapping[str, str]] = {
    "image": "read",
    "search": "fetch",
    "agents": "think",
    "compaction": "think",
}
"""The kinds of ACP for our kinds of items; `other` for all that are not here."""
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


def terminal_content(terminal_id: str) -> Fields:
    """Make the content that shows a terminal of the client."""
    return {"type": "terminal", "terminalId": terminal_id}


def shown_call(
    item: event_items.ThreadItem,
    cwd: Path,
    *,
    is_done: bool,
    is_known: bool,
    terminal_id: str | None = None,
) -> Fields:
    """Make the fields of an item's call.

    Args:
        terminal_id: the client's terminal in which the command runs; None for any other call.
        is_known: the call was shown before; the diffs of a patch that went well are not repeated.
    """
    words = item_words(item, is_done=is_done)
    kind = _KINDS.get(words.kind, "other")
    passages = safe_passages(words)
    match item:
        case event_items.FileChange():
            paths = [cwd / change.path for change in item.changes]
            fields = _files(paths, cwd, _patch_kind(item))
            if words.failed is not None or not is_known:
                diffs = _diffs(item.files, item.diff, paths, cwd)
                if diffs:
                    passages = [each for each in passages if each.form != "diff"]
                fields["content"] = [*diffs, *map(_text_block, passages)]
        case event_items.CommandExecution():
            arguments = _arguments(item.command, item.cwd)
            fields = _call(script_of(item.command), "execute", arguments)
            if is_done:
                content = list(map(_text_block, passages))
                if terminal_id is not None:
                    content = _in_terminal(terminal_id, item, content)
                fields["content"] = content
                fields["rawOutput"] = {"exit_code": item.exit_code}
        case event_items.McpToolCall():
            fields = _call(tool_name(item), kind, item.arguments)
            if is_done:
                # The title has the tool alone, so all arguments are below it.
                passages = safe_passages(replace(words, arguments=item.arguments))
                fields["content"] = list(map(_text_block, passages))
        case _:
            fields = _call(_title(item) or words.line, kind, None)
            fields["content"] = list(map(_text_block, passages))
    return {**fields, "status": _status(words, is_done=is_done)}


def _in_terminal(
    terminal_id: str, item: event_items.CommandExecution, content: list[Fields]
) -> list[Fields]:
    """The content of a command that has ended in a terminal. The terminal shows the output.

    If the exit code is not known, the output ends with the reason, which the terminal lacks.
    """
    shown = [terminal_content(terminal_id)]
    if item.exit_code is None or item.exit_code < 0:
        shown += content
    return shown


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


def _status(words: ItemWords, *, is_done: bool) -> str:
    """The status of a call, in ACP's words."""
    if not is_done:
        return "in_progress"
    if words.failed is not None:
        return "failed"
    return "completed"


def _title(item: event_items.ThreadItem) -> str | None:
    """A title for the calls that have one in ACP only; None for the other calls."""
    match item:
        case event_items.ErrorItem(tool=tool):
            return tool
        case event_items.ContextCompaction():
            return "Sum up the conversation, to make room"
        case _:
            return None


def _patch_kind(item: event_items.FileChange) -> str:
    kinds = {change.kind for change in item.changes}
    if kinds == {"delete"}:
        return "delete"
    return "edit"


def _call(
    title: str,
    kind: str,
    arguments: Any,
) -> Fields:
    line = " ".join(plain(title).split())
    shown = cut(line, _MAX_TITLE) or "?"
    return {"title": shown, "kind": kind, "rawInput": arguments}


def _text_block(passage: Passage) -> Fields:
    if passage.form in {"markdown", "plain"}:
        return text_content(passage.text)
    return text_content(fenced(passage.text))


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
