"""Where the user writes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import AnyContainer, BufferControl, Dimension, VSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl

from codex_py.frontends.tui.theme import Theme

_MAX_ROWS = 12


@dataclass(frozen=True, slots=True)
class Submission:
    """What the user sends off."""

    text: str
    images: tuple[Path, ...] = ()
    queued: bool = False
    """To be sent when the turn is over, not into it."""


class Composer:
    """A buffer of several lines, and the keys that work in it."""

    def __init__(self, theme: Theme, submit: Callable[[Submission], None]) -> None:
        self._submit = submit
        self.buffer = Buffer(multiline=True)
        self.keys = _keys(self)
        mark = Window(FormattedTextControl([("bold", f"{theme.glyph('prompt')} ")]), width=2)
        text = Window(
            BufferControl(self.buffer, key_bindings=self.keys),
            height=Dimension(min=1, max=_MAX_ROWS),
            dont_extend_height=True,
            wrap_lines=True,
        )
        self.container: AnyContainer = VSplit([mark, text])

    @property
    def text(self) -> str:
        return self.buffer.text

    def set_text(self, text: str) -> None:
        """Replace what is written; the cursor goes to its end."""
        self.buffer.text = text
        self.buffer.cursor_position = len(text)

    def toggle_vi(self) -> bool:
        """Change between the keys of emacs and of vi; whether it is vi now."""
        app = get_app()
        is_vi = app.editing_mode is EditingMode.VI
        app.editing_mode = EditingMode.EMACS if is_vi else EditingMode.VI
        return not is_vi

    def send(self, *, queued: bool = False) -> None:
        text = self.buffer.text.strip()
        if text:
            self.buffer.reset()
            self._submit(Submission(text, queued=queued))


def _keys(composer: Composer) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(_event: KeyPressEvent) -> None:
        composer.send()

    @keys.add("tab")
    def _(_event: KeyPressEvent) -> None:
        composer.send(queued=True)

    @keys.add("c-j")
    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
