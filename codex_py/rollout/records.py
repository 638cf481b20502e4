"""The names of session files, the format of their lines, and the first line.

The format is the classic one of Codex: JSON lines `{"timestamp", "type", "payload"}`, the first of type
`session_meta`. Files that Codex writes today ("native" here) have numbered lines, and a program
that does not number its lines cannot continue them. They are read, never appended to.
"""

import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from codex_py.errors import SessionError
from codex_py.filesystem.reading import open_ordinary
from codex_py.protocol.frozen import frozen
from codex_py.protocol.ids import is_thread_id, utc_timestamp
from codex_py.protocol.json_fields import (
    as_object,
    lenient_integer,
    object_field,
    text_field,
)
from codex_py.protocol.messages import decode_json, encode_json
from codex_py.protocol.response_order import HistoryPlace
from codex_py.protocol.stream import PlanLimit, PlanUse, Usage

SESSIONS = "sessions"
ARCHIVED_SESSIONS = "archived_sessions"

OTHER_SESSION = "restore it from a backup, or use another session"
"""The advice about a file without which a session cannot be read."""

MAX_LINE_BYTES = 64 << 20
"""The limit for a line with its newline. A longer line counts as damaged: no provider accepts an item
of this size."""

_FILE_NAME = re.compile(
    r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-f-]{36})(?:_[0-9a-f-]{36})?\.jsonl"
)
PAID_BY_PLAN = "paid_by_plan"
"""The field of a `token_count` that is true if a ChatGPT plan has paid for the last tokens."""
_USAGE_FIELDS = tuple(Usage.__dataclass_fields__)

_T = TypeVar("_T")


@frozen(kw_only=True)
class SessionMeta:
    """The first line of a session file."""

    id: str
    """The thread id."""
    cwd: str
    """The working directory, absolute."""
    originator: str
    """The frontend: `codex_exec`, `codex_cli_rs`, …"""
    cli_version: str
    source: Any
    """`exec` or `cli`; an object in files of subagents."""
    model_provider: str | None
    """The provider's key in the configuration."""
    base_instructions: str | None = None
    """The base prompt. It is not an item: today's Codex puts it before the items."""
    git: Mapping[str, str] = field(default_factory=dict[str, str])
    forked_from_id: str | None = None
    continues_id: str | None = None
    """The thread of a native file that this one continues. Only we use it: Codex ignores it."""
    root_id: str | None = None
    """The session at the top, if this is a subagent."""
    parent_id: str | None = None
    """The session that opened this one, if it is a subagent."""
    timestamp: str = field(default_factory=utc_timestamp)
    native: bool = False
    """True for a file with numbered lines. It is continued in a new file, which has a new thread id,
    and this id as `forked_from_id`."""
    history_base: tuple[str, int] | None = None
    """The original thread of a native fork, and the number of the first line there that is not
    shared."""

    @property
    def is_of_subagent(self) -> bool:
        return isinstance(self.source, dict)

    def payload(self) -> dict[str, Any]:
        """Return the payload of the line, as Codex writes it."""
        data: dict[str, Any] = {
            "id": self.id,
            "timestamp": self.timestamp,
            "cwd": self.cwd,
            "originator": self.originator,
            "cli_version": self.cli_version,
            "instructions": None,
            "source": self.source,
            "model_provider": self.model_provider,
            "git": dict(self.git),
        }
        if self.base_instructions is not None:
            data["base_instructions"] = {"text": self.base_instructions}
        if self.forked_from_id is not None:
            data["forked_from_id"] = self.forked_from_id
        if self.continues_id is not None:
            data["continues_id"] = self.continues_id
        if self.parent_id is not None:
            data["session_id"] = self.root_id
            data["parent_thread_id"] = self.parent_id
            data["thread_source"] = "subagent"
            data["multi_agent_version"] = "v1"
        return data

    @classmethod
    def from_line(cls, first_line: bytes) -> "SessionMeta":
        """Read the first line of a file. Only the id is required.

        Raises:
            ValueError: it is not session metadata.
        """
        line = as_object(decode_json(first_line))
        if _value(line, "type", str) != "session_meta":
            raise ValueError("not session metadata")
        payload = object_field(line, "payload")
        thread_id = text_field(payload, "id")
        if not is_thread_id(thread_id):
            raise ValueError("session metadata without a thread id")
        cwd = text_field(payload, "cwd")
        if "\0" in cwd:
            raise ValueError("session metadata with a directory that cannot be")
        base = object_field(payload, "history_base")
        history_base = None
        if base:
            base_end = _value(base, "end_ordinal_exclusive", int) or 0
            history_base = (text_field(base, "thread_id"), base_end)
        # Files of older programs have the text itself.
        instructions = _value(payload.get("base_instructions"), "text", str)
        instructions = instructions or _value(payload, "instructions", str)
        return cls(
            id=thread_id,
            cwd=cwd,
            originator=text_field(payload, "originator"),
            cli_version=text_field(payload, "cli_version"),
            source=payload.get("source"),
            model_provider=_value(payload, "model_provider", str),
            base_instructions=instructions,
            git=object_field(payload, "git"),
            forked_from_id=_value(payload, "forked_from_id", str),
            continues_id=_value(payload, "continues_id", str),
            root_id=_value(payload, "session_id", str),
            parent_id=_value(payload, "parent_thread_id", str),
            timestamp=text_field(payload, "timestamp"),
            native="ordinal" in line or "history_mode" in payload,
            history_base=history_base,
        )


def session_path(home: Path, meta: SessionMeta) -> Path:
    """Return the path of a new session file. Folder and name are in local time, as in Codex."""
    started = datetime.fromisoformat(meta.timestamp).astimezone()
    folder = home / SESSIONS / f"{started:%Y/%m/%d}"
    return folder / f"rollout-{started:%Y-%m-%dT%H-%M-%S}-{meta.id}.jsonl"


@contextmanager
def session_lines(path: Path) -> Generator[tuple[SessionMeta, BinaryIO]]:
    """Open a session file. Yields the metadata, and the file positioned after that line.

    Raises:
        SessionError: the file cannot be read, or does not begin with session metadata.
    """
    try:
        with os.fdopen(open_ordinary(path), "rb", buffering=1 << 16) as file:
            try:
                meta = SessionMeta.from_line(file.readline(MAX_LINE_BYTES))
            except (ValueError, RecursionError) as error:
                raise SessionError(
                    f"{path} is damaged: it does not start with session metadata; {OTHER_SESSION}"
                ) from error
            yield meta, file
    except OSError as error:
        raise SessionError(
            f"the session file {path} cannot be read: {error.strerror}"
        ) from error


def read_meta(path: Path) -> SessionMeta:
    """Read the metadata of a session file. Raises the same as `session_lines`."""
    with session_lines(path) as (meta, _):
        return meta


def thread_id_of(file_name: str) -> str | None:
    """Return the thread id in the name of a session file; None for other files."""
    match = _FILE_NAME.fullmatch(file_name)
    return match and match[1]


def home_of(path: Path) -> Path:
    """Return the home that contains a session file. Raises a `SessionError` if there is none."""
    for folder in path.parents:
        if folder.name in {SESSIONS, ARCHIVED_SESSIONS}:
            return folder.parent
    raise SessionError(f"{path} does not lie in a {SESSIONS!r} folder")


def line(
    kind: str,
    payload: bytes | Mapping[str, Any],
    place: HistoryPlace | None = None,
    later_ms: int = 0,
) -> bytes:
    """Encode one line, with its newline.

    Args:
        payload: JSON as bytes, or an object to encode.
        place: the item's place in the history. Codex ignores this field.
        later_ms: the time of the line is so much later than now.
    """
    if not isinstance(payload, bytes):
        payload = encode_json(payload)
    where = b""
    if place is not None:
        where = b'"place":[%d,%d,%d,%d],' % place
    fields = (utc_timestamp(later_ms).encode(), where, kind.encode(), payload)
    return b'{"timestamp":"%b",%b"type":"%b","payload":%b}\n' % fields


def token_count(
    total: Usage,
    last: Usage,
    context_window: int | None,
    plan: PlanUse | None = None,
) -> dict[str, Any]:
    """Make the payload of an `event_msg` with the tokens of the thread and of its last response.

    `plan`: the use of the ChatGPT plan that paid for the last tokens; None if no plan did.
    """
    payload = {
        "type": "token_count",
        "info": {
            "total_token_usage": _usage_payload(total),
            "last_token_usage": _usage_payload(last),
            "model_context_window": context_window,
        },
        "rate_limits": None,
    }
    if plan is None:
        return payload
    limits = {
        "primary": _limit_payload(plan.primary),
        "secondary": _limit_payload(plan.secondary),
    }
    # The limits have the form of Codex, which ignores the other field.
    return {**payload, "rate_limits": limits, PAID_BY_PLAN: True}


def _limit_payload(limit: PlanLimit | None) -> dict[str, Any] | None:
    if limit is None:
        return None
    return {
        "used_percent": limit.used_percent,
        "window_minutes": limit.window_minutes,
        "resets_at": limit.resets_at,
    }


def read_token_count(payload: Mapping[str, Any]) -> tuple[Usage, Usage] | None:
    """Read a `token_count`: the usage of the thread and that of its last response.

    Returns None if it has only rate limits.
    """
    info = object_field(payload, "info")
    if not info:
        return None
    return _usage(info.get("total_token_usage")), _usage(info.get("last_token_usage"))


def _usage_payload(usage: Usage) -> dict[str, int]:
    counts = {name: getattr(usage, name) for name in _USAGE_FIELDS}
    return {**counts, "total_tokens": usage.total_tokens}


def _usage(counts: Any) -> Usage:
    fields = as_object(counts)
    numbers = {name: lenient_integer(fields.get(name)) or 0 for name in _USAGE_FIELDS}
    return Usage(**numbers)


def _value(
    data: Any,
    key: str,
    kind: type[_T],
) -> _T | None:
    """Return a field of a decoded JSON object; None if it is missing or of another type."""
    value = as_object(data).get(key)
    if isinstance(value, kind):
        return value
    return None
