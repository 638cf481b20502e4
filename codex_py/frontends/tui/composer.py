"""The composer: the user's text, its display, and the prompts that were sent."""

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
"""Steps of undoing for a text that is written without a pause."""


@dataclass(frozen=True, slots=True)
class Submission:
    text: str
    """The text, in which `[Image #1]`, … stand for the images."""
    images: Sequence[Path] = ()
    """Absolute paths."""
    queued: bool = False
    """True: send it when the turn is over, not into it."""
    model: str | None = None
    """The model for this prompt alone, also as `provider/model`. Such a prompt is never sent into a
    running turn."""
    shown: str = ""
    """The command of the user for which the program has written `text`: it is shown instead. Empty
    if the user wrote the text."""


@dataclass(slots=True)
class Outbox:
    waiting: list[Submission] = field(default_factory=list[Submission])
    """Submissions from before there was a session."""
    steered: list[Submission] = field(default_factory=list[Submission])
    """Submissions that were sent into the running turn."""
    queue: list[Submission] = field(default_factory=list[Submission])
    """Submissions to send when the running turn is over."""


class _Text(Buffer):
    """A buffer with fewer undo steps for a long text, since each step is a copy of it."""

    def save_to_undo_stack(self, clear_redo_stack: bool = True) -> None:
        super().save_to_undo_stack(clear_redo_stack)
        steps = self._undo_stack
        if len(steps) < 3:
            return
        # The last two steps become one if they change little together.
        text_before, _ = steps[-3]
        change = abs(len(self.text) - len(text_before))
        if change < len(self.text) // _STEPS:
            del steps[-2]


class Composer:
    """The field for the user's text.

    `submit` gets each submission; `changed` is called when there is something new to draw.
    """

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
        """The index in the history of the shown text; -1 for the user's draft."""
        self._draft = ""
        self._shown = ""
        """The prompt that was recalled last, before any edit."""
        self._images: dict[str, Sequence[Path]] = {}
        """The images of texts that were written in this session, by text."""
        self.attachments = Attachments()
        is_kept = config.settings.history.persistence != "none"
        self.history = PromptHistory(
            config.home / "history.jsonl" if is_kept else None,
            config.settings.history.max_bytes,
        )
        self.buffer = _Text(multiline=True)
        self.completion = Completion(self.buffer, sources, changed)
        self.buffer.on_text_changed += self.completion.update
        self.buffer.on_cursor_position_changed += self.completion.update

    @property
    def text(self) -> str:
        """The text as it is sent, except for blanks around it."""
        return self.expanded[0]

    @property
    def expanded(self) -> tuple[str, Sequence[Path]]:
        """The text, and the images whose labels it shows."""
        return self.attachments.expand(self.buffer.text)

    @property
    def vi_mode(self) -> str:
        """The mode by vi's name; empty with the keys of emacs."""
        app = get_app()
        if app.editing_mode is not EditingMode.VI:
            return ""
        if self.buffer.selection_state is not None:
            return "VISUAL"
        names = {InputMode.NAVIGATION: "NORMAL", InputMode.REPLACE: "REPLACE"}
        return names.get(app.vi_state.input_mode, "INSERT")

    @property
    def vi_uses_escape(self) -> bool:
        """True if vi handles Esc: it leaves a mode, or cancels an operator such as `d`."""
        mode = self.vi_mode
        if mode == "NORMAL":
            return get_app().vi_state.operator_func is not None
        return mode != ""

    @property
    def contexts(self) -> Sequence[str]:
        """The contexts of `tui.keymap` for the next key; empty if vi waits for any character."""
        if self.vi_mode not in {"NORMAL", "VISUAL"}:
            return COMPOSING
        waiting = "".join(press.key for press in get_app().key_processor.key_buffer)
        # `fx` goes to the next `x`, and `"x` names a register.
        if waiting.endswith(("f", "F", "t", "T", '"')):
            return ()
        has_operator = get_app().vi_state.operator_func is not None
        if has_operator and waiting in {"i", "a"}:
            return ("vim_text_object",)
        if has_operator or waiting in {"d", "c", "y"}:
            return ("vim_operator", *COMPOSING)
        return ("vim_normal", *COMPOSING)

    def toggle_vi(self) -> bool:
        """Switch between the keys of emacs and of vi; True if they are vi's now."""
        app = get_app()
        is_vi = app.editing_mode is EditingMode.VI
        if is_vi:
            app.editing_mode = EditingMode.EMACS
        else:
            app.editing_mode = EditingMode.VI
        return not is_vi

    def set_text(self, text: str, images: Sequence[Path] = ()) -> None:
        """Replace the text, which the history keeps; the cursor goes to the end."""
        self._remember(self.buffer.text)
        self._show(self.attachments.fold(text, images))

    def restore(self, submissions: list[Submission]) -> None:
        """Put unsent submissions back in front of the text. The list is emptied."""
        texts = [
            each.shown or self.attachments.fold(each.text, each.images)
            for each in submissions
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
        if is_long(text):
            text = self.attachments.mark(text)
        self.buffer.insert_text(text)

    def insert(self, text: str) -> None:
        """Insert a piece of a text; any piece may be the last."""
        self.buffer.insert_text(self.attachments.clean(text))

    def attach(self, images: Sequence[Path]) -> None:
        """Insert images at the cursor."""
        marks = [f"{self.attachments.mark(path)} " for path in images]
        self.buffer.insert_text("".join(marks))

    def enter(self) -> None:
        """Accept the suggestion; else send, or begin a new line after a backslash."""
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
        """Accept the suggestion; else queue the text for after the turn.

        Nothing is sent while the cursor is at a name that is not found.
        """
        if self.completion.after_search(self.complete):
            return
        if self.completion.is_open:
            self.completion.accept()
        elif self.text.strip() and not self.completion.is_at_name:
            self._send(queued=True)

    def stash(self) -> None:
        """Empty the composer; the history keeps the text."""
        self._remember(self.buffer.text)
        self._clear()

    def recall(self, steps: int) -> None:
        """Go back `steps` in the history, or forward if negative, at most to the draft."""
        if self._recalled != -1 and self.buffer.text != self._shown:
            # An edited prompt is a draft.
            self._remember(self._draft)
            self._recalled = -1
        entries = self.history.entries
        place = min(self._recalled + steps, len(entries) - 1)
        if place == self._recalled or place < -1:
            return
        if self._recalled == -1:
            self._draft = self.buffer.text
        self._recalled = place
        if place == -1:
            self._shown = ""
            self._show(self._draft)
        else:
            text = entries[place]
            self._shown = self.attachments.fold(text, self._images.get(text, ()))
            self._show(self._shown)
        # Otherwise the arrows would move in the suggestions.
        self.completion.close()

    def _send(self, *, queued: bool = False) -> None:
        """Submit the text. An empty submission reports that Enter was pressed."""
        text, images = self.expanded
        text = text.strip()
        self._images[text] = images
        self._clear()
        self._submit(Submission(text, images, queued=queued))

    def _clear(self) -> None:
        """Empty the composer. An undo cannot bring the text back."""
        self._recalled = -1
        self.buffer.reset()
        self.completion.update()

    def _remember(self, draft: str) -> None:
        text, images = self.attachments.expand(draft)
        if text.strip():
            self._images[text] = images
            self.history.remember(text)

    def _show(self, text: str) -> None:
        self.buffer.document = Document(text, len(text))
        self._changed()


def composer_window(
    composer: Composer, screen: Screen, keys: KeyBindings
) -> layout.Window:
    def height() -> layout.Dimension:
        most = min(_MAX_ROWS, screen.size().rows // 2)
        return layout.Dimension(min=1, max=max(1, most))

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
    # A prefix of each line: a split with a column for it would cost 1.5 ms a frame.
    window = layout.Window(
        control,
        height=height,
        dont_extend_height=True,
        wrap_lines=True,
        get_line_prefix=mark,
    )
    return window
