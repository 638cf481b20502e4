"""The composer: the text that the user writes, how it is shown, and what was sent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prompt_toolkit import layout
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.vi_state import InputMode

from codex_py.config.config import Config
from codex_py.frontends.tui.compose.attachments import Attachments, image_paths, is_long
from codex_py.frontends.tui.compose.completion import Completion, Source
from codex_py.frontends.tui.compose.display import Display
from codex_py.frontends.tui.compose.prompt_history import PromptHistory
from codex_py.frontends.tui.first_frame import INDENT, PLACEHOLDER
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.keymap import COMPOSING
from codex_py.frontends.tui.screen import Screen
from codex_py.frontends.tui.theme import PROMPT

_MAX_ROWS = 12
_STEPS = 50
"""Of undoing, for a text that is written without a pause."""


@dataclass(frozen=True, slots=True)
class Submission:
    text: str
    """`[Image #1]`, … in it stand for the images."""
    images: Sequence[Path] = ()
    """Absolute."""
    queued: bool = False
    """To be sent when the turn is over, not into it."""
    model: str | None = None
    """The model of its turn alone, which is one of its own; also `provider/model`."""
    shown: str = ""
    """The command that a long text of the program's own is shown as."""


@dataclass(slots=True)
class Outbox:
    waiting: list[Submission] = field(default_factory=list[Submission])
    """Sent off before there was a session."""
    steered: list[Submission] = field(default_factory=list[Submission])
    """Sent into the running turn."""
    queue: list[Submission] = field(default_factory=list[Submission])
    """To be sent when the running turn is over."""


class _Text(Buffer):
    """Has fewer steps to undo of a long text, each of which is a copy of it."""

    def save_to_undo_stack(self, clear_redo_stack: bool = True) -> None:
        super().save_to_undo_stack(clear_redo_stack)
        steps = self._undo_stack
        if (
            len(steps) > 2
            and abs(len(self.text) - len(steps[-3][0])) < len(self.text) // _STEPS
        ):
            del steps[-2]


class Composer:
    """`submit` is given what the user sends off; `changed` is called when there is something new to draw."""

    def __init__(
        self,
        config: Config,
        submit: Callable[[Submission], None],
        *,
        sources: Sequence[Source],
        changed: Callable[[], None],
    ) -> None:
        self._submit = submit
        self._cwd = config.cwd
        self._changed = changed
        self._recalled = -1
        """Place in the history of what is shown; -1 for what is being written."""
        self._draft = ""
        self._shown = ""
        """The earlier prompt that was recalled last, as it was."""
        self._images: dict[str, Sequence[Path]] = {}
        """Of what was written in this session, by its text."""
        self.attachments = Attachments()
        is_kept = config.history_persistence != "none"
        self.history = PromptHistory(
            config.home / "history.jsonl" if is_kept else None,
            config.settings.history.max_bytes,
        )
        self.buffer = _Text(
            multiline=True,
            on_text_changed=self._updated,
            on_cursor_position_changed=self._updated,
        )
        self.completion = Completion(self.buffer, sources, changed)

    @property
    def text(self) -> str:
        """As it is sent, but for blanks around it."""
        return self.expanded[0]

    @property
    def expanded(self) -> tuple[str, Sequence[Path]]:
        """The text, and the images that it has labels of."""
        return self.attachments.expand(self.buffer.text)

    @property
    def vi_mode(self) -> str:
        """As vi names it; empty with the keys of emacs."""
        app = get_app()
        if app.editing_mode is not EditingMode.VI:
            return ""
        if self.buffer.selection_state is not None:
            return "VISUAL"
        names = {InputMode.NAVIGATION: "NORMAL", InputMode.REPLACE: "REPLACE"}
        return names.get(app.vi_state.input_mode, "INSERT")

    @property
    def vi_uses_escape(self) -> bool:
        """True if Esc is vi's: it leaves the insert mode."""
        mode = self.vi_mode
        return bool(mode) and (
            mode != "NORMAL" or get_app().vi_state.operator_func is not None
        )

    @property
    def contexts(self) -> Sequence[str]:
        """Those of `tui.keymap` in which the next key is read; none if it is text, whatever it is."""
        if self.vi_mode not in {"NORMAL", "VISUAL"}:
            return COMPOSING
        waiting = "".join(press.key for press in get_app().key_processor.key_buffer)
        if waiting.endswith(tuple('fFtT"')):
            return ()
        if get_app().vi_state.operator_func is not None and waiting in {"i", "a"}:
            return ("vim_text_object",)
        is_operator = get_app().vi_state.operator_func is not None or waiting in {
            "d",
            "c",
            "y",
        }
        return ("vim_operator" if is_operator else "vim_normal", *COMPOSING)

    def toggle_vi(self) -> bool:
        """Change between the keys of emacs and of vi; True if it is vi now."""
        app = get_app()
        is_vi = app.editing_mode is EditingMode.VI
        if is_vi:
            app.editing_mode = EditingMode.EMACS
        else:
            app.editing_mode = EditingMode.VI
        return not is_vi

    def set_text(self, text: str, images: Sequence[Path] = ()) -> None:
        """Replace what is written, which the history keeps; the cursor goes to its end."""
        self._remember(self.buffer.text)
        self._show(self.attachments.fold(text, images))

    def restore(self, submissions: list[Submission]) -> None:
        """Put back what was not sent after all, in front of what is written. The list is emptied."""
        texts = [
            e.shown or self.attachments.fold(e.text, e.images) for e in submissions
        ]
        submissions.clear()
        if texts:
            self._show("\n\n".join([*texts, self.buffer.text]).rstrip("\n"))

    def paste(self, text: str) -> None:
        """Insert a text; a long one is folded, and paths of images become images."""
        images = image_paths(text, self._cwd)
        if images:
            self.attach(images)
            return
        text = self.attachments.clean(text)
        self.buffer.insert_text(self.attachments.mark(text) if is_long(text) else text)

    def insert(self, text: str) -> None:
        """Insert a text that comes in pieces, any of which may be the last."""
        self.buffer.insert_text(self.attachments.clean(text))

    def attach(self, images: Sequence[Path]) -> None:
        """Insert images at the cursor."""
        self.buffer.insert_text(
            "".join(f"{self.attachments.mark(path)} " for path in images)
        )

    def enter(self) -> None:
        """Take what is offered; else send, or begin a new line after a backslash."""
        if self.completion.after_search(self.enter):
            return
        if self.completion.is_open and not self.completion.accept():
            return
        if self.buffer.document.char_before_cursor == "\\":
            self.buffer.delete_before_cursor()
            self.buffer.insert_text("\n")
        else:
            self._send()

    def complete(self) -> None:
        """Take what is offered; else send it for when the turn is over, but no name that is not found."""
        if self.completion.after_search(self.complete):
            return
        if self.completion.is_open:
            self.completion.accept()
        elif self.text.strip() and not self.completion.is_at_name:
            self._send(queued=True)

    def stash(self) -> None:
        """Begin anew; the history keeps what was written."""
        self._remember(self.buffer.text)
        self._clear()

    def recall(self, steps: int) -> None:
        """Go back in the history, or forth if negative, down to what is being written."""
        if self._recalled != -1 and self.buffer.text != self._shown:
            # A draft by now.
            self._remember(self._draft)
            self._recalled = -1
        entries = self.history.entries
        place = min(self._recalled + steps, len(entries) - 1)
        if place == self._recalled or place < -1:
            return
        if self._recalled == -1:
            self._draft = self.buffer.text
        self._recalled = place
        text = "" if place == -1 else entries[place]
        self._shown = self.attachments.fold(text, self._images.get(text, ()))
        self._show(self._shown if text else self._draft)
        # Else the arrows would move in what is offered.
        self.completion.close()

    def _send(self, *, queued: bool = False) -> None:
        """Hand over what is written. An empty submission tells that Enter was pressed."""
        text, images = self.expanded
        text = text.strip()
        self._images[text] = images
        self._clear()
        self._submit(Submission(text, images, queued=queued))

    def _clear(self) -> None:
        """Begin anew. An undo cannot bring back what was written."""
        self._recalled = -1
        self.buffer.reset()
        self.completion.update()

    def _remember(self, draft: str) -> None:
        text, images = self.attachments.expand(draft)
        if text.strip():
            self._images[text] = images
            self.history.remember(text)

    def _updated(self, _buffer: Buffer) -> None:
        self.completion.update()

    def _show(self, text: str) -> None:
        self.buffer.document = Document(text, len(text))
        self._changed()


def composer_window(
    composer: Composer, screen: Screen, keys: KeyBindings
) -> layout.Window:
    def height() -> layout.Dimension:
        return layout.Dimension(min=1, max=max(1, min(_MAX_ROWS, screen.height // 2)))

    def mark(line: int, wrap: int) -> Fragments:
        if (line, wrap) != (window.vertical_scroll, window.vertical_scroll_2):
            return [("", INDENT)]
        if composer.buffer.text.startswith("!"):
            style = "class:warning"
        else:
            style = "bold"
        return [(style, f"{PROMPT} ")]

    display = Display(composer.attachments, PLACEHOLDER, unicode=screen.theme.unicode)
    control = layout.BufferControl(
        composer.buffer, key_bindings=keys, input_processors=[display]
    )
    # In front of each line: a split beside it would cost 1.5 ms a frame.
    window = layout.Window(
        control,
        height=height,
        dont_extend_height=True,
        wrap_lines=True,
        get_line_prefix=mark,
    )
    return window
