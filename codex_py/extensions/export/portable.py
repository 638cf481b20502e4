"""Exports sessions to files, and imports such files, to continue a session elsewhere.

A session can continue in another folder, for another user, or on another machine.

Such a file has uncompressed JSON lines: a header with the name of the session and the changes since
the last commit, then the lines of the session file. Paths of this machine are replaced by
placeholders, which begin with a mark that no text can contain by chance, and keys are removed. A
file may come from anybody: its contents and size are checked, and no path in it is used.
"""

import os
import re
import secrets
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, cast

from codex_py.api.commands import CodexError, ExitCode
from codex_py.api.data import (
    as_object,
    decode_json,
    encode_json,
    json_object,
    text_field,
)
from codex_py.api.files import make_private, open_ordinary, written_whole
from codex_py.api.git import git_info, uncommitted_changes
from codex_py.api.program import __version__
from codex_py.api.redaction import Redactor
from codex_py.api.session_files import (
    MAX_LINE_BYTES,
    SessionError,
    SessionMeta,
    files_of_thread,
    find_session,
    home_of,
    is_thread_id,
    new_thread_id,
    read_meta,
    rename_thread,
    session_path,
    thread_id_of,
    thread_names,
)

FORMAT: Final = "codex-py-portable-session"
MAX_PATCH: Final = 1 << 23
"""Limit for a patch, in characters."""
_OPAQUE: Final = "encrypted_content"
"""A field of reasoning items: only the provider can read it, and it must not change."""
_END: Final = r"(?![\w~+@%-]|\.\w)"
"""Matches at the end of a component of a path."""
_Change: TypeAlias = Callable[[str], str]
"""A function that changes a text."""
_MAX_BYTES: Final = 1 << 30
"""Limit for a portable file."""
_MARK: Final = re.compile(r"codex-portable-[0-9a-f]{32}")
_LONGEST_NAME: Final = 200
_OF_OTHERS: Final = (
    "continues_id",
    "parent_thread_id",
    "session_id",
    "history_base",
    "agent_nickname",
    "agent_path",
    "agent_role",
    "forked_from_ordinal_exclusive",
)
"""Fields that refer to other sessions, which are not exported."""


def export_portable(
    path: Path,
    environment: Mapping[str, str],
    file: BinaryIO,
) -> list[str]:
    """Write the portable form of a session file. Returns a sentence for each thing that it lacks.

    Raises:
        SessionError: the session cannot be read, or is a fork made by Codex, whose file has only
            the end of the conversation.
        OSError: the file cannot be written.
    """
    meta = read_meta(path)
    home = home_of(path)
    notes: list[str] = []
    if meta.history_base is not None:
        raise SessionError(
            f"the file of {meta.id} has only the end of a fork of Codex; export a copy of it,"
            f" made with `codex-py exec fork {meta.id}`"
        )
    redact = Redactor(environment, home)
    mark = f"codex-portable-{secrets.token_hex(16)}"
    places = {
        meta.cwd: "cwd",
        str(home): "codex_home",
        environment.get("HOME", ""): "home",
    }
    marked = paths_to_marks(mark, places)
    patch = _patch(Path(meta.cwd), environment, notes)
    header = {
        "format": FORMAT,
        "format_version": 1,
        "written_by": f"codex-py {__version__}",
        "mark": mark,
        "thread_id": meta.id,
        "name": redact(thread_names(home).get(meta.id, "")) or None,
        "commit": git_info(Path(meta.cwd)).get("commit_hash"),
        "patch": redact(patch) or None,
    }
    file.write(encode_json(header) + b"\n")

    def portable(text: str) -> str:
        return redact(marked(text))

    damaged = _copy_lines(path, file, portable)
    if damaged:
        notes.append(f"{damaged} damaged lines of the session were left out.")
    return notes + redact.notes


def _copy_lines(path: Path, file: BinaryIO, change: _Change) -> int:
    """Copy the lines of a session file with changed strings. Returns the number of damaged lines,
    which are left out."""
    damaged = 0
    with path.open("rb") as lines:
        for line in iter(partial(lines.readline, MAX_LINE_BYTES), b""):
            try:
                fields = map_strings(decode_json(line), change)
                text = encode_json(fields)
            except (ValueError, RecursionError):
                if line != b"\n":
                    damaged += 1
                continue
            file.write(text + b"\n")
    return damaged


def map_strings(value: Any, change: _Change) -> Any:
    """Change all strings in a JSON value, including keys and strings in calls' JSON arguments."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_strings(part, change) for part in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields: dict[str, Any] = {}
    for key, part in cast("dict[str, Any]", value).items():
        if key == _OPAQUE:
            fields[change(key)] = part
            continue
        arguments = None
        if key == "arguments" and isinstance(part, str):
            arguments = json_object(part)
        if arguments:
            fields[key] = encode_json(map_strings(arguments, change)).decode()
        else:
            fields[change(key)] = map_strings(part, change)
    return fields


def paths_to_marks(mark: str, places: Mapping[str, str]) -> _Change:
    """Make a function that replaces paths by placeholders.

    Args:
        places: names by path; only absolute paths count.
    """
    placeholders: dict[str, str] = {}
    for path, name in places.items():
        if not path.startswith("/"):
            continue
        for form in (path, os.path.realpath(path)):
            if form != "/":
                placeholders.setdefault(form.rstrip("/"), f"{mark}:{name}>")
    # The longest first: the working directory is often below the home.
    by_length = sorted(placeholders, key=len, reverse=True)
    paths = "|".join(re.escape(path) for path in by_length)
    expression = re.compile(rf"(?<![\w.~-])(?:{paths}){_END}")

    def marked(text: str) -> str:
        if not any(path in text for path in placeholders):
            return text
        return expression.sub(lambda match: placeholders[match[0]], text)

    return marked


def marks_to_paths(mark: str, places: Mapping[str, str]) -> _Change:
    """Make a function that replaces placeholders by paths. `places`: paths by name."""
    names = "|".join(places)
    expression = re.compile(rf"{re.escape(mark)}:({names})>")

    def unmarked(text: str) -> str:
        if mark not in text:
            return text
        return expression.sub(lambda match: places[match[1]], text)

    return unmarked


def _patch(cwd: Path, environment: Mapping[str, str], notes: list[str]) -> str:
    """The changes in `cwd` since the last commit, as a diff. `notes` gets a sentence about what it
    lacks."""
    try:
        patch, left_out = uncommitted_changes(cwd, environment)
    except CodexError as error:
        notes.append(f"Changes of files did not come along: {error}.")
        return ""
    if len(patch) > MAX_PATCH:
        notes.append(
            "Changes of files did not come along: they have more than 8 million characters."
        )
        return ""
    if left_out:
        names = ", ".join(left_out)
        notes.append(
            f"Files did not come along because they are too large, unreadable or not UTF-8: {names}."
        )
    return patch


class _Unfit(ValueError):
    """The file cannot be imported. The message follows a colon."""


@dataclass(frozen=True, slots=True)
class Imported:
    thread_id: str
    exported_id: str
    """The id in the file. `thread_id` differs if a session with this id exists already."""
    patch: str
    """The changes to files in the export, which are not applied."""
    used_name: str
    """The name in the file, if a session of this home has it already: it was not given again."""


def import_portable(
    source: Path,
    cwd: Path,
    home: Path,
    environment: Mapping[str, str],
) -> Imported:
    """Write an exported session as a new session of this home. Nothing else is changed.

    Args:
        source: absolute.
        cwd: absolute; the new working directory of the session.
        home: `$CODEX_HOME`.

    Raises:
        SessionError: the source is not a portable session, is damaged or too large, or the session
            cannot be written.
    """
    with _reading(source) as file:
        lines = _lines(file)
        header = _header(lines)
        mark = text_field(header, "mark")
        exported_id = text_field(header, "thread_id").lower()
        patch = text_field(header, "patch")
        name = text_field(header, "name")
        is_whole = _MARK.fullmatch(mark) is not None and is_thread_id(exported_id)
        if not is_whole or len(patch) > MAX_PATCH:
            raise _Unfit("its header is damaged")
        if not name.isprintable() or len(name) > _LONGEST_NAME:
            name = ""
        used_name = ""
        if name and find_session(home, name) is not None:
            used_name = name
        places = {
            "cwd": str(cwd),
            "codex_home": str(home),
            "home": environment.get("HOME", "/"),
        }
        change = marks_to_paths(mark, places)
        meta_line = map_strings(as_object(next(lines, None)), change)
        is_taken = next(files_of_thread(home, exported_id), None) is not None
        thread_id = new_thread_id() if is_taken else exported_id
        meta = _own_meta(meta_line, exported_id, thread_id, cwd)
        path = session_path(home, meta)
        if thread_id_of(path.name) != thread_id:
            raise _Unfit("its date is not valid")
        make_private(path.parent)
        with written_whole(path, replaces=False) as target:
            target.write(encode_json(meta_line) + b"\n")
            # The header and the metadata are the first two lines of the file.
            for number, line in enumerate(lines, 3):
                fields = map_strings(as_object(line), change)
                has_type = isinstance(fields.get("type"), str)
                if not has_type or not isinstance(fields.get("payload"), dict):
                    raise _Unfit(f"line {number} is not one of a session")
                target.write(encode_json(fields) + b"\n")
    if name and not used_name:
        rename_thread(home, thread_id, name)
    return Imported(thread_id, exported_id, patch, used_name)


def _header(lines: Iterator[Any]) -> dict[str, Any]:
    """Read the first line of a portable session."""
    try:
        header = as_object(next(lines, None))
    except (ValueError, RecursionError):
        header = {}
    if header.get("format") != FORMAT or header.get("format_version") != 1:
        raise _Unfit("it is not a session of `codex-py sessions export --portable`")
    return header


@contextmanager
def _reading(source: Path) -> Generator[BinaryIO]:
    """Open a file to import. Raises a `SessionError` for every error while it is read."""
    try:
        with os.fdopen(open_ordinary(source), "rb") as file:
            if os.fstat(file.fileno()).st_size > _MAX_BYTES:
                raise _Unfit("it has more than 1 GB")
            yield file
    except OSError as error:
        raise SessionError(f"cannot import {source}: {error.strerror}") from error
    except (ValueError, RecursionError, OverflowError) as error:
        reason = "it is damaged"
        if isinstance(error, _Unfit):
            reason = str(error)
        text = f"cannot import {source}: {reason}"
        raise SessionError(text, exit_code=ExitCode.INPUT) from error


def _lines(file: BinaryIO) -> Iterator[Any]:
    """Decode the lines of a file."""
    for line in iter(partial(file.readline, MAX_LINE_BYTES + 1), b""):
        if len(line) > MAX_LINE_BYTES:
            raise _Unfit("a line has more than 64 MB")
        yield decode_json(line)


def _own_meta(
    line: dict[str, Any],
    exported_id: str,
    thread_id: str,
    cwd: Path,
) -> SessionMeta:
    """Adapt the line with the metadata to the new id and folder, and remove links to other
    sessions. Returns the metadata."""
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
