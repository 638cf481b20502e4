"""`codex-py sessions list`, `show`, `search` and `cost`; and `archive`, `unarchive` and `delete`,
with the messages of Codex."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codex_py.app.thread import thread_items
from codex_py.app.views.cost import CostReport
from codex_py.app.views.entries import Entry, entries
from codex_py.command_line.named_session import named_session
from codex_py.command_line.stopping import Stopped, raise_when_stopped
from codex_py.command_line.subcommand import command_config, command_parser
from codex_py.errors import SessionError, UsageError
from codex_py.protocol.ids import is_thread_id
from codex_py.rollout.archive import archive, delete, unarchive
from codex_py.rollout.details import read_details, read_session_usage
from codex_py.rollout.index import thread_names, why_none
from codex_py.rollout.listing import SessionSummary, list_sessions, search_sessions
from codex_py.rollout.reader import read_conversation
from codex_py.rollout.records import (
    ARCHIVED_SESSIONS,
    SESSIONS,
    read_meta,
    thread_id_of,
)
from codex_py.streams.plain_text import cut
from codex_py.streams.standard import OutputStream, print_json, print_out, print_table
from codex_py.streams.terminal import on_one_line, printable
from codex_py.streams.times import age

_SHOWN_CHARACTERS = 60
"""Length of a title in a list."""
_SHOWN_PROMPT = 500
"""Length of a line of a message."""
_SHOWN_LINES = 6
"""Number of lines of a message."""
_SHOWN_BYTES = 32_000_000
"""The last part of a session's file from which its conversation is shown."""
_NO_LIMIT = 1 << 62
"""More sessions than anybody has."""
_QUESTION = """\
Permanently delete session {session}?
This cannot be undone. Subagent threads will also be deleted.
Continue? [y/N]: """


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the sessions of this folder, the newest first. Returns the exit code."""
    parser = command_parser("--json", "--all", "--archived")
    parser.add_argument("--limit", type=_limit, default="25")
    options = parser.parse_args(list(argv))
    config = command_config(options, environment, warns=False)
    found = list_sessions(
        config.home,
        cwd=None if options.all else config.cwd,
        limit=options.limit,
        archived=options.archived,
    )
    if options.json:
        return print_json([_data(each) for each in found], indent=2)
    if not found:
        text = "There are no sessions"
        if not options.all:
            text += " in this folder; --all lists those of every folder"
        return print_out(f"{text}{printable(why_none(config.home))}.\n")
    rows: list[list[str]] = []
    for each in found:
        row = [age(each.updated), each.id]
        if options.all:
            row.append(each.cwd)
        row.append(_title(each))
        rows.append(row)
    return print_table(rows)


def run_show(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the facts about a session, and its conversation in short. Returns the exit code."""
    options = command_parser("session", "--last", "--json").parse_args(list(argv))
    home = command_config(options, environment, warns=False).home
    path = named_session(home, options.session, last=options.last)
    meta = read_meta(path)
    details = read_details(path)
    data: dict[str, Any] = {
        "id": meta.id,
        "name": thread_names(home).get(meta.id),
        "path": str(path),
        "archived": path.is_relative_to(home / ARCHIVED_SESSIONS),
        "created": meta.timestamp,
        "cwd": meta.cwd,
        "branch": meta.git.get("branch"),
        "commit": meta.git.get("commit_hash"),
        "provider": meta.model_provider,
        **details.settings,
        "forked_from": meta.forked_from_id,
        "parent": meta.parent_id,
        "turns": len(details.prompts),
        "usage": asdict(details.usage),
        "damaged_lines": details.damaged_lines,
        "files": details.files,
        "prompts": details.prompts,
    }
    if options.json:
        return print_json(data, indent=2)
    lines: list[str] = []
    if details.files:
        lines.append("files:")
        lines += [f"  {file}" for file in details.files]
    lines += _conversation(path, len(details.prompts))
    text = "".join(f"{on_one_line(line)}\n" for line in lines)
    return print_table(_fact_rows(data)) or print_out(text)


def _fact_rows(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The facts about a session that have a value, without its files and prompts."""
    tokens = [
        f"{count:,} {key.removesuffix('_tokens')}"
        for key, count in data["usage"].items()
        if count
    ]
    facts = {**data, "tokens": ", ".join(tokens)}
    for key in ("usage", "files", "prompts"):
        del facts[key]
    return [
        (f"{key.replace('_', ' ')}:", str(value))
        for key, value in facts.items()
        if value
    ]


def _conversation(path: Path, prompts: int) -> list[str]:
    """The last part of a conversation, in short.

    Args:
        prompts: the number of prompts of the whole session, for the numbers of those shown.
    """
    items = thread_items(read_conversation(path, _SHOWN_BYTES))
    said = [entry for entry in entries(items) if entry.kind != "thought"]
    shown = [entry for entry in said if entry.kind == "user"]
    number = prompts - len(shown)
    lines: list[str] = []
    for entry in said:
        indent = "     "
        if entry.kind == "user":
            number += 1
            indent = f"{number:3}. "
        lines += _in_short(entry, indent)
    return lines


def _in_short(entry: Entry, indent: str) -> list[str]:
    """The first lines of a message, or the title of a call without its output.

    Args:
        indent: stands before the first line; blanks stand before the others.
    """
    texts = [entry.title]
    if not entry.title or entry.kind == "error":
        texts += [part.text for part in entry.parts]
    text = "\n".join(filter(None, texts))
    if entry.kind == "command":
        text = f"$ {text}"
    found = text.splitlines()
    lines = [cut(line, _SHOWN_PROMPT) for line in found[:_SHOWN_LINES]]
    more = len(found) - len(lines)
    if more:
        lines.append(f"[… {more:,} more lines]")
    if not lines:
        return []
    if entry.note:
        lines[-1] += f" ({entry.note})"
    first, *others = lines
    blanks = " " * len(indent)
    return [f"{indent}{first}", *(f"{blanks}{line}" for line in others)]


def run_search(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print each session that contains all the words, as soon as found. Returns the exit code."""
    parser = command_parser("--json", "--archived")
    parser.add_argument("--limit", type=_limit, default="0")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args(list(argv))
    words = " ".join(options.words).split()
    if not words:
        raise UsageError(
            "say which words to search for: codex-py sessions search WORDS"
        )
    home = command_config(options, environment, warns=False).home
    raise_when_stopped()
    left = options.limit
    try:
        for summary, places in search_sessions(home, words, archived=options.archived):
            if options.json:
                found = [{"role": each.role, "text": each.text} for each in places]
                text = json.dumps({**_data(summary), "found": found})
            else:
                title = f"{summary.id}  {age(summary.updated)}  {_title(summary)}"
                lines = [title]
                lines += [f"    {each.role}: {each.text}" for each in places]
                text = "\n".join(on_one_line(line) for line in lines)
            code = print_out(f"{text}\n")
            if code:
                return code
            left -= 1
            if not left:
                break
    except Stopped as stopped:
        # Ctrl-C ends a search as usual: the user has found the place.
        return stopped.exit_code
    return 0


def run_cost(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the tokens of each turn, their cost, and the largest outputs. Returns the exit code."""
    options = command_parser("session", "--last", "--json").parse_args(list(argv))
    config = command_config(options, environment, warns=not options.json)
    last = options.last or options.session is None
    path = named_session(config.home, options.session, last=last)
    meta = read_meta(path)
    provider = meta.model_provider or config.model_provider
    report = CostReport(read_session_usage(path), config, provider)
    if options.json:
        return print_json({"thread_id": meta.id, **report.data()}, indent=2)
    return print_out("".join(f"{line}\n" for line in report.lines()))


def run_archive(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Move a session and its subagents to the archive. Returns the exit code."""
    home, thread_id = _named(argv, environment, "active", SESSIONS)
    archive(home, thread_id)
    return print_out(f"Archived session {thread_id}.\n")


def run_unarchive(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Bring a session back from the archive. Returns the exit code."""
    home, thread_id = _named(argv, environment, "archived", ARCHIVED_SESSIONS)
    unarchive(home, thread_id)
    return print_out(f"Unarchived session {thread_id}.\n")


def run_delete(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Ask, and delete a session and its subagents for good. Returns the exit code."""
    options = command_parser("session", "--last", "--force").parse_args(list(argv))
    home = command_config(options, environment, warns=False).home
    if options.force and not is_thread_id(options.session or ""):
        raise SessionError(
            "--force requires a session UUID; names must be confirmed interactively"
        )
    path = named_session(home, options.session, last=options.last)
    thread_id = thread_id_of(path.name) or ""
    if not options.force:
        name = thread_names(home).get(thread_id)
        if not _agreed(thread_id, name):
            return print_out("Delete cancelled.\n")
    delete(home, thread_id)
    return print_out(f"Deleted session {thread_id}.\n")


def _named(
    argv: Sequence[str],
    environment: Mapping[str, str],
    kind: str,
    folder: str,
) -> tuple[Path, str]:
    """Parse a command line that names a session in a folder of the home.

    Returns `$CODEX_HOME` and the id of the session. `kind`: the word for it in the message that
    there is none.
    """
    options = command_parser("session", "--last").parse_args(list(argv))
    home = command_config(options, environment, warns=False).home
    path = named_session(
        home, options.session, last=options.last, kind=kind, folders=(folder,)
    )
    return home, thread_id_of(path.name) or ""


def _agreed(thread_id: str, name: str | None) -> bool:
    """Ask the user on the terminal. Raises a `SessionError` if standard input is none."""
    if not os.isatty(0):
        raise SessionError(
            "cannot confirm session deletion without an interactive terminal;"
            " rerun with --force and a session UUID"
        )
    if name is None:
        session = thread_id
    else:
        session = f"'{printable(name)}' ({thread_id})"
    OutputStream(2).write_text(_QUESTION.format(session=session))
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _limit(text: str) -> int:
    """Parse the value of `--limit`; 0 means no limit."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of sessions")
    return int(text) or _NO_LIMIT


def _title(summary: SessionSummary) -> str:
    title = summary.preview
    if summary.name:
        title = f"[{summary.name}] {title}"
    return cut(title, _SHOWN_CHARACTERS) + summary.fork_mark


def _data(summary: SessionSummary) -> dict[str, Any]:
    return {
        "id": summary.id,
        "name": summary.name,
        "prompt": summary.preview,
        "cwd": summary.cwd,
        "branch": summary.branch,
        "model": summary.model,
        "forked_from": summary.forked_from,
        "updated": summary.updated.isoformat(timespec="seconds"),
        "path": str(summary.path),
    }
