"""Commands for the conversation as a whole: begin, go on with another, go back, make room, name; and for its
changes."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from codex_py.app.features.agents.feature import SubAgents
from codex_py.app.patching import changes_since_commit
from codex_py.errors import CodexError
from codex_py.frontends.tui.agents import agent_row, read_agent
from codex_py.frontends.tui.cells.layout import MOST_ROWS
from codex_py.frontends.tui.cells.patch import diff_cell, diff_cells
from codex_py.frontends.tui.commands.registry import Command, CommandContext
from codex_py.frontends.tui.fitting import Fragments, fit
from codex_py.frontends.tui.menu import Option
from codex_py.frontends.tui.overlay import Pages
from codex_py.frontends.tui.panel import yes_or_no
from codex_py.frontends.tui.picker import Picker
from codex_py.frontends.tui.session_picker import pick_session
from codex_py.patch.files.change import Entry
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.entries import Entries
from codex_py.patch.undo.plan import EditedSince, UndoPlan, plan_undo
from codex_py.patch.undo.recorder import undo_problem
from codex_py.patch.undo.running_turns import recover_turns
from codex_py.protocol.event_items import UserMessage
from codex_py.rollout.archive import archive, delete
from codex_py.streams.terminal import printable, some_of


async def _new(context: CommandContext, _: str) -> None:
    await context.conversation.open(context.conversation.new_session())


async def _clear(context: CommandContext, _: str) -> None:
    context.surface.screen.clear()
    conversation = context.conversation
    await conversation.open(replace(conversation.new_session(), cleared=True))


async def _resume(context: CommandContext, argument: str) -> None:
    conversation = context.conversation
    wanted = argument or await pick_session(conversation, context.surface)
    session = conversation.session
    if session is not None and wanted in {session.thread_id, session.name}:
        context.surface.hints.show("this conversation is open already")
    elif wanted is not None:
        await conversation.open(replace(conversation.new_session(), resume=wanted))


async def _fork(context: CommandContext, argument: str) -> None:
    conversation, wanted = context.conversation, argument
    if not wanted:
        session = await conversation.opened()
        if not session.has_begun:
            message = "there is nothing to copy: nothing was said yet"
            raise CodexError(message, code="nothing_to_fork")
        wanted = session.thread_id
    await conversation.open(replace(conversation.new_session(), resume=wanted, fork=True))


async def _rename(context: CommandContext, argument: str) -> None:
    if not argument:
        raise CodexError("say how the conversation is to be called: /rename NAME", code="usage")
    session = await context.conversation.opened()
    session.rename(argument)
    context.conversation.progress.refresh()
    context.transcript.notice(f"This conversation is now called {session.name!r}.")


async def _archive(context: CommandContext, _: str) -> None:
    question: Fragments = [("bold", "Archive this conversation?")]
    if await context.surface.panels.show(yes_or_no(question, "Yes, archive it", "No")):
        thread_id = await context.conversation.leave(archive)
        context.transcript.notice(
            f"Archived session {thread_id}. To bring it back: codex-py unarchive {thread_id}"
        )


async def _delete(context: CommandContext, _: str) -> None:
    question: Fragments = [("bold", "Delete this conversation for good?")]
    question.append(("", "\n\nIts subagents are deleted too. This cannot be undone."))
    panel = yes_or_no(question, "Yes, delete it", "No, keep it", by_letter=False)
    if await context.surface.panels.show(panel):
        context.transcript.notice(f"Deleted session {await context.conversation.leave(delete)}.")


async def _compact(context: CommandContext, _: str) -> None:
    context.conversation.run((await context.conversation.opened()).compact)


async def _retry(context: CommandContext, _: str) -> None:
    session = await context.conversation.opened()
    if not session.is_unfinished:
        raise CodexError("there is nothing to try again", code="nothing_to_retry")
    context.conversation.run(session.retry)


async def _agents(context: CommandContext, _: str) -> None:
    conversation, surface = context.conversation, context.surface
    agents = (await conversation.opened()).feature(SubAgents)
    if agents is None or not agents.family.open:
        surface.hints.show("no agent is open; ask for some")
        return
    at = 0
    while True:
        news = conversation.progress.agents
        rows = [agent_row(agent, news[agent.id]) for agent in agents.family.open]
        picker = Picker("Agents: Enter reads one", rows, selected=at)
        if (picked := await surface.panels.show(picker)) is None:
            return
        at = [row.value for row in rows].index(picked)
        agent = picked
        await read_agent(
            agent,
            news[agent.id],
            context.overlays,
            lambda agent=agent: surface.start(agent.interrupt()),
        )


async def _back(context: CommandContext, _: str) -> None:
    """Let the user choose an earlier prompt; it is put into the composer, and forgotten with what followed."""
    session = await context.conversation.opened()
    past = session.past_prompts()
    if not past:
        context.surface.hints.show("there is no earlier prompt to go back to")
        return
    room = context.surface.screen.width - 4
    rows = [Option(fit(printable(prompt.prompt.text), room), prompt.turns) for prompt in past]
    title = "Go back to a prompt (files stay as they are)"
    turns = await context.surface.panels.show(Picker(title, rows, selected=len(rows) - 1))
    if turns is None or context.conversation.is_working:
        return
    context.conversation.plan_offer.withdraw()
    prompt = session.rollback(turns)
    said = context.conversation.progress.said
    places = [n for n, item in enumerate(said) if isinstance(item, UserMessage)]
    del said[places[-turns] if turns <= len(places) else 0 :]
    context.transcript.notice(f"Went back {turns} prompt{'s' if turns > 1 else ''}.")
    context.surface.composer.set_text(prompt.text, [Path(image) for image in prompt.images])


async def _diff(context: CommandContext, _: str) -> None:
    surface = context.surface
    config = context.config
    diff = await asyncio.to_thread(
        changes_since_commit, config.cwd, surface.programs, surface.environment, config.files
    )
    if not diff:
        context.transcript.notice("Nothing has been changed since the last commit.")
    else:
        pages = Pages("Changed since the last commit")
        for cell in diff_cells(diff):
            pages.add(cell)
        await context.overlays.show(pages)


async def _take_back(context: CommandContext, *, redo: bool) -> None:
    home, cwd = context.config.home, context.config.cwd
    environment = context.surface.safe_environment

    def find() -> tuple[Journal, int, Entry]:
        journal = Journal(home, cwd)
        journal.recover()
        recover_turns(home, cwd, environment)
        entries = Entries(journal)
        entry = entries.find(entries.newest_undo() if redo else None)
        return journal, entry.number, entries.find(entry.undoes) if redo else entry

    def carried_out(plan: UndoPlan) -> str:
        plan.commit()
        return some_of([os.path.relpath(change.path, cwd) for change in plan.changes])

    async def confirmed(
        title: str, reason: str, show_all: Callable[[], None] | None = None
    ) -> bool | None:
        question: Fragments = [("bold", title), ("", f"\n\n{reason}")]
        panel = yes_or_no(question, "Yes, do it", "No", show_all=show_all)
        return await context.surface.panels.show(panel)

    journal, number, undone = await asyncio.to_thread(find)
    what, session = undone.name, context.conversation.session
    if undone.turn and session is not None and undone.turn.thread_id == session.thread_id:
        what = f"turn {undone.turn.number}"
    elif undone.turn and not await confirmed(
        f"{'Do' if redo else 'Undo'} {what}{' again' if redo else ''}?",
        "It belongs to another conversation in this folder.",
    ):
        return
    try:
        plan = await asyncio.to_thread(plan_undo, journal, number)
        if plan.doubts and not await confirmed("Undo all of it?", "\n".join(plan.doubts)):
            return
    except EditedSince as error:
        # Its number is nothing that the user has seen.
        context.transcript.notice(f"Not done: {what} {str(error).partition(': ')[2]}", "warning")
        title = "Would change" if error.is_plan else "Edited since"
        shown = diff_cell(error.diff, most=MOST_ROWS, title=title, key=" (v shows all)")
        context.transcript.print(shown)
        whole = Pages(title)
        whole.add(diff_cell(error.diff, title=title))
        reason = "What it replaces is kept."
        if not await confirmed("Do it all the same?", reason, lambda: context.overlays.open(whole)):
            return
        plan = await asyncio.to_thread(plan_undo, journal, number, force=True)
    paths = await asyncio.to_thread(carried_out, plan)
    context.transcript.notice(f"{'Made again' if redo else 'Undid'} {what}: {paths}")
    if plan.unkept:
        context.transcript.notice(f"Not brought back: {some_of(plan.unkept)}")
    if problem := await asyncio.to_thread(undo_problem, home, cwd, environment):
        context.transcript.notice(problem)


async def _in_turn(context: CommandContext, _: str, *, redo: bool) -> None:
    async with context.undoing:
        await _take_back(context, redo=redo)


_undo, _redo = partial(_in_turn, redo=False), partial(_in_turn, redo=True)


SESSIONS = [
    Command("diff", "show what differs from the last commit", _diff),
    Command("undo", "take back what the last turn or patch changed", _undo, while_working=False),
    Command("redo", "take the last undo back", _redo, while_working=False),
    Command("new", "begin a new conversation", _new, while_working=False),
    Command("clear", "begin a new one on an empty screen", _clear, while_working=False),
    Command("resume", "go on with an earlier one", _resume, while_working=False, argument="[ID]"),
    Command("fork", "go on with a copy", _fork, while_working=False, argument="[ID]"),
    Command("agents", "show, read and stop subagents", _agents),
    Command("retry", "go on with a turn that failed", _retry, while_working=False),
    Command("back", "go back to an earlier prompt (Esc Esc)", _back, while_working=False),
    Command("rename", "give this one a name", _rename, argument="NAME"),
    Command("archive", "put this one away", _archive, while_working=False),
    Command("delete", "delete this one for good", _delete, while_working=False),
    Command("compact", "put a summary in place of what was said", _compact, while_working=False),
]
