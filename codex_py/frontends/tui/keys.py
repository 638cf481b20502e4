"""The keys of the program, beside those that write: interrupting, going back, leaving, looking."""

from typing import TYPE_CHECKING, Final

from prompt_toolkit.filters import Condition, emacs_mode, vi_navigation_mode
from prompt_toolkit.key_binding import (
    KeyBindings,
    KeyBindingsBase,
    KeyPressEvent,
    merge_key_bindings,
)
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from codex_py.frontends.tui.key_codes import ESCAPE

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

_AGAIN_TO_LEAVE: Final = "Press Ctrl-C again to leave"
_AGAIN_TO_LEAVE_WORK: Final = "The agent works: press Ctrl-D again to leave"
_AGAIN_TO_GO_BACK: Final = "Press Esc again to go back to an earlier prompt"
_TWICE_WITHIN_S: Final = 2.0

SHORTCUTS: Final = (
    ("Enter", "send; into the running turn, if there is one"),
    (
        "Tab",
        "complete; while the agent works, answer its question, else send when the turn is over",
    ),
    ("Ctrl-J, Alt-Enter, Shift-Enter", "begin a new line"),
    ("Esc", "interrupt"),
    ("Esc Esc", "go back to an earlier prompt"),
    ("Ctrl-C", "empty the composer (Up brings it back), else interrupt; twice: leave"),
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
    held = Condition(lambda: terminal.composer.holds_escape)

    @keys.add(ESCAPE, filter=composing & held)
    def _(event: KeyPressEvent) -> None:
        event.key_processor.feed(KeyPress(Keys.Escape), first=True)

    @keys.add(ESCAPE, filter=composing & ~held)
    def _(_event: KeyPressEvent) -> None:
        if terminal.interrupt() or terminal.composer.text:
            return
        if terminal.answered_hint == _AGAIN_TO_GO_BACK:
            _run(terminal, "back")
        else:
            terminal.hint(_AGAIN_TO_GO_BACK, for_s=_TWICE_WITHIN_S)

    @keys.add("c-c", filter=composing)
    def _(_event: KeyPressEvent) -> None:
        if terminal.composer.text:
            terminal.composer.put_by()
        elif terminal.interrupt():
            return
        elif terminal.answered_hint == _AGAIN_TO_LEAVE:
            terminal.leave()
        else:
            terminal.hint(_AGAIN_TO_LEAVE, for_s=_TWICE_WITHIN_S)

    @keys.add("c-d", filter=composing & is_empty)
    def _(_event: KeyPressEvent) -> None:
        if not terminal.is_working or terminal.answered_hint == _AGAIN_TO_LEAVE_WORK:
            terminal.leave()
        else:
            terminal.hint(_AGAIN_TO_LEAVE_WORK, for_s=_TWICE_WITHIN_S)

    @keys.add("c-z")
    def _(_event: KeyPressEvent) -> None:
        terminal.start(terminal.screen.suspend())

    others = (_question_keys(terminal), _looking_keys(terminal), _keys_without_meaning(terminal))
    return merge_key_bindings([keys, *others])


def _question_keys(terminal: "Terminal") -> KeyBindings:
    """Keys for a question that waits until the user has stopped writing."""
    keys = KeyBindings()
    announced = Condition(lambda: terminal.is_composing and bool(terminal.status.announced))
    completing = Condition(lambda: terminal.composer.completion.is_open)

    # Before the composer's own.
    @keys.add("tab", filter=announced & ~completing, eager=True)
    def _(_event: KeyPressEvent) -> None:
        terminal.panels.call()

    return keys


def _keys_without_meaning(terminal: "Terminal") -> KeyBindings:
    """Take keys with Alt that nothing else takes: neither Esc nor the other key was meant.

    For vi, they are Esc and the other key in the composer, as ever.
    """
    keys = KeyBindings()
    composing = Condition(lambda: terminal.is_composing)

    @keys.add("escape", "<any>", filter=emacs_mode | ~composing)
    # Emacs accepts the line with these, which drops it where nothing accepts it.
    @keys.add("escape", "#", filter=emacs_mode)
    @keys.add("c-o", filter=emacs_mode)
    def _(_event: KeyPressEvent) -> None: ...

    return keys


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
