"""The keys of the program, beside those that write: interrupting, going back, leaving, looking."""

import asyncio
import time
from typing import TYPE_CHECKING, Final

from prompt_toolkit.filters import Condition, vi_navigation_mode
from prompt_toolkit.key_binding import (
    KeyBindings,
    KeyBindingsBase,
    KeyPressEvent,
    merge_key_bindings,
)

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

TO_LEAVE: Final = "Press Ctrl-C again to leave"
_TWICE_WITHIN_S: Final = 2.0

SHORTCUTS: Final = (
    ("Enter", "send; into the running turn, if there is one"),
    ("Tab", "complete; while the agent works, send when the turn is over"),
    ("Ctrl-J, Alt-Enter", "begin a new line"),
    ("Esc", "interrupt"),
    ("Esc Esc", "go back to an earlier prompt"),
    ("Ctrl-C", "interrupt, empty the composer; twice: leave"),
    ("Ctrl-D", "leave, if nothing is written"),
    ("Ctrl-Z", "stop; `fg` goes on"),
    ("Ctrl-R", "search earlier prompts"),
    ("Ctrl-G", "write in $EDITOR"),
    ("Ctrl-V", "paste an image"),
    ("Ctrl-T", "look at all of the conversation"),
    ("Ctrl-L", "begin at the top of the screen"),
    ("Alt-Up, Shift-Left", "take back what is queued"),
    ("/", "a command"),
    ("@", "a file"),
    ("$", "a skill"),
    ("!", "run a command of your own"),
    ("?", "show these keys"),
)


def program_keys(terminal: "Terminal") -> KeyBindingsBase:
    keys = KeyBindings()
    composing = Condition(lambda: terminal.is_composing)
    is_empty = Condition(lambda: not terminal.composer.buffer.text)
    last_escape = 0.0

    @keys.add("escape", filter=composing & Condition(lambda: not terminal.composer.holds_escape))
    def _(_event: KeyPressEvent) -> None:
        nonlocal last_escape
        if terminal.interrupt() or terminal.composer.text:
            return
        now = time.monotonic()
        if now - last_escape < _TWICE_WITHIN_S:
            last_escape = 0.0
            _run(terminal, "back")
        else:
            last_escape = now
            terminal.hint("Press Esc again to go back to an earlier prompt")

    @keys.add("c-c", filter=composing)
    def _(_event: KeyPressEvent) -> None:
        if terminal.interrupt():
            return
        if terminal.hinted == TO_LEAVE:
            terminal.leave()
        elif terminal.composer.text:
            terminal.composer.clear()
        else:
            _offer_to_leave(terminal)

    @keys.add("c-d", filter=composing & is_empty)
    def _(_event: KeyPressEvent) -> None:
        terminal.leave()

    @keys.add("c-z")
    def _(_event: KeyPressEvent) -> None:
        terminal.start(terminal.screen.suspend())

    return merge_key_bindings([keys, _looking_keys(terminal)])


def _looking_keys(terminal: "Terminal") -> KeyBindings:
    keys = KeyBindings()
    composing = Condition(lambda: terminal.is_composing)
    is_empty = Condition(lambda: not terminal.composer.buffer.text)

    @keys.add("c-l")
    def _(_event: KeyPressEvent) -> None:
        terminal.screen.scroll_away()

    @keys.add("c-t", filter=composing)
    def _(_event: KeyPressEvent) -> None:
        _run(terminal, "transcript")

    @keys.add("?", filter=composing & is_empty & ~vi_navigation_mode)
    def _(_event: KeyPressEvent) -> None:
        _run(terminal, "keymap")

    return keys


def _run(terminal: "Terminal", name: str) -> None:
    found = terminal.commands.find(f"/{name}")
    assert found is not None
    terminal.run_command(*found)


def _offer_to_leave(terminal: "Terminal") -> None:
    def forget() -> None:
        if terminal.hinted == TO_LEAVE:
            terminal.hint("")

    terminal.hint(TO_LEAVE)
    asyncio.get_running_loop().call_later(_TWICE_WITHIN_S, forget)
