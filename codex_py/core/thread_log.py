"""What a thread has come to: the history that the model sees and the session file, kept in step."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from codex_py.core.context_update import context_update, model_switch
from codex_py.core.history import History
from codex_py.core.images import image_parts
from codex_py.core.past import without_turns
from codex_py.errors import CodexError
from codex_py.protocol.extension import Occasion
from codex_py.protocol.frozen import frozen
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.messages import EncodedItem, input_text, message
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.settings import TurnSettings, turn_context
from codex_py.protocol.stream import Usage

_ABORTED = (
    "<turn_aborted>\n{}. Commands that were running"
    " have been stopped and may have done part of their work: check before you repeat one.\n"
    "</turn_aborted>"
)


Introduction: TypeAlias = Callable[[Occasion], Sequence[Note]]
"""See `Extension.context`."""


class Recorder(Protocol):
    """Where a session is written as it happens."""

    def response_item(self, item: EncodedItem) -> None: ...
    def turn_context(self, payload: Mapping[str, Any]) -> None: ...
    def event_msg(self, payload: Mapping[str, Any]) -> None: ...

    def compacted(self, message: str, replacement_history: Sequence[EncodedItem]) -> None:
        """The history, base prompt aside, was replaced; `message` is the summary in it."""
        ...

    def rename(self, name: str) -> None:
        """
        Raises:
            SessionError: it could not be written down.
        """
        ...


@frozen(kw_only=True)
class ThreadState:
    """What a session begins with."""

    id: str
    base: Sequence[EncodedItem]
    """The base prompt: one item, or none."""
    items: Sequence[EncodedItem]
    """What the model has been told since. Every call has its output."""
    shown: Sequence[EncodedItem] = ()
    """The same for people: what a compaction took from `items` is in it."""
    usage: Usage = field(default_factory=Usage)
    """Of the whole thread."""
    last_usage: Usage = field(default_factory=Usage)
    """Of the last response."""
    model: str | None = None
    """That of the last turn; None for a thread that begins."""
    name: str | None = None


class ThreadLog:
    """Whatever is added here is in the file when the next request goes out.

    Args:
        thread: what the session begins with.
        context: makes what a new thread is told first, base prompt aside.
    """

    def __init__(
        self,
        thread: ThreadState,
        recorder: Recorder,
        context: Callable[[TurnSettings], Sequence[EncodedItem]],
    ) -> None:
        self.thread = thread
        self._recorder = recorder
        self._context = context
        self._introduction: Occasion | None = "start" if thread.model is None else "resume"
        self._history = History([*thread.base, *thread.items])
        self._told_model = thread.model
        self._is_told = thread.model is None

    @property
    def items(self) -> Sequence[EncodedItem]:
        """A live view of the history, base prompt first."""
        return self._history.items

    def begin_turn(self, settings: TurnSettings, introduction: Introduction) -> None:
        """Append context that changed since the model last saw it, and once what extensions add to it."""
        if self._told_model not in {None, settings.model}:
            self._add(model_switch())
        self._told_model = settings.model
        if not self._is_told:
            for item in context_update(self.items, self._context(settings)):
                self._add(item)
        # Files and dates change while nobody looks.
        self._is_told = False
        if self._introduction is not None:
            self.tell(introduction(self._introduction))
            self._introduction = None
        self._recorder.turn_context(turn_context(settings))

    def prompt(
        self,
        prompt: UserPrompt,
        notes: Sequence[Note],
        image_detail: str,
        warn: Callable[[str], None],
    ) -> None:
        """Add what the user said, and the notes that follow it. `warn` is told of images that cannot be read."""
        parts = [
            part
            for n, path in enumerate(prompt.images, 1)
            for part in image_parts(Path(path), n, image_detail, warn)
        ]
        self._add(message("user", [*parts, input_text(prompt.text)]))
        self._recorder.event_msg(
            {"type": "user_message", "message": prompt.text, "images": list(prompt.images)}
        )
        self.tell(notes)

    def tell(self, notes: Iterable[Note]) -> None:
        for note in notes:
            self._add(note.encoded())

    def item(self, item: ResponseItem | Note) -> None:
        entry = item.encoded() if isinstance(item, Note) else item
        self._recorder.response_item(self._history.add(entry))

    def abort(self, error: CodexError | None) -> None:
        """Tell the model that its turn was ended by this error; None: by the user."""
        why = "The user interrupted the previous turn on purpose"
        if error is not None:
            why = f"The previous turn was stopped: {error}"
        self._add(message("user", [input_text(_ABORTED.format(why))]))
        self._recorder.event_msg({"type": "turn_aborted", "reason": "interrupted"})

    def compact(
        self,
        summary: str,
        replacement: Callable[[Sequence[EncodedItem]], Sequence[EncodedItem]],
        settings: TurnSettings,
        introduction: Introduction,
    ) -> None:
        """Replace the history, base prompt aside; `replacement` makes it, of what a new thread is told."""
        notes = [note.encoded() for note in introduction("compact")]
        items = replacement([*self._context(settings), *notes])
        self._history.replace([*self.thread.base, *items])
        self._is_told = True
        self._introduction = None
        self._recorder.compacted(summary, items)
        self._recorder.turn_context(turn_context(settings))

    def rollback(self, turns: int) -> None:
        """Drop the last prompts and what came of them.

        Raises:
            ValueError: there are not so many.
        """
        self._history.replace(without_turns(self.items, turns))
        self._is_told = False
        self._recorder.event_msg({"type": "thread_rolled_back", "num_turns": turns})

    def rename(self, name: str) -> None:
        """
        Raises:
            SessionError: it could not be written down.
        """
        self._recorder.rename(name)

    def _add(self, item: EncodedItem) -> None:
        self._recorder.response_item(self._history.add(item))
