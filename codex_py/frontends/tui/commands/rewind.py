"""`/rewind` goes back to an earlier prompt: the conversation, the files, or both."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import inf
from os.path import relpath
from pathlib import Path
from typing import Final, Literal, TypeAlias

from codex_py.app.session import Session
from codex_py.errors import CodexError
from codex_py.frontends.tui.cells.item import counted
from codex_py.frontends.tui.commands.registry import CommandContext, SlashCommand
from codex_py.frontends.tui.commands.undoing import (
    agreed_plan,
    carry_out,
    confirmed,
    entries_here,
    reason_of,
)
from codex_py.frontends.tui.fitting import Fragments, fit
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.panel import Choice
from codex_py.frontends.tui.picker import Picker
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.files.change import JournalEntry, patched_files
from codex_py.patch.undo.entries import Entries, unkept_in
from codex_py.patch.undo.plan import EditedSince, plan_undo
from codex_py.protocol.event_items import UserMessage
from codex_py.rollout.past import SentPrompt, sent_prompts
from codex_py.streams.terminal import printable, some_of

Aim: TypeAlias = Literal["both", "conversation", "files", "nothing"]
_LEAST: Final = 12
"""The least number of columns for a prompt in the list."""
_NOTE: Final = 36
"""Columns for the note beside a prompt."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A prompt to go back to."""

    prompt: SentPrompt
    turns: int
    """The argument for `Session.rollback`; 0 if the conversation cannot go back to the prompt."""
    turns_since: Sequence[JournalEntry]
    """The changes of the prompt's turn and of later ones, the newest first, without contents."""
    changed: Sequence[JournalEntry]
    """The changes up to the next prompt."""

    def told(self, count: str) -> str:
        if self.prompt.time:
            time = datetime.fromtimestamp(self.prompt.time).astimezone()
        else:
            time = None
        is_today = (
            time is not None and time.date() == datetime.now().astimezone().date()
        )
        if time is None:
            shown = ""
        elif is_today:
            shown = f"{time:%H:%M}"
        else:
            shown = f"{time:%b %d %H:%M}"
        state = "" if self.turns else "before the compaction"
        return " · ".join(filter(None, (shown, count, state)))


def _places(session: Session, entries: Entries) -> list[_Place]:
    """The prompts to go back to, oldest first. Reads files."""
    past = session.past_prompts()
    path = session.session_file
    if path is not None and path.exists():
        sent = list(sent_prompts(path))
    else:
        sent = []
    kept = sum(not each.is_compacted for each in sent)
    if kept != len(past):
        # The session was not saved, or not as the conversation went.
        sent = [SentPrompt(each.prompt.text, 0.0, session.thread_id) for each in past]
    threads = {each.thread_id: each.until for each in sent}
    changed: list[tuple[float, JournalEntry]] = []
    for entry in entries.done_here:
        turn = entry.turn
        if turn is not None and entry.number not in entries.undone:
            # A turn that was cut off is recorded when it is found, maybe much later.
            ended = turn.began if turn.is_cut_off else entry.time
            if ended <= threads.get(turn.thread_id, 0.0) and (
                entry.changes or turn.unkept
            ):
                changed.append((ended, entry))
    places: list[_Place] = []
    for n, each in enumerate(sent):
        next_time = sent[n + 1].time if n + 1 < len(sent) else inf
        own = [
            entry
            for ended, entry in changed
            if each.time and each.time < ended <= next_time
        ]
        since = [entry for ended, entry in changed if each.time and each.time < ended]
        turns = 0 if each.is_compacted else len(sent) - n
        places.append(_Place(each, turns, since, own))
    return places


def _warnings(place: _Place, entries: Entries, cwd: Path) -> tuple[bool, list[str]]:
    """True if files can be brought back, and remarks for the user before that. Reads files."""
    if not place.turns_since:
        unknown = "Files stay as they are: when this was said is not known."
        return False, ["No file was changed since." if place.prompt.time else unknown]
    numbers = [entry.number for entry in place.turns_since]
    try:
        told = [*plan_undo(entries.journal, numbers[0], others=numbers[1:]).doubts]
    except EditedSince as error:
        told = [f"Only if you agree: {reason_of(error, cwd)}"]
    except CodexError as error:
        return False, [f"Files stay as they are: {error}"]
    changed = {
        change.path: None for entry in place.turns_since for change in entry.changes
    }
    unkept = unkept_in(place.turns_since)
    if unkept:
        told.insert(0, f"Not kept, so it stays as it is: {some_of(unkept)}")
    if changed:
        told.insert(
            0, f"Files: {some_of([relpath(path, cwd) for path in sorted(changed)])}"
        )
    return bool(changed), told


async def _rewind(context: CommandContext, _: str) -> None:
    async with context.undoing:
        await _go_back(context, await context.conversation.opened())


async def _go_back(context: CommandContext, session: Session) -> None:
    ui = context.ui
    conversation = context.conversation
    entries = await asyncio.to_thread(entries_here, context)
    places = await asyncio.to_thread(_places, session, entries)
    if not places:
        ui.hints.show("there is no earlier prompt to go back to")
        return
    room = max(_LEAST, ui.screen.width - _NOTE)
    counts = dict[int, str]()
    rows = [
        MenuOption(
            fit(printable(p.prompt.text), room),
            p,
            note=lambda n=n, p=p: p.told(counts.get(n, "")),
        )
        for n, p in enumerate(places)
    ]
    picker = Picker("Go back to a prompt", rows, selected=len(rows) - 1)
    changed = partial(
        asyncio.get_running_loop().call_soon_threadsafe, ui.screen.changed
    )

    def count() -> None:
        for n in reversed(range(len(places))):
            if not picker.result.done() and places[n].changed:
                with suppress(CodexError):
                    whole = (entries.find(entry.number) for entry in places[n].changed)
                    diffs = [
                        git_diff(patched_files(e.changes), Path(e.cwd)) for e in whole
                    ]
                    counts[n] = counted("".join(diffs))
                    changed()

    # In a thread: counting a hundred turns takes a second.
    counting = asyncio.ensure_future(asyncio.to_thread(count))
    try:
        place = await ui.panels.show(picker)
    finally:
        await counting
    if place is None:
        return
    aim = await _aim(context, place, entries)
    if (
        aim == "nothing"
        or conversation.is_working
        or conversation.session is not session
    ):
        return
    if aim != "conversation":
        of_others = any(
            e.turn and e.turn.thread_id != session.thread_id for e in place.turns_since
        )
        other = "Some of it belongs to the conversation that this one is a copy of."
        if of_others and not await confirmed(context, "Bring files back?", other):
            return
        numbers = [entry.number for entry in place.turns_since]
        plan = await agreed_plan(context, entries.journal, numbers, "files")
        if (
            plan is None
            or conversation.is_working
            or conversation.session is not session
        ):
            return
        await carry_out(context, plan, "Brought files back (/redo takes that back)")
    if aim != "files" and conversation.is_working:
        context.transcript.notice(
            "The conversation has not gone back: a turn has begun."
        )
    elif aim != "files":
        _take_back(context, session, place)


async def _aim(context: CommandContext, place: _Place, entries: Entries) -> Aim:
    """Ask what should go back, if there is a choice or something to say."""
    can_undo, told = await asyncio.to_thread(
        _warnings, place, entries, context.config.cwd
    )
    if place.turns and not place.turns_since and place.prompt.time:
        return "conversation"
    if place.prompt.is_steered and can_undo:
        told.append(
            "It was said while a turn ran: files go back to the beginning of that turn."
        )
    if not place.turns:
        told.append(
            "The prompt is before the compaction: the conversation cannot go back to it."
        )
    rows: list[tuple[object, MenuOption[Aim]]] = [
        (
            place.turns and can_undo,
            MenuOption("The conversation and the files", "both", "b"),
        ),
        (place.turns, MenuOption("The conversation only", "conversation", "c")),
        (can_undo, MenuOption("The files only", "files", "f")),
        (True, MenuOption("Nothing", "nothing", "n")),
    ]
    options = [option for is_possible, option in rows if is_possible]
    head = fit(printable(place.prompt.text), context.ui.screen.width - 20)
    question: Fragments = [("bold", f"Go back to {head!r}?"), ("", "\n\n")]
    question.append(("", printable("\n".join(told))))
    return await context.ui.panels.show(Choice(question, options, cancelled="nothing"))


def _take_back(context: CommandContext, session: Session, place: _Place) -> None:
    """Drop the prompt and everything after it, and put the prompt into the composer."""
    conversation = context.conversation
    turns = place.turns
    conversation.plan_offer.withdraw()
    prompt = session.rollback(turns)
    said = conversation.monitor.said
    places = [n for n, item in enumerate(said) if isinstance(item, UserMessage)]
    first = 0
    if turns <= len(places):
        first = places[-turns]
    del said[first:]
    if turns == 1:
        context.transcript.notice("Went back 1 prompt.")
    else:
        context.transcript.notice(f"Went back {turns} prompts.")
    context.ui.composer.set_text(prompt.text, [Path(image) for image in prompt.images])


_HELP = "go back to an earlier prompt, with or without files (Esc Esc)"
REWIND = [SlashCommand("rewind", _HELP, _rewind, while_working=False)]
