"""Imports the files of `commands.sessions.portable_export`. They may come from anybody: they are checked and bounded,
and no path in them is used."""

import os
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from codex_py.commands.sessions.portable_export import (
    FORMAT,
    MAX_PATCH,
    map_strings,
    marks_to_paths,
)
from codex_py.errors import ExitCode, SessionError
from codex_py.filesystem.private import make_private, written_whole
from codex_py.filesystem.reading import open_ordinary
from codex_py.protocol.ids import is_thread_id, new_thread_id
from codex_py.protocol.json_fields import as_object, text_field
from codex_py.protocol.messages import decode_json, encode_json
from codex_py.rollout.index import files_of_thread, rename_thread
from codex_py.rollout.records import MAX_LINE_BYTES, SessionMeta, session_path, thread_id_of

_MAX_BYTES: Final = 1 << 30
_MARK: Final = re.compile(r"codex-portable-[0-9a-f]{32}")
_LONGEST_NAME: Final = 200
_OF_OTHERS: Final = (
    *("continues_id", "parent_thread_id", "session_id", "history_base", "agent_nickname"),
    *("agent_path", "agent_role", "forked_from_ordinal_exclusive"),
)
"""Fields that refer to other sessions, which are not here."""


class _Unfit(ValueError):
    """The file cannot be imported. The message follows a colon."""


@dataclass(frozen=True, slots=True)
class Imported:
    thread_id: str
    exported_id: str
    """The id in the file. `thread_id` differs if there is a session with this id already."""
    patch: str
    """The changes of files that came along, and are not applied."""


def import_portable(
    source: Path, cwd: Path, home: Path, environment: Mapping[str, str]
) -> Imported:
    """Write an exported session as a new session of this home. Nothing else is changed.

    Args:
        source: absolute.
        cwd: absolute; the new working directory of the session.
        home: `$CODEX_HOME`.

    Raises:
        SessionError: the file is not a portable session, is damaged, or too large; or it cannot be written.
    """
    with _reading(source) as file:
        lines = _lines(file)
        header = as_object(next(lines, None))
        mark, exported_id = text_field(header, "mark"), text_field(header, "thread_id").lower()
        patch, name = text_field(header, "patch"), text_field(header, "name")
        if header.get("format") != FORMAT or header.get("format_version") != 1:
            raise _Unfit("it is not a session of `codex-py sessions export --portable`")
        if not _MARK.fullmatch(mark) or not is_thread_id(exported_id) or len(patch) > MAX_PATCH:
            raise _Unfit("its header is damaged")
        places = {"cwd": str(cwd), "codex_home": str(home), "home": environment.get("HOME", "/")}
        change = marks_to_paths(mark, places)
        line = map_strings(as_object(next(lines, None)), change)
        is_taken = next(files_of_thread(home, exported_id), None) is not None
        thread_id = new_thread_id() if is_taken else exported_id
        meta = _own_meta(line, exported_id, thread_id, cwd)
        path = session_path(home, meta)
        if thread_id_of(path.name) != thread_id:
            raise _Unfit("its date is not valid")
        make_private(path.parent)
        with written_whole(path, replaces=False) as target:
            target.write(encode_json(line) + b"\n")
            for number, each in enumerate(lines, 3):
                fields = map_strings(as_object(each), change)
                if not isinstance(fields.get("type"), str) or not isinstance(
                    fields.get("payload"), dict
                ):
                    raise _Unfit(f"line {number} is not one of a session")
                target.write(encode_json(fields) + b"\n")
    if name and name.isprintable() and len(name) <= _LONGEST_NAME:
        rename_thread(home, thread_id, name)
    return Imported(thread_id, exported_id, patch)


@contextmanager
def _reading(source: Path) -> Generator[BinaryIO]:
    try:
        with os.fdopen(open_ordinary(source), "rb") as file:
            if os.fstat(file.fileno()).st_size > _MAX_BYTES:
                raise _Unfit("it has more than 1 GB")
            yield file
    except OSError as error:
        raise SessionError(f"cannot import {source}: {error.strerror}") from error
    except (ValueError, RecursionError, OverflowError) as error:
        reason = str(error) if isinstance(error, _Unfit) else "it is damaged"
        raise SessionError(f"cannot import {source}: {reason}", exit_code=ExitCode.INPUT) from error


def _lines(file: BinaryIO) -> Iterator[Any]:
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise _Unfit("a line has more than 64 MB")
        yield decode_json(line)


def _own_meta(line: dict[str, Any], exported_id: str, thread_id: str, cwd: Path) -> SessionMeta:
    """Change the metadata to those of a session that began here."""
    payload: dict[str, Any] = as_object(line.get("payload"))
    if SessionMeta.from_line(encode_json(line)).id.lower() != exported_id:
        raise _Unfit("it has the metadata of another session")
    if payload.get("history_base") is not None:
        raise _Unfit("it is a part of a session")
    for key in _OF_OTHERS:
        payload.pop(key, None)
    payload |= {"id": thread_id, "cwd": str(cwd)}
    if not isinstance(payload.get("source"), str):
        payload["source"] = "cli"
    if thread_id != exported_id:
        payload["forked_from_id"] = exported_id
    return SessionMeta.from_line(encode_json(line))
