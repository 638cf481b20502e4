"""What a thread has come to: the history that the model sees and the session file, kept in step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from codex_py.core.context_update import context_update, model_switch
from codex_py.core.history import History
from codex_py.core.images import image_parts
from codex_py.core.past import without_turns
from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import EncodedItem, input_text, message
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.settings import TurnSettings, turn_context
from codex_py.protocol.stream import Usage

if TYPE_CHECKING:
    # pydantic is not loaded before the first request is out.
    from codex_py.protocol.items import ResponseItem

_ABORTED_NOTE = (
    "<turn_aborted>\nThe user interrupted the previous turn on purpose. Commands that were running"
    " have been stopped and may have done part of their work: check before you repeat one.\n"
    "</turn_aborted>"
)


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
        context: what a new thread is told first, base prompt aside.
        warn: is told of images that cannot be read.
    """

    def __init__(
        self,
        thread: ThreadState,
        recorder: Recorder,
        context: Callable[[TurnSettings], Sequence[EncodedItem]],
        warn: Callable[[str], None],
    ) -> None:
        self._recorder = recorder
        self._context = context
        self._warn = warn
        self._base = thread.base
        self._history = History([*thread.base, *thread.items])
        self._told_model = thread.model
        self._is_told = thread.model is None

    @property
    def items(self) -> Sequence[EncodedItem]:
        """A live view of the history, base prompt first."""
        return self._history.items

    def begin_turn(self, settings: TurnSettings) -> None:
        """Append context that changed since the model last saw it."""
        if self._told_model not in {None, settings.model}:
            self._add(model_switch())
        self._told_model = settings.model
        if not self._is_told:
            for item in context_update(self.items, self._context(settings)):
                self._add(item)
        # Files and dates change while nobody looks.
        self._is_told = False
        self._recorder.turn_context(turn_context(settings))

    def prompt(self, prompt: UserPrompt, image_detail: str) -> None:
        """Add what the user said."""
        parts = [
            part
            for n, path in enumerate(prompt.images, 1)
            for part in image_parts(Path(path), n, image_detail, self._warn)
        ]
        self._add(message("user", [*parts, input_text(prompt.text)]))
        self._recorder.event_msg(
            {"type": "user_message", "message": prompt.text, "images": list(prompt.images)}
        )

    def tell(self, text: str) -> None:
        """Add a message of the user's that a program wrote; see `is_context`."""
        self._add(message("user", [input_text(text)]))

    def item(self, item: "ResponseItem | Note") -> None:
        entry = item.encoded() if isinstance(item, Note) else item
        self._recorder.response_item(self._history.add(entry))

    def abort(self) -> None:
        """Tell the model that the user interrupted it."""
        self._add(message("user", [input_text(_ABORTED_NOTE)]))
        self._recorder.event_msg({"type": "turn_aborted", "reason": "interrupted"})

    def compact(
        self,
        summary: str,
        replacement: Callable[[Sequence[EncodedItem]], Sequence[EncodedItem]],
        settings: TurnSettings,
    ) -> None:
        """Replace the history, base prompt aside; `replacement` makes it, of what a new thread is told."""
        items = replacement(self._context(settings))
        self._history.replace([*self._base, *items])
        self._is_told = True
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
