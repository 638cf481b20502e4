"""Commands that begin, resume, name, compact or remove a conversation, or show its changes."""

import asyncio
from dataclasses import replace

from codex_py.app.features.agents.child import ChildAgent
from codex_py.app.features.agents.feature import SubAgents
from codex_py.app.patching import changes_since_commit
from codex_py.errors import CodexError
from codex_py.frontends.tui.agents import agent_row, read_agent
from codex_py.frontends.tui.cells.patch import diff_cells
from codex_py.frontends.tui.commands.registry import CommandContext, SlashCommand
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.overlay import Pages
from codex_py.frontends.tui.panel import yes_or_no
from codex_py.frontends.tui.picker import Picker
from codex_py.frontends.tui.session_picker import pick_session
from codex_py.rollout.archive import archive, delete


async def _new(context: CommandContext, _: str) -> None:
    await context.conversation.open(context.conversation.new_session())


async def _clear(context: CommandContext, _: str) -> None:
    context.ui.screen.clear()
    conversation = context.conversation
    await conversation.open(replace(conversation.new_session(), cleared=True))


async def _resume(context: CommandContext, argument: str) -> None:
    conversation = context.conversation
    wanted = argument or await pick_session(conversation, context.ui)
    if wanted is None:
        return
    session = conversation.session
    if session is not None and wanted in {session.thread_id, session.name}:
        context.ui.hints.show("this conversation is open already")
        return
    options = replace(
        conversation.new_session(), resume=wanted, needs_own_worktree=True
    )
    await conversation.open(options)


async def _fork(context: CommandContext, argument: str) -> None:
    conversation = context.conversation
    wanted = argument
    if not wanted:
        session = await conversation.opened()
        if not session.has_begun:
            message = "there is nothing to copy: nothing was said yet"
            raise CodexError(message, code="nothing_to_fork")
        wanted = session.thread_id
    options = replace(conversation.new_session(), resume=wanted, fork=True)
    await conversation.open(replace(options, needs_own_worktree=bool(argument)))


async def _rename(context: CommandContext, argument: str) -> None:
    if not argument:
        message = "say how the conversation is to be called: /rename NAME"
        raise CodexError(message, code="usage")
    session = await context.conversation.opened()
    session.rename(argument)
    context.conversation.monitor.refresh()
    context.transcript.notice(f"This conversation is now called {session.name!r}.")


async def _archive(context: CommandContext, _: str) -> None:
    question: Fragments = [("bold", "Archive this conversation?")]
    if await context.ui.panels.show(yes_or_no(question, "Yes, archive it", "No")):
        thread_id = await context.conversation.leave(archive)
        context.transcript.notice(
            f"Archived session {thread_id}. To bring it back: codex-py unarchive {thread_id}"
        )


async def _delete(context: CommandContext, _: str) -> None:
    question: Fragments = [("bold", "Delete this conversation for good?")]
    question.append(("", "\n\nIts subagents are deleted too. This cannot be undone."))
    panel = yes_or_no(question, "Yes, delete it", "No, keep it", by_letter=False)
    if await context.ui.panels.show(panel):
        thread_id = await context.conversation.leave(delete)
        context.transcript.notice(f"Deleted session {thread_id}.")


async def _compact(context: CommandContext, _: str) -> None:
    session = await context.conversation.opened()
    context.conversation.run(session.compact)


async def _retry(context: CommandContext, _: str) -> None:
    session = await context.conversation.opened()
    if not session.is_unfinished:
        raise CodexError("there is nothing to try again", code="nothing_to_retry")
    context.conversation.run(session.retry)


async def _agents(context: CommandContext, _: str) -> None:
    conversation = context.conversation
    ui = context.ui
    agents = (await conversation.opened()).feature(SubAgents)
    if agents is None or not agents.registry.open:
        ui.hints.show("no agent is open; ask for some")
        return
    agent: ChildAgent | None = None
    while True:
        news = conversation.monitor.agents
        asking = ui.status.asking
        # Working agents come first.
        found = sorted(agents.registry.open, key=lambda each: not each.is_busy)
        rows = [agent_row(each, news[each.id], asking) for each in found]
        at = found.index(agent) if agent in found else 0
        agent = await ui.panels.show(Picker("Agents", rows, selected=at))
        if agent is None:
            return
        await read_agent(
            agent,
            news[agent.id],
            context.overlays,
            lambda agent=agent: ui.start(agent.interrupt()),
        )


async def _diff(context: CommandContext, _: str) -> None:
    ui = context.ui
    config = context.config
    diff = await asyncio.to_thread(
        changes_since_commit,
        config.cwd,
        ui.programs,
        ui.environment,
        config.files,
    )
    if not diff:
        context.transcript.notice("Nothing has been changed since the last commit.")
    else:
        pages = Pages("Changed since the last commit")
        for cell in diff_cells(diff):
            pages.add(cell)
        await context.overlays.show(pages)


SESSIONS = [
    SlashCommand("diff", "show what differs from the last commit", _diff),
    SlashCommand("new", "begin a new conversation", _new, while_working=False),
    SlashCommand(
        "clear", "begin a new one on an empty screen", _clear, while_working=False
    ),
    SlashCommand(
        "resume",
        "go on with an earlier one",
        _resume,
        while_working=False,
        argument="[ID]",
    ),
    SlashCommand(
        "fork", "go on with a copy", _fork, while_working=False, argument="[ID]"
    ),
    SlashCommand("agents", "show, read and stop subagents", _agents),
    SlashCommand("retry", "go on with a turn that failed", _retry, while_working=False),
    SlashCommand("rename", "give this one a name", _rename, argument="NAME"),
    SlashCommand("archive", "put this one away", _archive, while_working=False),
    SlashCommand("delete", "delete this one for good", _delete, while_working=False),
    SlashCommand(
        "compact",
        "put a summary in place of what was said",
        _compact,
        while_working=False,
    ),
]
