"""Exports sessions as files that can be continued in another folder, by another user, or on another machine.

Such a file has JSON lines and is not compressed: a header with the name of the session and the changes since the last
commit, then the lines of the session file. Paths of this machine are placeholders in it, which begin with a mark that
no text can contain by chance, and keys are taken out.
"""

import os
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from codex_py.app.export.redaction import Redactor
from codex_py.app.patching import repository_of
from codex_py.errors import CodexError, SessionError
from codex_py.patch.diff.work_tree import work_tree_changes
from codex_py.patch.diff.writer import exact_diff
from codex_py.programs import programs_outside
from codex_py.protocol.json_fields import json_object
from codex_py.protocol.messages import decode_json, encode_json
from codex_py.rollout.git_info import git_info
from codex_py.rollout.index import thread_names
from codex_py.rollout.records import MAX_LINE_BYTES, home_of, read_meta
from codex_py.version import __version__

FORMAT: Final = "codex-py-portable-session"
MAX_PATCH: Final = 1 << 23
"""Characters."""
_OPAQUE: Final = "encrypted_content"
"""A field of reasoning items: only the provider can read it, and it must not change."""
_END: Final = r"(?![\w~+@%-]|\.\w)"
"""Matches at the end of a component of a path."""


def export_portable(path: Path, environment: Mapping[str, str], file: BinaryIO) -> list[str]:
    """Write the portable form of a session file. Returns a sentence for each thing that is missing from it.

    Raises:
        SessionError: the session cannot be read, or is a fork of Codex, whose file has only its end.
        OSError: the file cannot be written.
    """
    meta, home = read_meta(path), home_of(path)
    notes: list[str] = []
    if meta.history_base is not None:
        raise SessionError(
            f"the file of {meta.id} has only the end of a fork of Codex; export a copy of it,"
            f" made with `codex-py exec fork {meta.id}`"
        )
    redact = Redactor(environment, home)
    mark = f"codex-portable-{secrets.token_hex(16)}"
    places = {meta.cwd: "cwd", str(home): "codex_home", environment.get("HOME", ""): "home"}
    marked = paths_to_marks(mark, places)
    patch = _patch(Path(meta.cwd), home, environment, notes)
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
    damaged = 0
    with path.open("rb") as lines:
        while line := lines.readline(MAX_LINE_BYTES):
            try:
                text = encode_json(
                    map_strings(decode_json(line), lambda text: redact(marked(text)))
                )
            except (ValueError, RecursionError):
                damaged += line != b"\n"
                continue
            file.write(text + b"\n")
    if damaged:
        notes.append(f"{damaged} damaged lines of the session were left out.")
    return notes + redact.notes


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Change every string in a JSON value, also the keys of objects and strings in the arguments of calls, which are
    JSON."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_strings(part, change) for part in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields: dict[str, Any] = {}
    for key, part in cast("dict[str, Any]", value).items():
        if key == "arguments" and isinstance(part, str) and (inner := json_object(part)):
            fields[key] = encode_json(map_strings(inner, change)).decode()
        else:
            fields[change(key)] = part if key == _OPAQUE else map_strings(part, change)
    return fields


def paths_to_marks(mark: str, places: Mapping[str, str]) -> Callable[[str], str]:
    """Returns a function that replaces paths by placeholders. `places`: names by path; only absolute paths count."""
    names: dict[str, str] = {}
    for path, name in places.items():
        for form in (path, os.path.realpath(path)):
            if path.startswith("/") and form != "/":
                names.setdefault(form.rstrip("/"), f"{mark}:{name}>")
    # The longest first: the working directory is often below the home.
    paths = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    found = re.compile(rf"(?<![\w.~-])(?:{paths}){_END}")

    def marked(text: str) -> str:
        if not any(name in text for name in names):
            return text
        return found.sub(lambda m: names[m[0]], text)

    return marked


def marks_to_paths(mark: str, places: Mapping[str, str]) -> Callable[[str], str]:
    """Returns a function that replaces the placeholders by paths. `places`: paths by name."""
    found = re.compile(re.escape(mark) + f":({'|'.join(places)})>")
    return lambda text: found.sub(lambda m: places[m[1]], text) if mark in text else text


def _patch(cwd: Path, home: Path, environment: Mapping[str, str], notes: list[str]) -> str:
    try:
        programs = programs_outside(home, environment, cwd)
        git, root = repository_of(cwd, programs, environment)
        changes, left_out = work_tree_changes(git, root)
    except CodexError as error:
        notes.append(f"Changes of files did not come along: {error}.")
        return ""
    patch = ""
    for change in changes:
        try:
            patch += exact_diff([change], root).decode()
        except UnicodeDecodeError:
            left_out.append(str(change.path.relative_to(root)))
    if len(patch) > MAX_PATCH:
        notes.append(
            "Changes of files did not come along: they have more than 8 million characters."
        )
        return ""
    if left_out:
        notes.append(
            f"Files did not come along because they are too large, unreadable or not UTF-8: {', '.join(left_out)}."
        )
    return patch
