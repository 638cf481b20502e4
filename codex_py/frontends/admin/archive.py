"""`codex-py archive`, `unarchive` and `delete`, with the messages of Codex."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.errors import SessionError
from codex_py.frontends.admin.command import command_config, command_parser, required
from codex_py.frontends.admin.sessions import stored_session
from codex_py.frontends.streams import OutputStream, print_out
from codex_py.frontends.terminal import printable
from codex_py.protocol.ids import is_thread_id
from codex_py.rollout.archive import archive, delete, unarchive
from codex_py.rollout.index import thread_names
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS, thread_id_of

_QUESTION = """\
Permanently delete session {session}?
This cannot be undone. Subagent threads will also be deleted.
Continue? [y/N]: """


def run_archive(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Move a session and its subagents to the archive; the exit code."""
    home, thread_id = _named(argv, environment, "archive", "active", SESSIONS)
    archive(home, thread_id)
    return print_out(f"Archived session {thread_id}.\n")


def run_unarchive(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Bring a session back from the archive; the exit code."""
    home, thread_id = _named(argv, environment, "unarchive", "archived", ARCHIVED_SESSIONS)
    unarchive(home, thread_id)
    return print_out(f"Unarchived session {thread_id}.\n")


def run_delete(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Ask, and delete a session and its subagents for good; the exit code."""
    options = command_parser("session", "--force").parse_args(list(argv))
    name = required(options.session, "session: codex-py delete SESSION")
    home = command_config(options, environment, warns=False).home
    if options.force and not is_thread_id(name):
        raise SessionError("--force requires a session UUID; names must be confirmed interactively")
    thread_id = _find(home, name, "active or archived", SESSIONS, ARCHIVED_SESSIONS)
    if not options.force and not _agreed(thread_id, thread_names(home).get(thread_id)):
        return print_out("Delete cancelled.\n")
    delete(home, thread_id)
    return print_out(f"Deleted session {thread_id}.\n")


def _named(
    argv: Sequence[str], environment: Mapping[str, str], command: str, kind: str, folder: str
) -> tuple[Path, str]:
    """The home, and the id of the session that the command line names."""
    options = command_parser("session").parse_args(list(argv))
    name = required(options.session, f"session: codex-py {command} SESSION")
    home = command_config(options, environment, warns=False).home
    return home, _find(home, name, kind, folder)


def _find(home: Path, name: str, kind: str, *folders: str) -> str:
    return thread_id_of(stored_session(home, name, kind, *folders).name) or ""


def _agreed(thread_id: str, name: str | None) -> bool:
    if not os.isatty(0):
        raise SessionError(
            "cannot confirm session deletion without an interactive terminal;"
            " rerun with --force and a session UUID"
        )
    session = thread_id if name is None else f"'{printable(name)}' ({thread_id})"
    OutputStream(2).write_text(_QUESTION.format(session=session))
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
