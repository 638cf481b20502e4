"""Where the user writes."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    ConditionalContainer,
    Dimension,
    HSplit,
    VSplit,
    Window,
)
from prompt_toolkit.layout.controls import FormattedTextControl

from codex_py.config.config import Config
from codex_py.config.skills import Skills, find_skills
from codex_py.frontends.tui.commands.registry import Commands
from codex_py.frontends.tui.compose.attachments import Attachments, is_long
from codex_py.frontends.tui.compose.completion import ROWS, Completion
from codex_py.frontends.tui.compose.display import Display
from codex_py.frontends.tui.compose.files import FileIndex
from codex_py.frontends.tui.compose.keys import composer_keys
from codex_py.frontends.tui.compose.pasted_images import image_paths
from codex_py.frontends.tui.compose.prompt_history import PromptHistory
from codex_py.frontends.tui.compose.sources import CommandSource, FileSource, SkillSource
from codex_py.frontends.tui.fragments import Fragments
from codex_py.frontends.tui.theme import Theme

_MAX_ROWS = 12
_PLACEHOLDER = "Ask codex-py to do anything"


@dataclass(frozen=True, slots=True)
class Submission:
    """What the user sends off."""

    text: str
    """`[Image #1]`, … in it stand for the images."""
    images: tuple[Path, ...] = ()
    """Absolute."""
    queued: bool = False
    """To be sent when the turn is over, not into it."""


class Composer:
    """A text of several lines with what is offered for it below, and the history of what was sent.

    Args:
        submit: is given what the user sends off.
        files: what `@` completes.
        changed: is told to draw.
        size: columns and rows of the terminal.
    """

    def __init__(
        self,
        theme: Theme,
        submit: Callable[[Submission], None],
        *,
        config: Config,
        environment: Mapping[str, str],
        files: FileIndex,
        commands: Commands,
        changed: Callable[[], None],
        size: Callable[[], tuple[int, int]],
    ) -> None:
        self._theme = theme
        self._submit = submit
        self._config = config
        self._environment = environment
        self._changed = changed
        self._size = size
        self._attachments = Attachments()
        self._recalled = -1
        """Place in the history of what is shown; -1 for what is being written."""
        self._draft = ""
        self._shown = ""
        """The earlier prompt that was recalled last, as it was."""
        self._images: dict[str, tuple[Path, ...]] = {}
        """Of what was written in this session, by its text."""
        self.folds_bursts = not config.values.get("disable_paste_burst", False)
        """Whether Enter with characters right behind it is part of a paste."""
        self.skills = Skills()
        self.history = _history(config)
        self.buffer = Buffer(
            multiline=True,
            on_text_changed=self._updated,
            on_cursor_position_changed=self._updated,
        )
        sources = (CommandSource(commands), FileSource(files), SkillSource(lambda: self.skills))
        self.completion = Completion(self.buffer, sources, changed)
        self.container: AnyContainer = self._layout()

    async def begin(self, config: Config) -> None:
        """Read what is needed of the user's files, in threads. Again for another session."""
        self.skills = await asyncio.to_thread(find_skills, config, self._environment)
        await self.history.load()

    @property
    def text(self) -> str:
        """As it is sent, but for blanks around it."""
        return self.expanded[0]

    @property
    def expanded(self) -> tuple[str, tuple[Path, ...]]:
        """The text, and the images that it has labels of."""
        return self._attachments.expand(self.buffer.text)

    @property
    def holds_escape(self) -> bool:
        """Whether Esc has a meaning here: it leaves the writing of vi."""
        app = get_app()
        if app.editing_mode is not EditingMode.VI:
            return False
        state = app.vi_state
        return (
            state.input_mode is not InputMode.NAVIGATION
            or state.operator_func is not None
            or self.buffer.selection_state is not None
        )

    def set_text(self, text: str, images: Sequence[Path] = ()) -> None:
        """Replace what is written, which the history keeps; the cursor goes to its end."""
        self._remember(self.buffer.text)
        self._show(self._attachments.fold(text, images))

    def restore(self, submissions: Sequence[Submission]) -> None:
        """Put back what was not sent after all, in front of what is written."""
        texts = [self._attachments.fold(each.text, each.images) for each in submissions]
        if texts:
            self._show("\n\n".join([*texts, self.buffer.text]).rstrip("\n"))

    def paste(self, text: str) -> None:
        """Insert a text; a long one is folded, and paths of images become images."""
        if images := image_paths(text, self._config.cwd):
            self.attach(images)
            return
        text = self._attachments.clean(text)
        self.buffer.insert_text(self._attachments.paste(text) if is_long(text) else text)

    def attach(self, images: Sequence[Path]) -> None:
        """Insert images at the cursor."""
        self.buffer.insert_text("".join(f"{self._attachments.image(path)} " for path in images))

    def toggle_vi(self) -> bool:
        """Change between the keys of emacs and of vi; whether it is vi now."""
        app = get_app()
        is_vi = app.editing_mode is EditingMode.VI
        app.editing_mode = EditingMode.EMACS if is_vi else EditingMode.VI
        return not is_vi

    def mode(self) -> Fragments:
        """The mode of vi, to be shown; empty with the keys of emacs."""
        app = get_app()
        if app.editing_mode is not EditingMode.VI:
            return []
        if self.buffer.selection_state is not None:
            name = "VISUAL"
        else:
            name = "NORMAL" if app.vi_state.input_mode is InputMode.NAVIGATION else "INSERT"
            name = "REPLACE" if app.vi_state.input_mode is InputMode.REPLACE else name
        return [("class:accent", f"{name} ")]

    def enter(self) -> None:
        """Take what is offered; else send, or go on in a new line after a backslash."""
        if self.completion.wait_with(self.enter):
            return
        if self.completion.is_open and not self.completion.take():
            return
        if self.buffer.document.char_before_cursor == "\\":
            self.buffer.delete_before_cursor()
            self.buffer.insert_text("\n")
        else:
            self.send()

    def complete(self) -> None:
        """Take what is offered; else send it for when the turn is over."""
        if self.completion.wait_with(self.complete):
            return
        if self.completion.is_open:
            self.completion.take()
        else:
            self.send(queued=True)

    def send(self, *, queued: bool = False) -> None:
        """Hand over what is written. Of nothing, an empty submission tells that Enter was pressed."""
        text, images = self.expanded
        if text.strip() or images or not queued:
            self._images[text.strip()] = images
            self.clear()
            self._submit(Submission(text.strip(), images, queued=queued))

    def put_by(self) -> None:
        """Begin anew; the history keeps what was written."""
        self._remember(self.buffer.text)
        self.clear()

    def clear(self) -> None:
        """Begin anew. What was written can not be brought back with an undo."""
        self._recalled = -1
        self.buffer.reset()
        self.completion.update()

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
        self._shown = self._attachments.fold(text, self._images.get(text, ()))
        self._show(self._shown if text else self._draft)
        # Else the arrows would move in what is offered.
        self.completion.close()

    def _remember(self, draft: str) -> None:
        """Have it come back with Up, in this session."""
        text, images = self._attachments.expand(draft)
        if text.strip():
            self._images[text] = images
            self.history.remember(text)

    def _updated(self, _buffer: Buffer) -> None:
        self.completion.update()

    def _show(self, text: str) -> None:
        self.buffer.document = Document(text, len(text))
        self._changed()

    def _layout(self) -> AnyContainer:
        control = BufferControl(
            self.buffer,
            key_bindings=composer_keys(self),
            input_processors=[Display(self._attachments, lambda: _PLACEHOLDER)],
        )
        text = Window(control, height=self._height, dont_extend_height=True, wrap_lines=True)
        mark = Window(FormattedTextControl(self._mark), width=2)
        offered = Window(
            FormattedTextControl(lambda: self.completion.rows(self._size()[0])),
            height=Dimension(max=ROWS),
            dont_extend_height=True,
        )
        is_open = Condition(lambda: self.completion.is_open)
        return HSplit([VSplit([mark, text]), ConditionalContainer(offered, is_open)])

    def _height(self) -> Dimension:
        return Dimension(min=1, max=max(1, min(_MAX_ROWS, self._size()[1] // 2)))

    def _mark(self) -> Fragments:
        if self.buffer.text.startswith("!"):
            return [("class:warning", "! ")]
        return [("bold", f"{self._theme.glyph('prompt')} ")]


def _history(config: Config) -> PromptHistory:
    is_kept = config.history_persistence != "none"
    max_bytes = config.values.get("history", {}).get("max_bytes")
    return PromptHistory(config.home / "history.jsonl" if is_kept else None, max_bytes)
