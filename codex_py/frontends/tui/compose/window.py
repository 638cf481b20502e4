"""The composer on the screen, and its keys. Other keys are as in emacs or in vi, which prompt-toolkit knows."""

from prompt_toolkit.filters import Condition, emacs_mode, vi_insert_mode, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
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

from codex_py.frontends.tui.compose.attachments import Display
from codex_py.frontends.tui.compose.completion import ROWS
from codex_py.frontends.tui.composer import Composer
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.key_codes import ESC, PASTE, bind
from codex_py.frontends.tui.screen import Screen

_MAX_ROWS = 12
_PLACEHOLDER = "Ask codex-py to do anything"


def composer_window(composer: Composer, screen: Screen) -> AnyContainer:
    def height() -> Dimension:
        return Dimension(min=1, max=max(1, min(_MAX_ROWS, screen.height // 2)))

    def mark() -> Fragments:
        if composer.buffer.text.startswith("!"):
            return [("class:warning", "! ")]
        return [("bold", f"{screen.theme.glyph('prompt')} ")]

    control = BufferControl(
        composer.buffer,
        key_bindings=_keys(composer),
        input_processors=[Display(composer.attachments, _PLACEHOLDER)],
    )
    text = Window(control, height=height, dont_extend_height=True, wrap_lines=True)
    offered = Window(
        FormattedTextControl(lambda: composer.completion.rows(screen.width)),
        height=Dimension(max=ROWS),
        dont_extend_height=True,
    )
    is_open = Condition(lambda: composer.completion.is_open)
    line = VSplit([Window(FormattedTextControl(mark), width=2), text])
    return HSplit([line, ConditionalContainer(offered, is_open)])


def _keys(composer: Composer) -> KeyBindings:
    buffer, completion = composer.buffer, composer.completion
    offering = Condition(lambda: completion.is_open)
    at_top = Condition(lambda: buffer.document.on_first_line) & ~offering
    at_bottom = Condition(lambda: buffer.document.on_last_line) & ~offering
    writing = emacs_mode | vi_insert_mode

    def enter(event: KeyPressEvent) -> None:
        # Characters behind it that came at the same time were not typed: a terminal that does not mark
        # what is pasted sends it like this, and its first line alone should not go off.
        behind = event.key_processor.input_queue
        if composer.folds_bursts and any(not isinstance(press.key, Keys) for press in behind):
            buffer.insert_text("\n")
        else:
            composer.enter()

    keys = KeyBindings()
    bind(keys, "enter", enter)
    bind(keys, "tab", lambda _: composer.complete())
    bind(keys, "c-j", lambda _: buffer.insert_text("\n"))
    bind(keys, PASTE, lambda event: composer.paste(event.data))
    bind(keys, ESC, lambda _: completion.close(), offering)
    bind(keys, "up c-p", lambda _: completion.move(-1), offering)
    bind(keys, "down c-n", lambda _: completion.move(1), offering)
    bind(keys, "up", lambda _: composer.recall(1), at_top)
    bind(keys, "c-p", lambda _: composer.recall(1), at_top & writing)
    bind(keys, "k", lambda _: composer.recall(1), at_top & vi_navigation_mode)
    bind(keys, "down", lambda _: composer.recall(-1), at_bottom)
    bind(keys, "c-n", lambda _: composer.recall(-1), at_bottom & writing)
    bind(keys, "j", lambda _: composer.recall(-1), at_bottom & vi_navigation_mode)
    return keys
