"""The keys of the composer. What is not here is as in emacs or in vi, which prompt-toolkit knows."""

from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition, emacs_mode, vi_insert_mode, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from codex_py.frontends.tui.key_codes import ESCAPE

if TYPE_CHECKING:
    from codex_py.frontends.tui.composer import Composer


def composer_keys(composer: "Composer") -> KeyBindings:
    keys = KeyBindings()
    buffer, completion = composer.buffer, composer.completion
    offering = Condition(lambda: completion.is_open)
    at_top = Condition(lambda: buffer.document.on_first_line) & ~offering
    at_bottom = Condition(lambda: buffer.document.on_last_line) & ~offering

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        # Characters behind it that came at the same time were not typed: a terminal that does not mark
        # what is pasted sends it like this, and its first line alone should not go off.
        behind = event.key_processor.input_queue
        if composer.folds_bursts and any(not isinstance(press.key, Keys) for press in behind):
            buffer.insert_text("\n")
        else:
            composer.enter()

    @keys.add("tab")
    def _(_event: KeyPressEvent) -> None:
        composer.complete()

    @keys.add("c-j")
    def _(_event: KeyPressEvent) -> None:
        buffer.insert_text("\n")

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        composer.paste(event.data)

    @keys.add(ESCAPE, filter=offering)
    def _(_event: KeyPressEvent) -> None:
        completion.close()

    @keys.add("up", filter=offering)
    @keys.add("c-p", filter=offering)
    def _(_event: KeyPressEvent) -> None:
        completion.move(-1)

    @keys.add("down", filter=offering)
    @keys.add("c-n", filter=offering)
    def _(_event: KeyPressEvent) -> None:
        completion.move(1)

    @keys.add("up", filter=at_top)
    @keys.add("c-p", filter=at_top & (emacs_mode | vi_insert_mode))
    @keys.add("k", filter=at_top & vi_navigation_mode)
    def _(_event: KeyPressEvent) -> None:
        composer.recall(1)

    @keys.add("down", filter=at_bottom)
    @keys.add("c-n", filter=at_bottom & (emacs_mode | vi_insert_mode))
    @keys.add("j", filter=at_bottom & vi_navigation_mode)
    def _(_event: KeyPressEvent) -> None:
        composer.recall(-1)

    return keys
