"""`codex-py [PROMPT]`: from the command line to the terminal, and back to the shell."""

import asyncio
import gc
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from prompt_toolkit import layout
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import create_input
from prompt_toolkit.layout.controls import FormattedTextControl

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.interruption import Interruption
from codex_py.filesystem.git import for_another_tree
from codex_py.frontends.tui.composer import composer_window
from codex_py.frontends.tui.first_frame import INDENT, FirstFrame, greeting, status_gap
from codex_py.frontends.tui.fitting import Fragments, fit, joined
from codex_py.frontends.tui.keys import composer_keys, program_keys
from codex_py.frontends.tui.launch import Launch
from codex_py.frontends.tui.output import TerminalWriter
from codex_py.frontends.tui.surface import LoadedHalf, Surface
from codex_py.frontends.tui.theme import PROMPT
from codex_py.frontends.worktrees import enter_worktree
from codex_py.streams.standard import OutputStream, tell
from codex_py.streams.terminal import printable

_DRAIN_S = 1.0
_LEAST_ROWS = 3
"""Of what is under way, however low the screen is."""
_BESIDE_TEXT = 4
_OTHER_ROWS = 9
"""Rows of the rest, as a rule."""
_WAITING = "  When the session has begun:"
_STEERED = "  After the next step:"
_QUEUED = "  After the turn ({chat.edit_queued_message} takes the last one back):"


def run(launch: Launch, arguments: Arguments, frame: FirstFrame) -> int:
    """Run the terminal to its end; the exit code. `frame` is on the screen meanwhile."""
    return asyncio.run(_run_in_place(launch, arguments, frame))


async def _run_in_place(launch: Launch, arguments: Arguments, frame: FirstFrame) -> int:
    """Run the terminal, in the worktree of the session if it has one."""
    async with AsyncExitStack() as stack:

        async def enter() -> int:
            nonlocal launch
            config, environment = launch.config, launch.environment
            tree = await enter_worktree(stack, arguments, config, environment, tell)
            if tree is not None:
                reload, config = launch.reload, tree.config(config, environment)
                launch = replace(
                    launch,
                    config=config,
                    theme=replace(launch.theme, cwd=str(config.cwd)),
                    environment=for_another_tree(environment),
                    reload=lambda: tree.config(reload(), environment),
                )
            return 0

        return await Interruption().run(enter()) or await _run(launch, frame)


async def _run(launch: Launch, frame: FirstFrame) -> int:
    writer = TerminalWriter(1, unicode=launch.theme.unicode)
    surface = Surface(launch, writer, create_input(), lambda own: _other_half()(own))
    keys = program_keys(surface)
    panels = surface.panels
    surface.screen.show(_layout(surface), keys, surface.status.title, lambda: panels.covers)
    processor = surface.screen.app.key_processor
    processor.before_key_press += surface.panels.before_key
    processor.before_key_press += surface.hints.key_pressed
    processor.after_key_press += surface.panels.after_key
    surface.leaving.listen()
    surface.screen.rows_above = frame.take_over()
    if not surface.screen.rows_above:
        surface.screen.print(greeting(launch.theme, surface.cwd))
    try:
        farewell = await _shown(surface)
    finally:
        # One of the tasks may still have read it.
        surface.composer.history.close()
        # Before anything else is written, be it a traceback.
        writer.drain(_DRAIN_S)
    code = surface.leaving.result()
    OutputStream(1).write_text(farewell)
    return code


async def _shown(surface: Surface) -> str:
    """Show the program until the user leaves. Returns what to print then."""
    farewell = ""
    async with surface.tasks:
        opening = surface.tasks.create_task(_begin(surface))
        try:
            await surface.screen.run()
        except EOFError:
            surface.leaving.lost_terminal()
        finally:
            surface.leaving.has_left_screen = True
            opening.cancel()
            if surface.loaded is not None:
                farewell = await surface.loaded.close()
            surface.panels.close()
    return farewell


async def _begin(surface: Surface) -> None:
    # While the user looks at the first frame.
    await asyncio.to_thread(_other_half)
    gc.enable()
    await surface.half().begin()


def _other_half() -> Callable[[Surface], LoadedHalf]:
    from codex_py.frontends.tui.loaded import Loaded  # 300 ms: more than the first frame takes

    return Loaded


def _layout(surface: Surface) -> layout.AnyContainer:
    if surface.launch.replay is None:
        composer = composer_window(
            surface.composer, surface.screen, composer_keys(surface.composer)
        )
    else:
        # It has the focus between questions, and what is typed there holds up none.
        buffer = surface.composer.buffer
        buffer.on_text_changed += Buffer.reset
        composer = layout.Window(layout.BufferControl(buffer), height=0)
    page = layout.HSplit(
        [
            layout.Window(
                FormattedTextControl(lambda: live_rows(surface)),
                height=lambda: _live_height(surface),
                dont_extend_height=True,
            ),
            layout.DynamicContainer(lambda: surface.panels.top or composer),
            layout.Window(height=lambda: layout.Dimension.exact(status_gap(surface.screen.height))),
            layout.Window(FormattedTextControl(lambda: _below(surface)), height=1),
        ]
    )
    panels = surface.panels
    return layout.DynamicContainer(lambda: (panels.covers and panels.top) or page)


def live_rows(surface: Surface) -> Fragments:
    """What stands above the composer: it may still change."""
    screen, outbox = surface.screen, surface.outbox
    lines: list[Fragments] = []
    if surface.loaded is not None:
        most = max(_LEAST_ROWS, screen.height - _OTHER_ROWS)
        lines += surface.loaded.live(screen.width, most)
    if working := surface.status.working(screen.width):
        lines += [[], working]
    for submissions, heading in (
        (outbox.waiting, _WAITING),
        (outbox.steered, _STEERED),
        (outbox.queue, _QUEUED),
    ):
        if submissions:
            lines.append([("class:quiet", surface.keymap.named(heading))])
        for each in submissions:
            text = fit(
                printable((each.shown or each.text).splitlines()[0]), screen.width - _BESIDE_TEXT
            )
            lines.append([("class:quiet", f"  {PROMPT} {text}")])
    lines.append([])
    left = _rows_beside_panel(surface)
    return joined(lines if left is None else lines[max(0, len(lines) - left) :])


def _rows_beside_panel(surface: Surface) -> int | None:
    """How many rows the panel leaves, for it gives up none; None if there is no panel."""
    if (panel := surface.panels.top) is None:
        return None
    columns, rows = surface.screen.width, surface.screen.height
    rows -= 1 + status_gap(surface.screen.height)
    return max(0, rows - layout.to_container(panel).preferred_height(columns, rows).preferred)


def _live_height(surface: Surface) -> layout.Dimension:
    return layout.Dimension.exact(0) if _rows_beside_panel(surface) == 0 else layout.Dimension()


def _below(surface: Surface) -> Fragments:
    columns = surface.screen.width
    if hint := surface.panels.hint or surface.hints.text:
        return [("class:quiet", INDENT + fit(hint, columns - len(INDENT)))]
    mode = f"{name} " if (name := surface.composer.vi_mode) else ""
    line = surface.status.line(columns - len(mode))
    return [("class:accent", mode), *line]
