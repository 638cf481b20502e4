"""Reads stored threads in the format of Codex: the facts about each, and its turns."""

import time
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from codex_py.app.session import Session
from codex_py.app.thread import thread_items
from codex_py.config.config import Config
from codex_py.errors import SessionError
from codex_py.frontends.app_server.params import ThreadList
from codex_py.frontends.app_server.turn_items.items import (
    Fields,
    ShownItem,
    as_review,
    shown_item,
    turn_data,
)
from codex_py.frontends.app_server.turn_items.plan_items import separated
from codex_py.protocol.event_items import AgentMessage, ThreadItem
from codex_py.protocol.json_fields import as_object, lenient_integer, text_field
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.plans import proposed_plan
from codex_py.protocol.prompts import user_prompt
from codex_py.rollout.index import find_session, recent_sessions, thread_names
from codex_py.rollout.listing import beginning
from codex_py.rollout.reader import read_conversation
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS, SessionMeta, read_meta
from codex_py.rollout.thread_git import git_of
from codex_py.version import __version__

_SEARCHED_BYTES: Final = 8_000_000
"""The size of the largest file in which changes of the git information are looked for."""
_READ_BYTES: Final = 32_000_000
"""Number of bytes that are read from the end of a file."""
_PREVIEW_CHARACTERS: Final = 500
_MAX_PAGE: Final = 100
"""Number of threads in a page, whatever the client asks for."""
_INTERACTIVE: Final = ("cli", "vscode")
"""The sources of threads that are listed unless the client names others."""
_REVIEW: Final = b'{"type":"entered_review_mode"'
_INJECTED: Final = b'{"type":"items_injected"'
_ERROR_INFO: Final = {
    "context_window_exceeded": "contextWindowExceeded",
    "server_overloaded": "serverOverloaded",
    "unauthorized": "unauthorized",
    "usage_limit_exceeded": "usageLimitExceeded",
}
"""Kinds of errors by their names in the session files of Codex. Every other one is `other`."""
_TURN_EVENTS: Final = {"task_started", "task_complete", "turn_aborted"}


def stored_file(
    home: Path,
    thread_id: str,
    *folders: str,
) -> Path:
    """Find the file of a thread. Raises a `SessionError` if it does not exist.

    `folders`: where to look, such as `SESSIONS`; without any, archived threads are found too.
    """
    path = find_session(home, thread_id, folders or (SESSIONS, ARCHIVED_SESSIONS))
    if path is None:
        raise SessionError(f"no rollout found for thread id {thread_id}")
    return path


def thread_data(path: Path, name: str | None, model: str | None = None) -> Fields:
    """Describe a thread from its file. Raises a `SessionError` if the file cannot be read.

    `model`: None for the one that the file names.
    """
    meta = read_meta(path)
    try:
        modified_ns = path.stat().st_mtime_ns
    except OSError as error:
        raise SessionError(f"cannot read {path}: {error.strerror}") from error
    data = _stored(path, meta, modified_ns, name)
    if model is not None:
        data["model"] = model
    return data


def list_threads(
    home: Path,
    asked: ThreadList,
    status: Callable[[str], Mapping[str, Any]],
) -> Fields:
    """List a page of threads.

    Args:
        status: returns the status of a thread by its id.
    """
    names = thread_names(home)
    start = int(asked.cursor)
    size = min(asked.limit, _MAX_PAGE)
    end = start + size
    # One more than the page shows whether another page follows.
    matching = islice(_matching(home, asked, names), start, end + 1)
    found: list[Fields] = []
    for path, meta, modified_ns in matching:
        thread = _stored(path, meta, modified_ns, names.get(meta.id))
        thread["status"] = status(meta.id)
        found.append(thread)
    next_cursor = None
    if len(found) > size:
        next_cursor = str(end)
    return {"data": found[:size], "nextCursor": next_cursor, "backwardsCursor": None}


def read_turns(path: Path, running: str | None = None) -> list[Fields]:
    """Read the turns of a thread, oldest first.

    Args:
        running: the id of the turn that has not ended.

    Raises:
        SessionError: the file cannot be read.
    """
    meta = read_meta(path)
    turns: list[Fields] = []
    for stored in _split_into_turns(path, meta.id):
        turn = _turn(stored.items, stored.id, meta.cwd, running)
        if turn is not None:
            turns.append(turn)
    return turns


def prompts_of_turns(path: Path) -> dict[str, int]:
    """Count the prompts of each turn, oldest first. Injected ones count too.

    Raises:
        SessionError: the file cannot be read.
    """
    turns = _split_into_turns(path, read_meta(path).id)
    return {
        turn.id: sum(
            user_prompt(item) is not None for item in (*turn.items, *turn.injected)
        )
        for turn in turns
    }


@dataclass(slots=True)
class _StoredTurn:
    """The lines of a turn."""

    id: str
    items: list[EncodedItem] = field(default_factory=list[EncodedItem])
    injected: list[EncodedItem] = field(default_factory=list[EncodedItem])
    """The items that a client has injected, which are not shown."""


def _split_into_turns(path: Path, thread_id: str) -> list[_StoredTurn]:
    """Split a thread into its turns. The first one has the items before the first turn."""
    turns = [_StoredTurn(f"{thread_id}-0")]
    is_marked = False
    injected = 0
    for item in read_conversation(path, _READ_BYTES):
        count = _injected_count(item)
        if count:
            injected = count
            continue
        event = _turn_event(item)
        if event:
            injected = 0
        elif injected:
            injected -= 1
            turns[-1].injected.append(item)
            continue
        starts = event.get("type") == "task_started"
        is_marked = is_marked or starts
        # Forks, and files of earlier releases, do not say where turns begin.
        if starts or (not is_marked and user_prompt(item) is not None):
            turn_id = event.get("turn_id") or f"{thread_id}-{len(turns)}"
            turns.append(_StoredTurn(turn_id))
        turns[-1].items.append(item)
    return turns


def _injected_count(item: EncodedItem) -> int:
    """The number of items behind this line that a client has injected."""
    if not item.startswith(_INJECTED):
        return 0
    return lenient_integer(decode_json(item).get("count")) or 0


def _parts(item: ThreadItem) -> Sequence[ShownItem]:
    """The item; of a message that proposes a plan, the plan as an item of its own too."""
    if isinstance(item, AgentMessage) and proposed_plan(item.text) is not None:
        return separated(item)
    return [item]


def _turn(
    items: list[EncodedItem],
    turn_id: str,
    cwd: str,
    running: str | None,
) -> Fields | None:
    """Make a turn from items; None if it is empty."""
    found: dict[str, Mapping[str, Any]] = {}
    for item in items:
        event = _turn_event(item)
        if event:
            found[event["type"]] = event
    begun = found.get("task_started", {})
    ended = found.get("task_complete", {})
    shown: list[Fields] = []
    for item in thread_items(items):
        for part in _parts(item):
            data = shown_item(part, "", cwd)
            if data is not None:
                shown.append(data)
    review = _reviewed(items)
    if review:
        shown = as_review(shown, review, is_over=turn_id != running)
    for number, data in enumerate(shown, 1):
        data["id"] = f"{turn_id}-{number}"
    if not shown and not begun:
        return None
    status = "inProgress"
    if turn_id != running:
        status = _status(found)
    return turn_data(
        turn_id,
        status,
        items=shown,
        itemsView="full",
        error=_error(ended),
        startedAt=begun.get("started_at"),
        durationMs=ended.get("duration_ms"),
    )


def _reviewed(items: Iterable[EncodedItem]) -> str:
    """The change that a turn reviews, in words; empty if the turn is no review."""
    for item in items:
        if item.startswith(_REVIEW):
            return text_field(decode_json(item), "user_facing_hint")
    return ""


def _error(ended: Mapping[str, Any]) -> Fields | None:
    """The error of a turn that failed; None for another turn."""
    error = as_object(ended.get("error"))
    if not error:
        return None
    return {
        "message": text_field(error, "message"),
        "codexErrorInfo": _ERROR_INFO.get(
            text_field(error, "codex_error_info"), "other"
        ),
        "additionalDetails": None,
    }


def _status(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The status of a turn that has ended. `found`: the events about it, by their types."""
    if "task_complete" in found:
        return "failed" if _error(found["task_complete"]) else "completed"
    if "turn_aborted" in found or "task_started" in found:
        # Without a word about its end, the process ended in the middle of the turn.
        return "interrupted"
    # The file does not say where turns begin and end.
    return "completed"


def _turn_event(item: EncodedItem) -> Mapping[str, Any]:
    """Decode a line about the start or end of a turn. Other lines give an empty object."""
    if b'"turn_id"' not in item and b"turn_aborted" not in item:
        return {}
    event = decode_json(item)
    if event.get("type") in _TURN_EVENTS:
        return event
    return {}


def _matching(
    home: Path,
    asked: ThreadList,
    names: Mapping[str, str],
) -> Iterator[tuple[Path, SessionMeta, int]]:
    """The threads that a client asks for: the file, its first line, and when it changed, in ns."""
    folder = ARCHIVED_SESSIONS if asked.archived else SESSIONS
    rows = recent_sessions(home, cwd=None, folder=folder)
    if asked.sort_key == "created_at":
        rows = iter(sorted(rows, key=_started, reverse=True))
    if asked.sort_direction == "asc":
        rows = reversed(list(rows))
    folders = asked.cwd
    if isinstance(folders, str):
        folders = [folders]
    word = asked.search_term.casefold()
    sources = asked.source_kinds or _INTERACTIVE
    providers = asked.model_providers
    for path, meta, modified_ns in rows:
        if meta.source not in sources:
            continue
        if folders is not None and meta.cwd not in folders:
            continue
        if providers and meta.model_provider not in providers:
            continue
        if word:
            prompt, _ = beginning(path)
            name = names.get(meta.id, "")
            if word not in f"{name}\n{prompt}".casefold():
                continue
        yield path, meta, modified_ns


def _started(row: tuple[Path, SessionMeta, int]) -> str:
    _, meta, _ = row
    return meta.timestamp


def _stored(
    path: Path,
    meta: SessionMeta,
    modified_ns: int,
    name: str | None,
) -> Fields:
    prompt, model = beginning(path)
    updated_s = modified_ns // 1_000_000_000
    meta = replace(meta, git=git_of(path, meta, _SEARCHED_BYTES))
    return _thread(meta, name, prompt, model, updated_s, path)


def unsaved_thread(session: Session, config: Config) -> Fields:
    """Describe a thread without a file."""
    meta = SessionMeta(
        id=session.thread_id,
        cwd=str(config.cwd),
        originator="",
        cli_version=__version__,
        source="vscode",
        model_provider=config.model_provider,
    )
    prompts = session.past_prompts()
    prompt = prompts[0].prompt.text if prompts else ""
    model = session.settings.model
    now = int(time.time())
    return _thread(meta, session.name, prompt, model, now, None)


def _thread(
    meta: SessionMeta,
    name: str | None,
    prompt: str,
    model: str | None,
    updated_s: int,
    path: Path | None,
) -> Fields:
    """A thread in the format of Codex. `path`: None if the thread has no file."""
    created_s = 0
    if meta.timestamp:
        created = datetime.fromisoformat(meta.timestamp)
        created_s = int(created.timestamp())
    source = "unknown"
    if meta.source in ("cli", "vscode", "exec"):
        source = meta.source
    git = None
    if meta.git:
        git = {
            "sha": meta.git.get("commit_hash"),
            "branch": meta.git.get("branch"),
            "originUrl": meta.git.get("repository_url"),
        }
    return {
        "id": meta.id,
        "sessionId": meta.root_id or meta.id,
        "forkedFromId": meta.forked_from_id,
        "parentThreadId": meta.parent_id,
        "name": name,
        "preview": " ".join(prompt.split())[:_PREVIEW_CHARACTERS],
        "ephemeral": path is None,
        # There are no projects here, to which Codex adds threads of its own programs.
        "projectId": None,
        "modelProvider": meta.model_provider or "",
        "model": model,
        "createdAt": created_s,
        "updatedAt": updated_s,
        "recencyAt": updated_s,
        "status": {"type": "notLoaded"},
        "path": path and str(path),
        "cwd": meta.cwd,
        "cliVersion": meta.cli_version,
        "originator": meta.originator,
        "source": source,
        "gitInfo": git,
        "turns": [],
    }
