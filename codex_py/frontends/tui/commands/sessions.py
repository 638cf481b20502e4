"""Commands for the conversation as a whole: begin, go on with another, go back, make room, name."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from codex_py.errors import CodexError
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.commands.registry import Command
from codex_py.frontends.tui.picker import Picker, Row, cut, rows_with
from codex_py.protocol.events import UserMessage
from codex_py.rollout.listing import SessionSummary, list_sessions, preview_messages

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

_LISTED = 200
"""Sessions that one search shows; a narrower one finds the others."""


async def _new(terminal: "Terminal", _: str) -> None:
    await terminal.open(terminal.new_session())


async def _clear(terminal: "Terminal", _: str) -> None:
    terminal.screen.clear()
    await terminal.open(terminal.new_session())


async def _resume(terminal: "Terminal", argument: str) -> None:
    wanted = argument or await pick_session(terminal)
    session = terminal.conversation.session
    if session is not None and wanted in {session.thread_id, session.name}:
        terminal.hint("this conversation is open already")
    elif wanted is not None:
        await terminal.open(replace(terminal.new_session(), resume=wanted))


async def pick_session(terminal: "Terminal") -> str | None:
    """Let the user choose among the sessions of this folder; None if they do not."""
    home, cwd = terminal.config.home, terminal.config.cwd
    current = terminal.conversation.session

    async def search(typed: str) -> Sequence[Row[SessionSummary]]:
        page = await asyncio.to_thread(list_sessions, home, cwd=cwd, search=typed, limit=_LISTED)
        room = terminal.screen.width - 24
        return [
            Row(cut(printable(found.name or found.preview or found.id), room), found, _age(found))
            for found in page.sessions
            if current is None or found.id != current.thread_id
        ]

    async def preview(found: SessionSummary) -> str:
        messages = await asyncio.to_thread(preview_messages, found.path)
        marks = {
            "user": terminal.theme.glyph("prompt"),
            "assistant": terminal.theme.glyph("bullet"),
        }
        room = terminal.screen.width - 6
        return "\n".join(
            f"    {marks[message.role]} {cut(printable(message.text), room)}"
            for message in messages
        )

    picked = await terminal.show(
        Picker("Resume a session", search, changed=terminal.screen.changed, preview=preview)
    )
    return None if picked is None else picked.id


def _age(found: SessionSummary) -> str:
    seconds = int((datetime.now(UTC) - found.updated).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return "just now"


async def _fork(terminal: "Terminal", _: str) -> None:
    session = await terminal.opening.session()
    if not session.has_begun:
        raise CodexError("there is nothing to copy: nothing was said yet", code="nothing_to_fork")
    await terminal.open(replace(terminal.new_session(), resume=session.thread_id, fork=True))


async def _rename(terminal: "Terminal", argument: str) -> None:
    if not argument:
        raise CodexError("say how the conversation is to be called: /rename NAME", code="usage")
    session = await terminal.opening.session()
    session.rename(argument)
    terminal.refresh()
    terminal.transcript.notice(f"This conversation is now called {session.name!r}.")


async def _compact(terminal: "Terminal", _: str) -> None:
    await terminal.opening.session()
    terminal.compact()


async def _retry(terminal: "Terminal", _: str) -> None:
    if not (await terminal.opening.session()).is_unfinished:
        raise CodexError("there is nothing to try again", code="nothing_to_retry")
    terminal.retry()


async def go_back(terminal: "Terminal", _: str = "") -> None:
    """Let the user choose an earlier prompt; it is put into the composer, and forgotten with what followed."""
    session = await terminal.opening.session()
    past = session.past_prompts()
    if not past:
        terminal.hint("there is no earlier prompt to go back to")
        return
    room = terminal.screen.width - 4
    rows = [Row(cut(printable(prompt.prompt.text), room), prompt.turns) for prompt in past]
    turns = await terminal.show(
        Picker(
            "Go back to a prompt (files stay as they are)",
            rows_with(rows),
            changed=terminal.screen.changed,
            selected=len(rows) - 1,
        )
    )
    if turns is None or terminal.conversation.is_working:
        return
    prompt = session.rollback(turns)
    places = [n for n, item in enumerate(terminal.said) if isinstance(item, UserMessage)]
    del terminal.said[places[-turns] if turns <= len(places) else 0 :]
    terminal.transcript.notice(f"Went back {turns} prompt{'s' if turns > 1 else ''}.")
    terminal.composer.set_text(prompt.text, [Path(image) for image in prompt.images])


SESSIONS = [
    Command("new", "begin a new conversation", _new, while_working=False),
    Command("clear", "begin a new one on an empty screen", _clear, while_working=False),
    Command("resume", "go on with an earlier one", _resume, while_working=False, argument="[ID]"),
    Command("fork", "go on with a copy of this one", _fork, while_working=False),
    Command("retry", "go on with a turn that failed", _retry, while_working=False),
    Command("back", "go back to an earlier prompt (Esc Esc)", go_back, while_working=False),
    Command("rename", "give this one a name", _rename, argument="NAME"),
    Command("compact", "put a summary in place of what was said", _compact, while_working=False),
]
