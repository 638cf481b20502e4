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
_FOLDER: Final = "Tab"
_ORDER: Final = "^S"
_ARCHIVE: Final = "^A"
_LISTS: Final = {
    _FOLDER: ("this folder", "all folders"),
    _ORDER: ("last used", "created"),
    _ARCHIVE: ("active", "archived"),
}
"""The two states that each key switches between: the folder, the order, and the archive."""
_LONGEST_PLACE: Final = 20
_DAYS_AGO: Final = 7
"""The age, in days, from which the date is shown."""
_LEAST_TITLE: Final = 16
_BESIDE_TITLE: Final = 6
"""Columns of a row that are neither its title nor its note."""


async def pick_session(conversation: Conversation, ui: TerminalUI) -> str | None:
    """Let the user choose a session; None if they choose none. An archived one is brought back."""
    sessions = _Sessions(conversation, ui)
    picked = await ui.panels.show(sessions.picker)
    if picked is None:
        return None
    if sessions.chosen[_ARCHIVE]:
        await asyncio.to_thread(unarchive, conversation.config.home, picked.id)
    return picked.id


class _Sessions:
    """The picker of sessions, and the lists that it can show.

    Attributes:
        chosen: for each key of `_LISTS`, True if its second state is chosen.
    """

    def __init__(self, conversation: Conversation, ui: TerminalUI) -> None:
        self._conversation = conversation
        self._config = conversation.config
        self._screen = ui.screen
        self.chosen = dict.fromkeys(_LISTS, False)
        self.picker: Picker[SessionSummary] = Picker(
            "",
            self._search,
            preview=self._preview,
            actions={
                "tab": partial(self._switch, _FOLDER),
                "c-s": partial(self._switch, _ORDER),
                "c-a": partial(self._switch, _ARCHIVE),
                "c-x": self._move,
            },
        )
        self._describe()

    def _describe(self, problem: str = "") -> None:
        """Set the title, which may be a problem, and the row of keys."""
        shown: list[str] = []
        keys: list[str] = []
        for key, is_second in self.chosen.items():
            now, other = _LISTS[key]
            if is_second:
                now, other = other, now
            shown.append(now)
            keys.append(f"{key} {other}")
        if self.chosen[_ARCHIVE]:
            keys.append("^X bring back")
        else:
            keys.append("^X archive")
        self.picker.title = problem or f"Resume a session ({', '.join(shown)})"
        self.picker.hint = " · ".join(keys)

    async def _switch(self, key: str, _: SessionSummary | None) -> None:
        self.chosen[key] = not self.chosen[key]
        self._describe()

    async def _move(self, found: SessionSummary | None) -> None:
        """Move a session into the archive, or out of it."""
        work = unarchive if self.chosen[_ARCHIVE] else archive
        problem = ""
        try:
            if found is not None:
                await asyncio.to_thread(work, self._config.home, found.id)
        except CodexError as error:
            problem = printable(str(error))
        self._describe(problem)

    async def _search(self, typed: str) -> Sequence[MenuOption[SessionSummary]]:
        cwd = None if self.chosen[_FOLDER] else self._config.cwd
        listed = await asyncio.to_thread(
            list_sessions,
            self._config.home,
            cwd=cwd,
            search=typed,
            limit=_LISTED,
            archived=self.chosen[_ARCHIVE],
            by_start=self.chosen[_ORDER],
        )
        current = self._conversation.session
        open_id = None if current is None else current.thread_id
        return [self._row(found) for found in listed if found.id != open_id]

    def _row(self, found: SessionSummary) -> MenuOption[SessionSummary]:
        """The title of a session; and its time, its folder if all are listed, and its branch."""
        time = found.created if self.chosen[_ORDER] else found.updated
        facts = [_shown_time(time)]
        if self.chosen[_FOLDER]:
            folder = Path(found.cwd).name
            facts.append(fit(printable(folder), _LONGEST_PLACE))
        facts.append(fit(printable(found.branch or ""), _LONGEST_PLACE))
        note = " · ".join(filter(None, facts))
        title = printable(found.name or found.title or found.id)
        taken = _BESIDE_TITLE + get_cwidth(note) + len(found.fork_mark)
        title = fit(title, max(_LEAST_TITLE, self._screen.width - taken))
        return MenuOption(title + found.fork_mark, found, note=note)

    async def _preview(self, found: SessionSummary) -> str:
        messages = await asyncio.to_thread(preview_messages, found.path)
        room = self._screen.width - _BESIDE_TITLE
        marks = {"user": PROMPT, "assistant": "•"}
        lines: list[str] = []
        for message in messages:
            text = fit(printable(message.text), room)
            lines.append(f"    {marks[message.role]} {text}")
        return "\n".join(lines)


def _shown_time(time: datetime) -> str:
    """The age of a session that is some days old at most, else its date."""
    if (datetime.now(UTC) - time).days >= _DAYS_AGO:
        return f"{time.astimezone():%Y-%m-%d}"
    return age(time)
