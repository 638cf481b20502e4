"""The keys of the program, beside those that write: interrupting, going back, leaving, looking."""

from collections.abc import Callable
from typing import Final

from prompt_toolkit.filters import Condition, emacs_mode, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from codex_py.frontends.tui.key_codes import ESCAPE
from codex_py.frontends.tui.key_table import KeyTable, bind
from codex_py.frontends.tui.surface import LoadedHalf, Surface

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


def add_program_keys(surface: Surface, half: Callable[[], LoadedHalf], keys: KeyBindings) -> None:
    """
    Args:
        half: loads it, when it is first asked for.
    """
    composer = surface.composer
    composing = Condition(lambda: surface.panels.top is None)
    is_empty = Condition(lambda: not composer.buffer.text)
    announced = Condition(lambda: bool(surface.status.announced))
    completing = Condition(lambda: composer.completion.is_open)
    _add_ending_keys(surface, half, composing, keys)
    looking: KeyTable = {("c-t",): lambda _: half().run_command("transcript")}
    listing: KeyTable = {("?",): lambda _: half().run_command("keymap")}
    screen_keys: KeyTable = {
        ("c-z",): lambda _: surface.tasks.start(surface.screen.suspend()),
        ("c-l",): lambda _: surface.screen.scroll_away(),
    }
    bind(looking, filter=composing, to=keys)
    bind(listing, filter=composing & is_empty & ~vi_navigation_mode, to=keys)
    bind(screen_keys, to=keys)
    # Before the composer's own: a question waits until the user has stopped writing.
    answering: KeyTable = {("tab",): lambda _: surface.panels.call()}
    bind(answering, filter=composing & announced & ~completing, eager=True, to=keys)
    # Keys with Alt that nothing else takes: neither Esc nor the other key was meant. For vi they are
    # both, in the composer, as ever.
    bind({(("escape", "<any>"),): lambda _: None}, filter=emacs_mode | ~composing, to=keys)
    # Emacs accepts the line with these, which drops it where nothing accepts it.
    bind({(("escape", "#"), "c-o"): lambda _: None}, filter=emacs_mode, to=keys)


def _add_ending_keys(
    surface: Surface, half: Callable[[], LoadedHalf], composing: Condition, keys: KeyBindings
) -> None:
    """Keys that interrupt, go back or leave; some when they are pressed twice."""
    composer, hints, leaving = surface.composer, surface.hints, surface.leaving
    held = Condition(lambda: composer.holds_escape)
    is_empty = Condition(lambda: not composer.buffer.text)

    def twice(hint: str, action: Callable[[], None]) -> None:
        if hints.answered == hint:
            action()
        else:
            hints.show(hint, for_s=_TWICE_WITHIN_S)

    def escape(_event: KeyPressEvent) -> None:
        if not (half().interrupt() or composer.text):
            twice(_AGAIN_TO_GO_BACK, lambda: half().run_command("back"))

    def escape_of_vi(event: KeyPressEvent) -> None:
        event.key_processor.feed(KeyPress(Keys.Escape), first=True)

    def control_c(_event: KeyPressEvent) -> None:
        if composer.text:
            composer.put_by()
        elif not half().interrupt():
            twice(_AGAIN_TO_LEAVE, leaving.leave)

    def control_d(_event: KeyPressEvent) -> None:
        if half().is_working:
            twice(_AGAIN_TO_LEAVE_WORK, leaving.leave)
        else:
            leaving.leave()

    bind({(ESCAPE,): escape_of_vi}, filter=composing & held, to=keys)
    bind({(ESCAPE,): escape}, filter=composing & ~held, to=keys)
    bind({("c-c",): control_c}, filter=composing, to=keys)
    bind({("c-d",): control_d}, filter=composing & is_empty, to=keys)
