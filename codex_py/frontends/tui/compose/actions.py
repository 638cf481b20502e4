"""Keys of the composer that need more than the composer: a list, an editor, the clipboard."""

import asyncio

from prompt_toolkit.filters import Condition, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.compose.editor import edited, editor_command
from codex_py.frontends.tui.compose.pasted_images import clipboard_image
from codex_py.frontends.tui.fitting import fit
from codex_py.frontends.tui.key_table import bind
from codex_py.frontends.tui.picker import Row
from codex_py.frontends.tui.surface import Surface


def add_writing_keys(surface: Surface, keys: KeyBindings) -> None:
    """Add the keys for while the composer has the keyboard."""
    start, outbox = surface.tasks.start, surface.outbox
    composing = Condition(lambda: surface.panels.top is None)
    queued = Condition(lambda: bool(outbox.queue))

    def take_back(_event: KeyPressEvent) -> None:
        surface.composer.restore([outbox.queue.pop()])

    bind(
        {
            ("c-r",): lambda _: start(_search_history(surface)),
            ("c-v",): lambda _: start(_paste_image(surface)),
        },
        filter=composing & ~vi_navigation_mode,
        to=keys,
    )
    bind({("c-g", ("c-x", "c-e")): lambda _: start(_edit(surface))}, filter=composing, to=keys)
    bind({(("escape", "up"), "s-left"): take_back}, filter=composing & queued, to=keys)


async def _search_history(surface: Surface) -> None:
    composer = surface.composer
    await composer.history.load()
    room = surface.screen.width - 4
    rows = [Row(fit(printable(text), room), text) for text in composer.history.entries]

    async def preview(text: str) -> str:
        return "\n".join(f"    {fit(printable(line), room)}" for line in text.splitlines()[:8])

    found = await surface.panels.pick("Earlier prompts", rows, preview=preview)
    if found is not None:
        composer.set_text(found)


async def _edit(surface: Surface) -> None:
    """Hand the terminal to the user's editor, and take it back with what was written."""
    environment, composer = surface.environment, surface.composer
    command = editor_command(surface.safe_environment, surface.cwd)
    before, images = composer.expanded

    after = await surface.screen.pause(lambda: edited(command, before, environment))
    # What was not touched stays folded.
    if after != before:
        composer.set_text(after, images)


async def _paste_image(surface: Surface) -> None:
    surface.hints.show("looking for an image in the clipboard")
    image = await asyncio.to_thread(clipboard_image, surface.safe_environment, surface.cwd)
    surface.hints.show("")
    surface.composer.attach([image])
