"""Commands for what has been changed in the files."""

import asyncio
import os
from typing import TYPE_CHECKING

from codex_py.app.patching import changes_since_commit
from codex_py.frontends.tui.commands.registry import Command
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo import newest_undo, plan_undo

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal


async def _diff(terminal: "Terminal", _: str) -> None:
    cwd, environment = terminal.config.cwd, terminal.safe_environment
    diff = await asyncio.to_thread(changes_since_commit, cwd, environment)
    if not diff:
        terminal.transcript.notice("Nothing has been changed since the last commit.")
    else:
        terminal.transcript.diff(diff)


async def _undo(terminal: "Terminal", _: str) -> None:
    await _take_back(terminal, None, "Undid")


async def _redo(terminal: "Terminal", _: str) -> None:
    number = await asyncio.to_thread(newest_undo, _journal(terminal))
    await _take_back(terminal, number, "Made again")


async def _take_back(terminal: "Terminal", number: int | None, done: str) -> None:
    def work() -> str:
        journal = _journal(terminal)
        journal.recover()
        plan = plan_undo(journal, number)
        plan.commit()
        return ", ".join(
            os.path.relpath(change.path, terminal.config.cwd) for change in plan.changes
        )

    paths = await asyncio.to_thread(work)
    terminal.transcript.notice(f"{done} the patch of {paths}")


def _journal(terminal: "Terminal") -> Journal:
    return Journal(terminal.config.home, terminal.config.cwd)


CHANGES = [
    Command("diff", "show what differs from the last commit", _diff),
    Command("undo", "bring back what the last patch replaced", _undo, while_working=False),
    Command("redo", "take the last undo back", _redo, while_working=False),
]
