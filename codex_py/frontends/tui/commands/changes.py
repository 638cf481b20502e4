"""Commands for what has been changed in the files."""

import asyncio
import os

from codex_py.app.patching import changes_since_commit
from codex_py.frontends.tui.commands.registry import Command, CommandContext
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo import newest_undo, plan_undo


async def _diff(context: CommandContext, _: str) -> None:
    cwd, environment = context.config.cwd, context.safe_environment
    diff = await asyncio.to_thread(changes_since_commit, cwd, environment)
    if not diff:
        context.transcript.notice("Nothing has been changed since the last commit.")
    else:
        context.transcript.diff(diff)


async def _undo(context: CommandContext, _: str) -> None:
    await _take_back(context, None, "Undid")


async def _redo(context: CommandContext, _: str) -> None:
    number = await asyncio.to_thread(newest_undo, _journal(context))
    await _take_back(context, number, "Made again")


async def _take_back(context: CommandContext, number: int | None, done: str) -> None:
    def work() -> str:
        journal = _journal(context)
        journal.recover()
        plan = plan_undo(journal, number)
        plan.commit()
        cwd = context.config.cwd
        return ", ".join(os.path.relpath(change.path, cwd) for change in plan.changes)

    paths = await asyncio.to_thread(work)
    context.transcript.notice(f"{done} the patch of {paths}")


def _journal(context: CommandContext) -> Journal:
    return Journal(context.config.home, context.config.cwd)


CHANGES = [
    Command("diff", "show what differs from the last commit", _diff),
    Command("undo", "bring back what the last patch replaced", _undo, while_working=False),
    Command("redo", "take the last undo back", _redo, while_working=False),
]
