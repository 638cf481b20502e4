"""Binds the keys of the program and of the composer; panels bind their own.

Keys that are not bound here are prompt-toolkit's, as in emacs or in vi.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from prompt_toolkit.filters import (
    Condition,
    Filter,
    emacs_mode,
    vi_insert_mode,
    vi_navigation_mode,
)
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress, KeyProcessor
from prompt_toolkit.keys import Keys
from wcwidth import iter_graphemes

from codex_py.frontends.tui.compose.attachments import (
    clipboard_image,
    edited,
    editor_command,
)
from codex_py.frontends.tui.composer import Composer
from codex_py.frontends.tui.fitting import fit
from codex_py.frontends.tui.key_codes import BURST, ESC, ESCAPE, PASTE, bind
from codex_py.frontends.tui.keymap import code
from codex_py.frontends.tui.menu import MenuOption, bind_arrows
from codex_py.frontends.tui.picker import Picker
from codex_py.frontends.tui.terminal_ui import Hints, TerminalUI
from codex_py.streams.terminal import printable

_AGAIN_TO_LEAVE: Final = "Press Ctrl-C again to leave"
_STOPPED: Final = "Stopped"
"""The hint after an interrupt.

While it is shown, Esc does nothing, so that a quick second press does not go back.
"""
_HURRY_S: Final = 1.0
"""Seconds after an interrupt in which Ctrl-C does not leave: it may still mean the turn."""
_AGAIN_TO_LEAVE_WORK: Final = "The agent works: press Ctrl-D again to leave"
_AGAIN_TO_GO_BACK: Final = "Press Esc again to go back to an earlier prompt"
_AGAIN_TO_EMPTY: Final = (
    "Press Esc again to empty the prompt ({editor.move_up} brings it back)"
)
_TWICE_WITHIN_S: Final = 2.0
_PREVIEW_LINES: Final = 8
"""Lines of an earlier prompt that are shown below the list."""
_LONGEST_SEEN: Final = 64
"""The most code points of a visible character, so that a key need not read all of a long line."""

SHORTCUTS: Final = (
    # Actions of `tui.keymap` stand for their keys.
    ("{composer.submit}", "send; into the running turn, if there is one"),
    (
        "{composer.queue}",
        "complete; while the agent works, answer it, or send after the turn",
    ),
    ("Shift-Tab", "switch to Plan mode or back"),
    ("{editor.insert_newline}", "begin a new line"),
    ("{chat.interrupt_turn}", "interrupt"),
    ("Esc Esc", "empty the composer, else go back to an earlier prompt"),
    ("Ctrl-C", "empty the composer, else interrupt; twice: leave"),
    ("Ctrl-D", "leave, if nothing is written"),
    ("Ctrl-Z", "stop; `fg` goes on"),
    ("{composer.history_search_previous}", "search earlier prompts"),
    ("{global.open_external_editor}", "write in $EDITOR"),
    ("Ctrl-O", "look at what was pasted"),
    ("Ctrl-V", "paste an image"),
    ("Ctrl-B", "put the command that runs into the background"),
    ("{global.open_transcript}", "look at all of the conversation"),
    ("{global.clear_terminal}", "begin at the top of the screen"),
    ("{chat.edit_queued_message}", "take back what is queued"),
    ("/", "a command"),
    ("@", "a file"),
    ("$", "a skill"),
    ("!", "run a command of your own"),
    ("{composer.toggle_shortcuts}", "show these keys"),
)


def program_keys(ui: TerminalUI) -> KeyBindings:
    """The keys of the program: some always, most of them while no panel is open."""
    keys = KeyBindings()
    bind(keys, "c-z", lambda _: ui.start(ui.screen.suspend()))
    bind(keys, code("global.clear_terminal"), lambda _: ui.screen.scroll_away())
    if ui.launch.is_unattended:
        bind(keys, "c-c", lambda _: ui.leaving.leave(130))
        return keys
    composing = Condition(lambda: ui.panels.top is None)
    _add_ending_keys(ui, composing, keys)
    _add_writing_keys(ui, composing, keys)
    _add_command_keys(ui, composing, keys)
    _add_alt_keys(ui, composing, keys)
    return keys


def _add_writing_keys(
    ui: TerminalUI,
    composing: Filter,
    keys: KeyBindings,
) -> None:
    """Bind the keys that put a text or an image into the composer."""
    can_insert = composing & ~vi_navigation_mode
    search = code("composer.history_search_previous")
    bind(keys, search, lambda _: ui.start(_search_history(ui)), can_insert)
    bind(keys, "c-v", lambda _: ui.start(_paste_image(ui)), can_insert)
    edit = f"{code('global.open_external_editor')} c-x+c-e"
    bind(keys, edit, lambda _: ui.start(_edit(ui)), composing)

    def take_back(_event: KeyPressEvent) -> None:
        ui.composer.restore([ui.outbox.queue.pop()])

    can_take_back = composing & Condition(lambda: bool(ui.outbox.queue))
    bind(keys, "escape+up s-left", take_back, can_take_back)


def _add_command_keys(
    ui: TerminalUI,
    composing: Filter,
    keys: KeyBindings,
) -> None:
    """Bind the keys that run slash commands, and the one that shows the waiting question."""
    composer = ui.composer
    is_empty = Condition(lambda: not composer.buffer.text)
    at_start = Condition(lambda: composer.buffer.cursor_position == 0)
    announced = Condition(lambda: bool(ui.status.announced))
    completing = Condition(lambda: composer.completion.is_open)

    def run(
        key: str,
        command: str,
        when: Filter,
    ) -> None:
        bind(keys, key, lambda _: ui.load_session_half().run_command(command), when)

    run(code("global.open_transcript"), "transcript", composing)
    run(code("global.copy"), "copy", composing)
    run(code("global.toggle_vim_mode"), "vim", composing)
    run(code("composer.toggle_shortcuts"), "keymap", composing)
    run("?", "keymap", composing & ~vi_navigation_mode & is_empty)
    run("c-b", "background", composing & at_start)
    run("c-o", "pasted", composing)
    run("s-tab", "plan", composing)
    # Before the composer's own key: a question waits until the user has stopped writing.
    can_answer = composing & announced & ~completing
    bind(keys, "tab", lambda _: ui.panels.call(), can_answer, eager=True)


def _add_alt_keys(
    ui: TerminalUI,
    composing: Filter,
    keys: KeyBindings,
) -> None:
    """Bind Alt with keys that have no action, and turn off two actions of emacs."""
    # With vi's keys, Alt and a key are Esc and the key in the composer.
    bind(keys, "escape+<any>", _unbound_alt, emacs_mode | ~composing)
    _add_escape_with_text(ui, composing & emacs_mode, keys)
    # With this key emacs accepts the line, which would drop it here.
    bind(keys, "escape+#", lambda _: None, emacs_mode)
    bind(keys, "c-o", lambda _: None, emacs_mode & ~composing)


def _add_escape_with_text(
    ui: TerminalUI,
    composing: Filter,
    keys: KeyBindings,
) -> None:
    """Let Esc stop the turn even if text came in the same read, as after Alt and a letter.

    A single letter belongs to Alt, and so does any letter where there is a draft to edit.
    """
    processor = ui.screen.app.key_processor
    is_empty = Condition(lambda: not ui.composer.buffer.text)

    def is_text() -> bool:
        is_working = ui.session_half is not None and ui.session_half.is_working
        return is_working and _is_escape_with_text(processor.key_buffer, processor)

    def stop(event: KeyPressEvent) -> None:
        ui.load_session_half().interrupt()
        processor.feed(event.key_sequence[-1], first=True)

    can_stop = composing & is_empty & Condition(is_text)
    bind(keys, "escape+<any>", stop, can_stop, eager=True)


def _is_escape_with_text(held: Sequence[KeyPress], processor: KeyProcessor) -> bool:
    """True if keys that were read as Alt and a key may be Esc and the first letter of a text."""
    rest = processor.input_queue
    if not held or not rest:
        return False
    # The reader of keys gives this text to an Alt that may be Esc.
    may_be_escape = held[0].data == "\x1b"
    is_character = len(rest[0].key) == 1
    return may_be_escape and is_character


def _unbound_alt(event: KeyPressEvent) -> None:
    """Ignore Alt with an unbound key, as neither Esc nor the key was meant; unless text follows."""
    processor = event.key_processor
    if _is_escape_with_text(event.key_sequence, processor):
        processor.feed(event.key_sequence[-1], first=True)
        processor.feed(KeyPress(ESCAPE), first=True)


def _add_ending_keys(
    ui: TerminalUI,
    composing: Condition,
    keys: KeyBindings,
) -> None:
    """Bind the keys that empty the composer, interrupt the turn, go back, and leave."""
    composer = ui.composer
    hints = ui.hints
    leaving = ui.leaving
    held = Condition(lambda: composer.vi_uses_escape)
    is_empty = Condition(lambda: not composer.buffer.text)
    stopped_at = 0.0

    def interrupt() -> bool:
        return ui.session_half is not None and ui.session_half.interrupt()

    twice = partial(_twice, hints)
    escape_interrupts = "esc" in ui.keymap.keys("chat.interrupt_turn")

    def go_back() -> None:
        ui.load_session_half().run_command("rewind")

    def escape(_event: KeyPressEvent) -> None:
        has_interrupted = escape_interrupts and interrupt()
        if has_interrupted or hints.answered == _STOPPED:
            hints.show(_STOPPED, for_s=_TWICE_WITHIN_S)
        elif composer.text:
            twice(ui.keymap.named(_AGAIN_TO_EMPTY), composer.stash)
        else:
            twice(_AGAIN_TO_GO_BACK, go_back)

    def escape_of_vi(event: KeyPressEvent) -> None:
        event.key_processor.feed(KeyPress(Keys.Escape), first=True)

    def control_c(_event: KeyPressEvent) -> None:
        nonlocal stopped_at
        if composer.text:
            composer.stash()
        elif interrupt():
            stopped_at = time.monotonic()
            hints.show(_STOPPED, for_s=_TWICE_WITHIN_S)
        else:
            in_hurry = time.monotonic() - stopped_at < _HURRY_S
            twice(_AGAIN_TO_LEAVE, leaving.leave, in_hurry=in_hurry)

    def control_d(_event: KeyPressEvent) -> None:
        if ui.session_half is not None and ui.session_half.is_working:
            twice(_AGAIN_TO_LEAVE_WORK, leaving.leave)
        else:
            leaving.leave()

    bind(keys, ESC, escape_of_vi, composing & held)
    bind(keys, ESC, escape, composing & ~held)
    bind(keys, code("chat.interrupt_turn"), lambda _: interrupt(), composing)
    # Users of vi press it for the normal mode.
    is_vi_escape = held & ~is_empty
    bind(keys, "c-c", escape_of_vi, composing & is_vi_escape)
    bind(keys, "c-c", control_c, composing & ~is_vi_escape)
    bind(keys, "c-d", control_d, composing & is_empty)


def _twice(
    hints: Hints, hint: str, action: Callable[[], object], *, in_hurry: bool = False
) -> None:
    """Call `action` if the key was pressed before, and not `in_hurry`; else show `hint`."""
    if hints.answered == hint and not in_hurry:
        action()
    else:
        hints.show(hint, for_s=_TWICE_WITHIN_S)


def composer_keys(composer: Composer) -> KeyBindings:
    """The keys of the composer: those that send, complete, insert, step, and recall."""
    buffer = composer.buffer
    completion = composer.completion
    offering = Condition(lambda: completion.is_open)
    at_top = Condition(lambda: buffer.document.on_first_line) & ~offering
    at_bottom = Condition(lambda: buffer.document.on_last_line) & ~offering
    writing = emacs_mode | vi_insert_mode

    def size_before() -> int:
        """The number of code points of the character before the cursor."""
        text = buffer.document.current_line_before_cursor[-_LONGEST_SEEN:]
        return len(_characters(text)[-1])

    def size_after() -> int:
        """The number of code points of the character after the cursor."""
        text = buffer.document.current_line_after_cursor[:_LONGEST_SEEN]
        return len(_characters(text)[0])

    def erase_before(_event: KeyPressEvent) -> None:
        buffer.delete_before_cursor(size_before())

    keys = KeyBindings()
    bind(keys, "enter", lambda _: composer.enter())
    bind(keys, "tab", lambda _: composer.complete())
    bind(keys, "c-j", lambda _: buffer.insert_text("\n"))
    bind(keys, PASTE, lambda event: composer.paste(event.data))
    bind(keys, BURST, lambda event: composer.insert(event.data))
    bind(keys, ESC, lambda _: completion.close(), offering)
    bind_arrows(keys, completion.move, offering)
    stepping = writing & Condition(lambda: buffer.selection_state is None)
    bind(keys, "left", lambda _: buffer.cursor_left(size_before()), stepping)
    bind(keys, "right", lambda _: buffer.cursor_right(size_after()), stepping)
    bind(keys, "backspace", erase_before, stepping)
    bind(keys, "delete", lambda _: buffer.delete(size_after()), stepping)
    bind(keys, "up", lambda _: composer.recall(1), at_top)
    bind(keys, "c-p", lambda _: composer.recall(1), at_top & writing)
    bind(keys, "k", lambda _: composer.recall(1), at_top & vi_navigation_mode)
    bind(keys, "down", lambda _: composer.recall(-1), at_bottom)
    bind(keys, "c-n", lambda _: composer.recall(-1), at_bottom & writing)
    bind(keys, "j", lambda _: composer.recall(-1), at_bottom & vi_navigation_mode)
    return keys


def _characters(text: str) -> list[str]:
    """The visible characters of a part of a line; without any, the newline that is next to it."""
    return list(iter_graphemes(text)) or ["\n"]


async def _search_history(ui: TerminalUI) -> None:
    """Let the user pick an earlier prompt, and write it into the composer."""
    composer = ui.composer
    await composer.history.load()
    room = ui.screen.width - 4
    rows = [
        MenuOption(fit(printable(text), room), text)
        for text in composer.history.entries
    ]

    async def preview(text: str) -> str:
        lines = text.splitlines()[:_PREVIEW_LINES]
        return "\n".join(f"    {fit(printable(line), room)}" for line in lines)

    found = await ui.panels.show(Picker("Earlier prompts", rows, preview=preview))
    if found is not None:
        composer.set_text(found)


async def _edit(ui: TerminalUI) -> None:
    """Let the user write the prompt in their editor."""
    composer = ui.composer
    command = editor_command(ui.programs, ui.environment)
    before, images = composer.expanded
    edit = partial(edited, command, before, ui.environment, ui.programs.home)
    after = await ui.screen.pause(edit)
    # A text that was not changed stays folded.
    if after != before:
        composer.set_text(after, images)


async def _paste_image(ui: TerminalUI) -> None:
    ui.hints.show("looking for an image in the clipboard")
    image = await asyncio.to_thread(clipboard_image, ui.programs, ui.environment)
    ui.hints.show("")
    ui.composer.attach([image])
