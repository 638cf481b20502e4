"""The list of sessions to resume, by folder, order and archive; it can archive and bring back."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from prompt_toolkit.utils import get_cwidth

from codex_py.errors import CodexError
from codex_py.frontends.tui.conversation import Conversation
from codex_py.frontends.tui.fitting import fit
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.picker import Picker
from codex_py.frontends.tui.terminal_ui import TerminalUI
from codex_py.frontends.tui.theme import PROMPT
from codex_py.rollout.archive import archive, unarchive
from codex_py.rollout.listing import SessionSummary, list_sessions, preview_messages
from codex_py.streams.terminal import printable
from codex_py.streams.times import age

_LISTED: Final = 200
"""Sessions that one search shows; a narrower search finds the others."""
_LISTS: Final = {
    "Tab": ("this folder", "all folders"),
    "^S": ("last used", "created"),
    "^A": ("active", "archived"),
}
"""The two states that each key switches between: the folder, the order, and the archive."""
_LONGEST_PLACE: Final = 20
_DAYS_AGO: Final = 7
"""From so many days on, the date is shown."""
_LEAST_TITLE: Final = 16


async def pick_session(conversation: Conversation, ui: TerminalUI) -> str | None:
    """Let the user choose a session; None if they choose none. An archived one is brought back."""
    sessions = _Sessions(conversation, ui)
    picked = await ui.panels.show(sessions.picker)
    if picked is not None and sessions.chosen["^A"]:
        await asyncio.to_thread(unarchive, conversation.config.home, picked.id)
    if picked is None:
        return None
    return picked.id


class _Sessions:
    def __init__(self, conversation: Conversation, ui: TerminalUI) -> None:
        self._conversation = conversation
        self._config = conversation.config
        self._screen = ui.screen
        self.chosen = dict.fromkeys(_LISTS, False)
        keys = {"tab": "Tab", "c-s": "^S", "c-a": "^A"}
        actions = {key: partial(self._switch, name) for key, name in keys.items()}
        self.picker: Picker[SessionSummary] = Picker(
            "",
            self._search,
            preview=self._preview,
            actions={**actions, "c-x": self._move},
        )
        self._describe()

    def _describe(self, problem: str = "") -> None:
        """Set the title and the row of keys."""
        shown: list[str] = []
        keys: list[str] = []
        for key, is_second in self.chosen.items():
            now, other = _LISTS[key]
            if is_second:
                now, other = other, now
            shown.append(now)
            keys.append(f"{key} {other}")
        said = ", ".join(shown)
        if self.chosen["^A"]:
            move = "^X bring back"
        else:
            move = "^X archive"
        self.picker.title = problem or f"Resume a session ({said})"
        self.picker.hint = " · ".join([*keys, move])

    async def _switch(self, key: str, _: SessionSummary | None) -> None:
        self.chosen[key] = not self.chosen[key]
        self._describe()

    async def _move(self, found: SessionSummary | None) -> None:
        """Move a session into the archive, or out of it."""
        work = unarchive if self.chosen["^A"] else archive
        problem = ""
        try:
            if found is not None:
                await asyncio.to_thread(work, self._config.home, found.id)
        except CodexError as error:
            problem = printable(str(error))
        self._describe(problem)

    async def _search(self, typed: str) -> Sequence[MenuOption[SessionSummary]]:
        listed = await asyncio.to_thread(
            list_sessions,
            self._config.home,
            cwd=None if self.chosen["Tab"] else self._config.cwd,
            search=typed,
            limit=_LISTED,
            archived=self.chosen["^A"],
            by_start=self.chosen["^S"],
        )
        current = self._conversation.session
        is_open = None if current is None else current.thread_id
        return [self._row(found) for found in listed if found.id != is_open]

    def _row(self, found: SessionSummary) -> MenuOption[SessionSummary]:
        if self.chosen["^S"]:
            time = found.created
        else:
            time = found.updated
        is_old = (datetime.now(UTC) - time).days >= _DAYS_AGO
        if is_old:
            when = f"{time.astimezone():%Y-%m-%d}"
        else:
            when = age(time)
        if self.chosen["Tab"]:
            folder = Path(found.cwd).name
        else:
            folder = ""
        places = [
            fit(printable(each), _LONGEST_PLACE)
            for each in (folder, found.branch or "")
        ]
        note = " · ".join(filter(None, [when, *places]))
        title = printable(found.name or found.title or found.id)
        room = self._screen.width - 6 - get_cwidth(note) - len(found.fork_mark)
        return MenuOption(
            fit(title, max(_LEAST_TITLE, room)) + found.fork_mark, found, note=note
        )

    async def _preview(self, found: SessionSummary) -> str:
        messages = await asyncio.to_thread(preview_messages, found.path)
        room = self._screen.width - 6
        marks = {"user": PROMPT, "assistant": "•"}
        return "\n".join(
            f"    {marks[message.role]} {fit(printable(message.text), room)}"
            for message in messages
        )
