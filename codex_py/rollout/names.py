"""Reads and writes the names of threads: `session_index.jsonl` in the home, which Codex uses too."""

import json
import os
from pathlib import Path
from typing import Any, cast

from codex_py.errors import SessionError
from codex_py.protocol.ids import utc_timestamp
from codex_py.protocol.messages import encode_json

_FILE = "session_index.jsonl"


def thread_names(home: Path) -> dict[str, str]:
    """The names of threads by id; the one that was named last comes last."""
    names: dict[str, str] = {}
    try:
        lines = (home / _FILE).read_bytes().splitlines()
    except OSError:
        return names
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            record = cast("dict[str, Any]", entry)
            thread_id = str(record.get("id"))
            # Each renaming is a new line: the last one counts.
            names.pop(thread_id, None)
            names[thread_id] = str(record.get("thread_name"))
    return names


def thread_name(home: Path, thread_id: str) -> str | None:
    return thread_names(home).get(thread_id)


def thread_named(home: Path, name: str) -> str | None:
    """The id of the thread that has a name; of several, the one that was named last."""
    names = thread_names(home)
    return next((id_ for id_, known in reversed(names.items()) if known == name), None)


def rename_thread(home: Path, thread_id: str, name: str) -> None:
    """
    Raises:
        SessionError: the name cannot be written.
    """
    entry = {"id": thread_id, "thread_name": name, "updated_at": utc_timestamp()}
    path = home / _FILE
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            # If the last line was cut off, this one must not be appended to it.
            size = os.fstat(fd).st_size
            cut = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            os.write(fd, (b"\n" if cut else b"") + encode_json(entry) + b"\n")
        finally:
            os.close(fd)
    except OSError as error:
        raise SessionError(f"{path} cannot be written: {error.strerror}") from error
