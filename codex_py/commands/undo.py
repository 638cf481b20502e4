"""`codex-py undo` and `redo`: take back, make again and list the changes of patches and turns."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from codex_py.command_line.parser import flag, option, parse_options, working_folder
from codex_py.command_line.stopping import raise_when_stopped
from codex_py.config.paths import codex_home, worktrees_folder
from codex_py.errors import CodexError, UsageError
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.files.change import JournalEntry, patched_files
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.entries import Entries
from codex_py.patch.undo.plan import EditedSince, UndoPlan, plan_undo
from codex_py.patch.undo.recorder import undo_problem
from codex_py.patch.undo.running_turns import recover_turns
from codex_py.protocol.patched_file import PatchedFile
from codex_py.rollout.index import metas_with
from codex_py.streams.standard import print_json, print_out, tell
from codex_py.streams.terminal import aligned, printable, some_of

_LETTERS = {"add": "A", "update": "M", "delete": "D"}
"""The letter before a file by the kind of its change."""


def _number(word: str) -> int:
    is_number = word.isascii() and word.isdecimal()
    if not is_number:
        raise argparse.ArgumentTypeError(f"{word!r} is no number; see --list")
    return int(word)


@dataclass(frozen=True, slots=True)
class _RedoOptions:
    """The options that both commands have."""

    show: Annotated[bool, flag("--show")] = False
    force: Annotated[bool, flag("--force")] = False
    json: Annotated[bool, flag("--json")] = False
    cd: Annotated[str, option("-C", "--cd")] = "."


@dataclass(frozen=True, slots=True)
class _Options(_RedoOptions):
    id: Annotated[int | None, option(type=_number)] = None
    list: Annotated[bool, flag("--list")] = False
    to_turn: Annotated[int | None, option("--to-turn", type=_number)] = None
    session: Annotated[str | None, option("--session")] = None


def run_undo(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Undo, list or show patches and turns. Returns the exit code."""
    options = parse_options(_Options, argv)
    is_one = options.show or options.force or options.id is not None
    if options.list and (is_one or options.to_turn is not None):
        raise UsageError("--list stands alone")
    if options.to_turn is not None and options.id is not None:
        raise UsageError("give an ID or --to-turn, not both")
    if options.session is not None and options.to_turn is None:
        raise UsageError("--session goes with --to-turn")
    journal = _opened(options, environment)
    if options.list:
        return _list(Entries(journal), as_json=options.json)
    if options.to_turn is not None:
        turns = Entries(journal).turns_to(options.to_turn, options.session)
        return _undo(journal, options, *turns)
    if options.show:
        return _show(Entries(journal), options.id, as_json=options.json)
    return _undo(journal, options, options.id)


def run_redo(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Make the changes again that the last undo took back. Returns the exit code."""
    options = parse_options(_RedoOptions, argv)
    journal = _opened(options, environment)
    return _undo(journal, options, Entries(journal).newest_undo())


def _opened(options: _RedoOptions, environment: Mapping[str, str]) -> Journal:
    """Open the journal, finish what was interrupted, and tell what undo cannot do here."""
    if options.show and options.force:
        raise UsageError("--show changes nothing, so there is nothing to force")
    raise_when_stopped()
    home = codex_home(environment)
    cwd = working_folder(options.cd)
    journal = Journal(home, cwd)
    for sentence in journal.recover():
        tell(sentence)
    for sentence in recover_turns(home, cwd, environment):
        tell(sentence)
    problem = undo_problem(home, cwd, environment)
    if problem:
        tell(problem)
    if _is_of_subagent(home, cwd):
        tell(
            "A subagent worked here: undo takes back its patches, not what its commands changed."
        )
    return journal


def _is_of_subagent(home: Path, cwd: Path) -> bool:
    """True if the folder is in the worktree of a subagent."""
    if not cwd.is_relative_to(worktrees_folder(home)):
        return False
    metas = metas_with(home, b"worktrees/")
    return any(meta.parent_id and cwd.is_relative_to(meta.cwd) for meta in metas)


def _undo(
    journal: Journal,
    options: _RedoOptions,
    number: int | None,
    *others: int,
) -> int:
    """Undo an entry of the journal, and these others, or show what that would change.

    Returns the exit code. `number`: None for the newest entry.
    """
    force = options.force or options.show
    try:
        plan = plan_undo(journal, number, others=others, force=force)
    except EditedSince as error:
        if options.json:
            cause = {"code": error.code, "message": str(error)}
            print_json({"error": cause, "diff": error.diff})
            raise
        print_out(printable(error.diff))
        advice = "--force undoes it all the same, and keeps what it replaces"
        raise EditedSince(f"{error}; {advice}", error.diff) from error
    if not options.show:
        asks = not force and os.isatty(0)
        return _carry_out(plan, as_json=options.json, asks=asks)
    if options.json:
        return print_json({"files": _rows(plan.changes), "diff": plan.diff})
    return print_out(printable(plan.diff))


def _list(entries: Entries, *, as_json: bool) -> int:
    """Print all entries of the journal. Returns the exit code."""
    if as_json:
        rows = [_facts(entry, entries.undone) for entry in entries.known]
        rows += [{"id": number, "state": "damaged"} for number in entries.damaged]
        return print_out("".join(f"{json.dumps(row)}\n" for row in rows))
    if not entries.known and not entries.damaged:
        return print_out("No patches are kept.\n")
    table = [("ID", "TIME", "STATE", "DIRECTORY", "FILES")]
    for entry in entries.known:
        facts = _facts(entry, entries.undone)
        names = [_short(change.path, entry.cwd) for change in entry.changes]
        files = some_of(names, 3)
        states: list[str] = []
        if entry.undoes is not None:
            states.append(f"undoes {entry.undoes}")
        if entry.turn is not None:
            states.append(f"turn {entry.turn.number}")
        states.append(facts["state"])
        # Without the difference to UTC.
        time = facts["time"][:19]
        number = str(entry.number)
        state = ", ".join(states)
        table.append((number, time, state, entry.cwd, files))
    table += [(str(number), "", "damaged", "", "") for number in entries.damaged]
    rows = [[_one_line(cell) for cell in row] for row in table]
    lines = [f"{line.rstrip()}\n" for line in aligned(rows)]
    return print_out("".join(lines))


def _show(
    entries: Entries,
    number: int | None,
    *,
    as_json: bool,
) -> int:
    """Print the changes of an entry as a diff; None for the newest entry. Returns the exit code."""
    entry = entries.find(number)
    diff = git_diff(patched_files(entry.changes), Path(entry.cwd), keeps_bytes=True)
    if as_json:
        return print_json({**_facts(entry, entries.undone), "diff": diff})
    return print_out(printable(diff))


def _carry_out(
    plan: UndoPlan,
    *,
    as_json: bool,
    asks: bool,
) -> int:
    """Write the files of a plan, and print which ones. Returns the exit code.

    Args:
        asks: ask the user first if the plan has doubts.
    """
    for doubt in plan.doubts:
        tell(doubt)
    if plan.doubts and asks:
        _require_agreement()
    committed = plan.commit()
    for note in committed.notes:
        tell(note)
    if plan.unkept:
        tell(f"Not brought back, because it is not kept: {some_of(plan.unkept)}")
    if as_json:
        return print_json(_undone_facts(plan, committed.number))
    return print_out(_undone_text(plan, committed.number))


def _require_agreement() -> None:
    """Ask the user on the terminal. Raises a `CodexError` for any answer but yes."""
    tell("Undo all of it? [y/N]")
    answer = sys.stdin.readline().strip().lower()
    if answer not in {"y", "yes"}:
        raise CodexError("nothing was undone", code="not_agreed")


def _undone_facts(plan: UndoPlan, number: int | None) -> dict[str, object]:
    """Describe what was undone. `number`: the new entry of the journal; None if it keeps none."""
    first, *others = [entry.number for entry in plan.entries]
    facts: dict[str, object] = {"undone": first}
    if others:
        facts["also_undone"] = others
    facts["id"] = number
    facts["files"] = _rows(plan.changes)
    return facts


def _undone_text(plan: UndoPlan, number: int | None) -> str:
    """Describe what was undone in lines; see `_undone_facts`."""
    names = ", ".join(entry.name for entry in plan.entries)
    is_redo = plan.entry.undoes is not None
    if is_redo:
        lines = [f"Redid what {names} took back:"]
    else:
        lines = [f"Undid {names}:"]
    for change in plan.changes:
        path = _short(str(change.path), plan.entry.cwd)
        line = f"{_LETTERS[change.kind]} {path}"
        if change.link is not None:
            line += f" -> {change.link}"
        lines.append(_one_line(line))
    if number is not None:
        action = "undo it" if is_redo else "do it again"
        lines.append(f"To {action}: codex-py undo {number}")
    return "\n".join(lines) + "\n"


def _facts(entry: JournalEntry, undone: Mapping[int, int]) -> dict[str, Any]:
    """Describe an entry. `undone`: the numbers of the entries that are undone."""
    if not all(change.kept for change in entry.changes):
        state = "not undoable"
    elif entry.number in undone:
        state = "undone"
    else:
        state = str(entry.state)
    time = datetime.fromtimestamp(entry.time, UTC).astimezone()
    facts: dict[str, Any] = {
        "id": entry.number,
        "time": time.isoformat(" ", "seconds"),
        "cwd": entry.cwd,
        "state": state,
    }
    if entry.undoes is not None:
        facts["undoes"] = entry.undoes
    if entry.turn is not None:
        facts["turn"] = entry.turn.number
        facts["session"] = entry.turn.thread_id
        facts["patches"] = entry.turn.patches
        facts["not_kept"] = entry.turn.unkept
    facts["files"] = _rows(patched_files(entry.changes))
    return facts


def _rows(changes: Sequence[PatchedFile]) -> list[dict[str, str]]:
    return [change.facts() for change in changes]


def _short(path: str, cwd: str) -> str:
    """The path relative to `cwd` if it is below it."""
    return path.removeprefix(f"{cwd.rstrip('/')}/")


def _one_line(text: str) -> str:
    return printable(text).replace("\n", "\u240a").replace("\t", "\u2409")
