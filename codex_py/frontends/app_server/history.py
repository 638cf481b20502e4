"""Reads stored threads in the format of Codex: the facts about each, and its turns."""

import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from codex_py.app.session import Session
from codex_py.app.thread import thread_items
from codex_py.config.config import Config
from codex_py.errors import SessionError
from codex_py.frontends.app_server.items import shown_item, turn_data
from codex_py.frontends.app_server.params import ThreadList
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.prompts import user_prompt
from codex_py.rollout.index import find_session, recent_sessions, thread_names
from codex_py.rollout.listing import beginning
from codex_py.rollout.reader import read_conversation
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS, SessionMeta, read_meta
from codex_py.version import __version__

_READ_BYTES: Final = 32_000_000
"""Number of bytes that are read from the end of a file."""
_PREVIEW_CHARACTERS: Final = 500
_MAX_PAGE = 100
_INTERACTIVE: Final = ("cli", "vscode")


def stored_file(
    home: Path,
    thread_id: str,
    *folders: str,
) -> Path:
    """Find the file of a thread. Raises a `SessionError` if it does not exist."""
    path = find_session(home, thread_id, folders or (SESSIONS, ARCHIVED_SESSIONS))
    if path is None:
        raise SessionError(f"no rollout found for thread id {thread_id}")
    return path


def thread_data(
    path: Path, name: str | None, model: str | None = None
) -> dict[str, Any]:
    """Describe a thread from its file. Raises a `SessionError` if the file cannot be read."""
    data = _stored(path, read_meta(path), path.stat().st_mtime_ns, name)
    if model is None:
        return data
    return data | {"model": model}


def list_threads(
    home: Path,
    asked: ThreadList,
    status: Any,
) -> dict[str, Any]:
    """List a page of threads.

    Args:
        status: a function from the id of a thread to its status.
    """
    names = thread_names(home)
    start = int(asked.cursor)
    size = min(asked.limit, _MAX_PAGE)
    end = start + size
    # One more than the page shows whether another page follows.
    matching = islice(_matching(home, asked, names), start, end + 1)
    found: list[dict[str, Any]] = []
    for path, meta, modified in matching:
        thread = _stored(path, meta, modified, names.get(meta.id))
        found.append({**thread, "status": status(meta.id)})
    more = str(end) if len(found) > size else None
    return {"data": found[:size], "nextCursor": more, "backwardsCursor": None}


def read_turns(path: Path, running: str | None = None) -> list[dict[str, Any]]:
    """Read the turns of a thread, oldest first.

    Args:
        running: the id of the turn that has not ended.

    Raises:
        SessionError: the file cannot be read.
    """
    meta = read_meta(path)
    thread_id = meta.id
    cwd = meta.cwd
    turns: list[list[EncodedItem]] = [[]]
    is_marked = False
    for item in read_conversation(path, _READ_BYTES):
        starts = _fact(item).get("type") == "task_started"
        is_marked = is_marked or starts
        # Forks, and files of earlier releases, do not say where turns begin.
        if starts or (not is_marked and user_prompt(item) is not None):
            turns.append([])
        turns[-1].append(item)
    return [
        turn
        for number, items in enumerate(turns)
        if (turn := _turn(items, f"{thread_id}-{number}", cwd, running)) is not None
    ]


def _turn(
    items: list[EncodedItem], turn_id: str, cwd: str, running: str | None
) -> dict[str, Any] | None:
    """Make a turn from items; None if it is empty. `turn_id`: the id if the file has none."""
    facts = {fact["type"]: fact for item in items if (fact := _fact(item))}
    turn_id = facts.get("task_started", {}).get("turn_id") or turn_id
    shown: list[dict[str, Any]] = []
    for item in thread_items(items):
        data = shown_item(item, f"{turn_id}-{len(shown) + 1}", cwd)
        if data is not None:
            shown.append(data)
    if not shown and "task_started" not in facts:
        return None
    begun = facts.get("task_started")
    ended = facts.get("task_complete")
    if "turn_aborted" in facts:
        status = "interrupted"
    else:
        status = "failed"
    if ended is not None or (begun is None and status == "failed"):
        status = "completed"
    return turn_data(
        turn_id,
        "inProgress" if turn_id == running else status,
        items=shown,
        itemsView="full",
        startedAt=begun and begun.get("started_at"),
        durationMs=ended and ended.get("duration_ms"),
    )


def _fact(item: EncodedItem) -> Mapping[str, Any]:
    """Decode a line about the start or end of a turn. Other lines give an empty object."""
    if b'"turn_id"' not in item and b"turn_aborted" not in item:
        return {}
    fact = decode_json(item)
    kinds = {"task_started", "task_complete", "turn_aborted"}
    if fact.get("type") in kinds:
        return fact
    return {}


def _matching(
    home: Path, asked: ThreadList, names: Mapping[str, str]
) -> Iterator[tuple[Path, SessionMeta, int]]:
    folder = ARCHIVED_SESSIONS if asked.archived else SESSIONS
    rows = recent_sessions(home, cwd=None, folder=folder)
    if asked.sort_key == "created_at":
        by_start = sorted(rows, key=lambda row: row[1].timestamp, reverse=True)
        rows = iter(by_start)
    if asked.sort_direction == "asc":
        rows = reversed(list(rows))
    if isinstance(asked.cwd, str):
        folders = [asked.cwd]
    else:
        folders = asked.cwd
    word = asked.search_term.casefold()
    sources = [*asked.source_kinds] or _INTERACTIVE
    providers = asked.model_providers
    for path, meta, modified in rows:
        if meta.source not in sources:
            continue
        if folders is not None and meta.cwd not in folders:
            continue
        if providers and meta.model_provider not in providers:
            continue
        if word:
            said = _said(path, names.get(meta.id)).casefold()
            if word not in said:
                continue
        yield path, meta, modified


def _said(path: Path, name: str | None) -> str:
    return f"{name or ''}\n{beginning(path)[0]}"


def _stored(
    path: Path, meta: SessionMeta, modified: int, name: str | None
) -> dict[str, Any]:
    return _thread(meta, name, *beginning(path), modified // 1_000_000_000, path)


def unsaved_thread(session: Session, config: Config) -> dict[str, Any]:
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
    updated: int,
    path: Path | None,
) -> dict[str, Any]:
    created = 0
    if meta.timestamp:
        created = int(datetime.fromisoformat(meta.timestamp).timestamp())
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
        "modelProvider": meta.model_provider or "",
        "model": model,
        "createdAt": created,
        "updatedAt": updated,
        "status": {"type": "notLoaded"},
        "path": path and str(path),
        "cwd": meta.cwd,
        "cliVersion": meta.cli_version,
        "originator": meta.originator,
        "source": source,
        "gitInfo": git,
        "turns": [],
    }
