"""Commands that bring files back: `/undo` and `/redo`, and the parts that `/rewind` shares."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from os.path import relpath
from pathlib import Path

from codex_py.frontends.tui.cells.layout import MOST_ROWS
from codex_py.frontends.tui.cells.patch import diff_cell
from codex_py.frontends.tui.commands.registry import CommandContext, SlashCommand
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.overlay import Pages
from codex_py.frontends.tui.panel import SHOWS_ALL, yes_or_no
from codex_py.patch.files.change import JournalEntry
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.entries import Entries
from codex_py.patch.undo.plan import EditedSince, UndoPlan, plan_undo
from codex_py.patch.undo.recorder import undo_problem
from codex_py.patch.undo.running_turns import recover_turns
from codex_py.streams.terminal import some_of


def entries_here(context: CommandContext) -> Entries:
    """Return the entries of the journal, after recovering interrupted changes. Reads files."""
    home = context.config.home
    cwd = context.config.cwd
    journal = Journal(home, cwd)
    journal.recover()
    recover_turns(home, cwd, context.ui.safe_environment)
    return Entries(journal)


async def confirmed(
    context: CommandContext,
    title: str,
    reason: str,
    show_all: Callable[[], None] | None = None,
) -> bool:
    question: Fragments = [("bold", title), ("", f"\n\n{reason}")]
    panel = yes_or_no(question, "Yes, do it", "No", show_all=show_all)
    return await context.ui.panels.show(panel)


def reason_of(error: EditedSince, cwd: Path) -> str:
    """Return the reason of an error, with paths relative to `cwd`.

    The entry's number is left out: the user has never seen it.
    """
    return str(error).partition(": ")[2].replace(f"{cwd}/", "")


async def agreed_plan(
    context: CommandContext, journal: Journal, numbers: Sequence[int], what: str
) -> UndoPlan | None:
    """Plan the undo of entries, the newest first, and ask about its doubts; None after a no.

    Raises:
        CodexError: see `plan_undo`.
    """
    plan_them = partial(plan_undo, journal, numbers[0], others=numbers[1:])
    try:
        plan = await asyncio.to_thread(plan_them)
    except EditedSince as error:
        if not await _confirmed_edits(context, error, what):
            return None
        return await asyncio.to_thread(plan_them, force=True)
    doubts = "\n".join(plan.doubts)
    if doubts and not await confirmed(context, "Undo all of it?", doubts):
        return None
    return plan


async def _confirmed_edits(
    context: CommandContext, error: EditedSince, what: str
) -> bool:
    """Show what was edited since, and ask if the undo should be done all the same."""
    why = reason_of(error, context.config.cwd)
    context.transcript.notice(f"Not done: {what} {why}", "warning")
    if error.is_plan:
        title = "Would change"
    else:
        title = "Edited since"
    key = context.ui.keymap.named(SHOWS_ALL)
    shown = diff_cell(error.diff, most=MOST_ROWS, title=title, key=key)
    context.transcript.print(shown)
    whole = Pages(title)
    whole.add(diff_cell(error.diff, title=title))
    show_all = partial(context.overlays.open, whole)
    reason = "What it replaces is kept."
    return await confirmed(context, "Do it all the same?", reason, show_all)


async def carry_out(
    context: CommandContext,
    plan: UndoPlan,
    done: str,
) -> None:
    """Carry out the plan and report it.

    Raises:
        PatchError: it failed, and nothing has changed.
    """
    home = context.config.home
    cwd = context.config.cwd

    await asyncio.to_thread(plan.commit)
    context.transcript.notice(f"{done}: {_changed_files(plan, cwd)}")
    if plan.unkept:
        context.transcript.notice(f"Not brought back: {some_of(plan.unkept)}")
    environment = context.ui.safe_environment
    problem = await asyncio.to_thread(undo_problem, home, cwd, environment)
    if problem:
        context.transcript.notice(problem)


def _changed_files(plan: UndoPlan, cwd: Path) -> str:
    return some_of([relpath(change.path, cwd) for change in plan.changes])


async def _take_back(
    context: CommandContext,
    _: str,
    *,
    redo: bool,
) -> None:
    def find() -> tuple[Journal, int, JournalEntry]:
        entries = entries_here(context)
        if redo:
            undo = entries.find(entries.newest_undo())
            return entries.journal, undo.number, entries.find(undo.undoes)
        entry = entries.find()
        return entries.journal, entry.number, entry

    async with context.undoing:
        journal, number, undone = await asyncio.to_thread(find)
        what = undone.name
        turn = undone.turn
        if turn is not None:
            session = context.conversation.session
            if session is not None and turn.thread_id == session.thread_id:
                what = f"turn {turn.number}"
            elif not await _confirmed_other(context, what, redo=redo):
                return
        plan = await agreed_plan(context, journal, [number], what)
        if plan and redo:
            await carry_out(context, plan, f"Made again {what}")
        elif plan:
            await carry_out(context, plan, f"Undid {what}")


async def _confirmed_other(
    context: CommandContext,
    what: str,
    *,
    redo: bool,
) -> bool:
    if redo:
        title = f"Do {what} again?"
    else:
        title = f"Undo {what}?"
    reason = "It belongs to another conversation in this folder."
    return await confirmed(context, title, reason)


_undo = partial(_take_back, redo=False)
_redo = partial(_take_back, redo=True)

UNDOING = [
    SlashCommand(
        "undo",
        "take back what the last turn or patch changed",
        _undo,
        while_working=False,
    ),
    SlashCommand("redo", "take the last undo back", _redo, while_working=False),
]
