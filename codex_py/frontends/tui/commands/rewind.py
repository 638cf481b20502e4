"""`/rewind` goes back to an earlier prompt: the conversation, the files, or both."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
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
_LEAST_PROMPT: Final = 12
"""The least number of columns for a prompt in the list."""
_NOTE_COLUMNS: Final = 36
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

    def note(self, count: str) -> str:
        """The time of the prompt, the count of its changes, and a remark."""
        parts = [_shown_time(self.prompt.time), count]
        if not self.turns:
            parts.append("before the compaction")
        return " · ".join(filter(None, parts))


def _shown_time(timestamp: float) -> str:
    """A time in the zone of the user, with its day unless it is today's; empty for 0."""
    if not timestamp:
        return ""
    time = datetime.fromtimestamp(timestamp).astimezone()
    if time.date() == datetime.now().astimezone().date():
        return f"{time:%H:%M}"
    return f"{time:%b %d %H:%M}"


def _places(session: Session, entries: Entries) -> list[_Place]:
    """The prompts to go back to, oldest first. Reads files."""
    sent = _sent_prompts(session)
    changed = _turns_with_changes(sent, entries)
    ends = [*(each.time for each in sent[1:]), inf]
    places: list[_Place] = []
    for n, prompt in enumerate(sent):
        since: list[JournalEntry] = []
        own: list[JournalEntry] = []
        for ended, entry in changed:
            if not prompt.time or ended <= prompt.time:
                continue
            since.append(entry)
            if ended <= ends[n]:
                own.append(entry)
        turns = 0 if prompt.is_compacted else len(sent) - n
        places.append(_Place(prompt, turns, since, own))
    return places


def _sent_prompts(session: Session) -> list[SentPrompt]:
    """The prompts of a session, oldest first.

    They have their times if the session file has the same prompts as the conversation.
    """
    past = session.past_prompts()
    path = session.session_file
    if path is not None and path.exists():
        sent = list(sent_prompts(path))
        kept = [each for each in sent if not each.is_compacted]
        if len(kept) == len(past):
            return sent
    return [SentPrompt(each.prompt.text, 0.0, session.thread_id) for each in past]


def _turns_with_changes(
    sent: Sequence[SentPrompt], entries: Entries
) -> list[tuple[float, JournalEntry]]:
    """The turns of these prompts that changed files and were not undone, with their ends."""
    until = {each.thread_id: each.until for each in sent}
    changed: list[tuple[float, JournalEntry]] = []
    for entry in entries.done_here:
        turn = entry.turn
        if turn is None or entry.number in entries.undone:
            continue
        # A turn that was cut off is recorded when it is found, maybe much later.
        ended = turn.began if turn.is_cut_off else entry.time
        is_in_conversation = ended <= until.get(turn.thread_id, 0.0)
        has_changes = entry.changes or turn.unkept
        if is_in_conversation and has_changes:
            changed.append((ended, entry))
    return changed


def _warnings(
    place: _Place,
    entries: Entries,
    cwd: Path,
) -> tuple[bool, list[str]]:
    """True if files can be brought back, and remarks for the user before that. Reads files."""
    if not place.turns_since:
        if place.prompt.time:
            return False, ["No file was changed since."]
        return False, ["Files stay as they are: when this was said is not known."]
    newest, *older = [entry.number for entry in place.turns_since]
    try:
        doubts = plan_undo(entries.journal, newest, others=older).doubts
    except EditedSince as error:
        doubts = [f"Only if you agree: {reason_of(error, cwd)}"]
    except CodexError as error:
        return False, [f"Files stay as they are: {error}"]
    changed: set[str] = set()
    for entry in place.turns_since:
        changed.update(change.path for change in entry.changes)
    told: list[str] = []
    if changed:
        shown = some_of([relpath(path, cwd) for path in sorted(changed)])
        told.append(f"Files: {shown}")
    unkept = unkept_in(place.turns_since)
    if unkept:
        told.append(f"Not kept, so it stays as it is: {some_of(unkept)}")
    return bool(changed), [*told, *doubts]


async def _rewind(context: CommandContext, _: str) -> None:
    async with context.undoing:
        await _go_back(context, await context.conversation.opened())


async def _go_back(context: CommandContext, session: Session) -> None:
    """Ask which prompt to go back to, and with what; then bring back files and conversation."""
    entries = await asyncio.to_thread(entries_here, context)
    places = await asyncio.to_thread(_places, session, entries)
    if not places:
        context.ui.hints.show("there is no earlier prompt to go back to")
        return
    place = await _picked(context, places, entries)
    if place is None:
        return
    aim = await _aim(context, place, entries)
    if aim == "nothing" or not _may_go_back(context, session):
        return
    if aim in {"both", "files"}:
        are_back = await _bring_files_back(context, session, place, entries)
        if not are_back:
            return
    if aim == "files":
        return
    if context.conversation.is_working:
        message = "The conversation has not gone back: a turn has begun."
        context.transcript.notice(message)
    else:
        _take_back(context, session, place)


def _may_go_back(context: CommandContext, session: Session) -> bool:
    """True if the session is still the open one, and no turn has begun."""
    conversation = context.conversation
    return conversation.session is session and not conversation.is_working


async def _picked(
    context: CommandContext, places: Sequence[_Place], entries: Entries
) -> _Place | None:
    """Let the user pick a prompt, while the changes after each are counted."""
    screen = context.ui.screen
    room = max(_LEAST_PROMPT, screen.width - _NOTE_COLUMNS)
    counts = dict[int, str]()

    def row(n: int, place: _Place) -> MenuOption[_Place]:
        label = fit(printable(place.prompt.text), room)
        return MenuOption(label, place, note=lambda: place.note(counts.get(n, "")))

    rows = [row(n, place) for n, place in enumerate(places)]
    picker = Picker("Go back to a prompt", rows, selected=len(rows) - 1)
    loop = asyncio.get_running_loop()

    def count() -> None:
        # The newest prompts are shown first.
        for n in reversed(range(len(places))):
            if picker.result.done():
                return
            if not places[n].changed:
                continue
            with suppress(CodexError):
                counts[n] = _counted(places[n].changed, entries)
                loop.call_soon_threadsafe(screen.changed)

    # In a thread: counting a hundred turns takes a second.
    counting = asyncio.ensure_future(asyncio.to_thread(count))
    try:
        return await context.ui.panels.show(picker)
    finally:
        await counting


def _counted(changed: Sequence[JournalEntry], entries: Entries) -> str:
    """The number of files and lines of these changes. Reads the contents of the files."""
    diffs: list[str] = []
    for entry in changed:
        whole = entries.find(entry.number)
        files = patched_files(whole.changes)
        diffs.append(git_diff(files, Path(whole.cwd)))
    return counted("".join(diffs))


async def _bring_files_back(
    context: CommandContext, session: Session, place: _Place, entries: Entries
) -> bool:
    """Undo the changes since a prompt if the user agrees to all of them. True if it is done."""
    turns = [entry.turn for entry in place.turns_since if entry.turn is not None]
    if any(turn.thread_id != session.thread_id for turn in turns):
        remark = "Some of it belongs to the conversation that this one is a copy of."
        if not await confirmed(context, "Bring files back?", remark):
            return False
    numbers = [entry.number for entry in place.turns_since]
    plan = await agreed_plan(context, entries.journal, numbers, "files")
    if plan is None or not _may_go_back(context, session):
        return False
    await carry_out(context, plan, "Brought files back (/redo takes that back)")
    return True


async def _aim(
    context: CommandContext,
    place: _Place,
    entries: Entries,
) -> Aim:
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
    options: list[MenuOption[Aim]] = []
    if place.turns and can_undo:
        options.append(MenuOption("The conversation and the files", "both", "b"))
    if place.turns:
        options.append(MenuOption("The conversation only", "conversation", "c"))
    if can_undo:
        options.append(MenuOption("The files only", "files", "f"))
    options.append(MenuOption("Nothing", "nothing", "n"))
    head = fit(printable(place.prompt.text), context.ui.screen.width - 20)
    question: Fragments = [("bold", f"Go back to {head!r}?"), ("", "\n\n")]
    question.append(("", printable("\n".join(told))))
    panel = Choice(question, options, cancelled="nothing")
    return await context.ui.panels.show(panel)


def _take_back(
    context: CommandContext,
    session: Session,
    place: _Place,
) -> None:
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
    images = [Path(image) for image in prompt.images]
    context.ui.composer.set_text(prompt.text, images)


_HELP = "go back to an earlier prompt, with or without files (Esc Esc)"
REWIND = [SlashCommand("rewind", _HELP, _rewind, while_working=False)]
