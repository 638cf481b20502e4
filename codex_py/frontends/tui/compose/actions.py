"""What the keys of the composer do that takes more than the composer: the terminal, a list, the clipboard."""

import asyncio
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from codex_py.errors import CodexError
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.compose.editor import edited, editor_command
from codex_py.frontends.tui.compose.pasted_images import clipboard_image
from codex_py.frontends.tui.picker import Picker, Row, cut, rows_with

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal


def writing_keys(terminal: "Terminal") -> KeyBindings:
    """Keys for while the composer is what is typed into."""
    keys = KeyBindings()
    composing = Condition(lambda: terminal.is_composing)
    queued = Condition(lambda: bool(terminal.conversation.queue))

    @keys.add("c-r", filter=composing & ~vi_navigation_mode)
    def _(_event: KeyPressEvent) -> None:
        terminal.start(_search_history(terminal))

    @keys.add("c-g", filter=composing)
    @keys.add("c-x", "c-e", filter=composing)
    def _(_event: KeyPressEvent) -> None:
        terminal.start(_edit(terminal))

    @keys.add("c-v", filter=composing & ~vi_navigation_mode)
    def _(_event: KeyPressEvent) -> None:
        terminal.start(_paste_image(terminal))

    @keys.add("escape", "up", filter=composing & queued)
    @keys.add("s-left", filter=composing & queued)
    def _(_event: KeyPressEvent) -> None:
        terminal.composer.restore([terminal.conversation.queue.pop()])

    return keys


async def _search_history(terminal: "Terminal") -> None:
    composer = terminal.composer
    await composer.history.load()
    room = terminal.screen.width - 4
    rows = [Row(cut(printable(text), room), text) for text in composer.history.entries]

    async def preview(text: str) -> str:
        return "\n".join(f"    {cut(printable(line), room)}" for line in text.splitlines()[:8])

    found = await terminal.show(
        Picker("Earlier prompts", rows_with(rows), changed=terminal.screen.changed, preview=preview)
    )
    if found is not None:
        composer.set_text(found)


async def _edit(terminal: "Terminal") -> None:
    """Hand the terminal to the user's editor, and take it back with what was written."""
    environment, composer = terminal.environment, terminal.composer
    command = editor_command(terminal.safe_environment, terminal.config.cwd)
    before, images = composer.expanded
    after = before

    def edit() -> CodexError | None:
        nonlocal after
        try:
            after = edited(command, before, environment)
        except CodexError as error:
            return error
        return None

    if (error := await terminal.screen.pause(edit)) is not None:
        raise error
    # What was not touched stays folded.
    if after != before:
        composer.set_text(after, images)


async def _paste_image(terminal: "Terminal") -> None:
    terminal.hint("looking for an image in the clipboard")
    environment, cwd = terminal.safe_environment, terminal.config.cwd
    image = await asyncio.to_thread(clipboard_image, environment, cwd)
    terminal.hint("")
    terminal.composer.attach([image])
