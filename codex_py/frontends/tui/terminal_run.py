"""`codex-py [PROMPT]`: from the command line to the terminal, and back to the shell."""

import asyncio
import gc
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from prompt_toolkit import layout
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import create_input

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.interruption import Interruption
from codex_py.filesystem.git import for_another_tree
from codex_py.frontends.tui.composer import composer_window
from codex_py.frontends.tui.first_frame import FirstFrame, greeting
from codex_py.frontends.tui.keys import composer_keys, program_keys
from codex_py.frontends.tui.launch import Launch
from codex_py.frontends.tui.output import TerminalWriter
from codex_py.frontends.tui.page import Page, live_rows, rows_below
from codex_py.frontends.tui.terminal_ui import LoadedHalf, Surface
from codex_py.frontends.worktrees import enter_worktree
from codex_py.streams.standard import OutputStream, tell

_DRAIN_S = 1.0


def run(launch: Launch, arguments: Arguments, frame: FirstFrame) -> int:
    """Run the terminal to its end. Returns the exit code. `frame` is on the screen meanwhile."""
    return asyncio.run(_run_in_place(launch, arguments, frame))


async def _run_in_place(launch: Launch, arguments: Arguments, frame: FirstFrame) -> int:
    """Run the terminal, in the worktree of the session if it has one."""
    async with AsyncExitStack() as stack:

        async def enter() -> int:
            nonlocal launch
            config = launch.config
            environment = launch.environment
            tree = await enter_worktree(stack, arguments, config, environment, tell)
            if tree is not None:
                reload = launch.reload
                config = tree.config(config, environment)
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
    surface.screen.show(
        _layout(surface), keys, surface.status.title, lambda: panels.covers
    )
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
        # Only now: one of the tasks may still have read the history.
        surface.composer.history.close()
        # Before anything else is written, even a traceback.
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
    # Load it while the user looks at the first frame.
    await asyncio.to_thread(_other_half)
    gc.enable()
    await surface.half().begin()


def _other_half() -> Callable[[Surface], LoadedHalf]:
    from codex_py.frontends.tui.session_half import (
        Loaded,
    )  # 300 ms: more than the first frame takes

    return Loaded


def _layout(surface: Surface) -> layout.AnyContainer:
    if surface.launch.replay is None:
        composer = composer_window(
            surface.composer, surface.screen, composer_keys(surface.composer)
        )
    else:
        # This has the focus between questions; text typed there does not hold up a question.
        buffer = surface.composer.buffer
        buffer.on_text_changed += Buffer.reset
        composer = layout.Window(layout.BufferControl(buffer), height=0)
    body = layout.DynamicContainer(lambda: surface.panels.top or composer)
    page = Page(body, lambda: live_rows(surface), lambda: rows_below(surface))
    panels = surface.panels
    return layout.DynamicContainer(lambda: (panels.covers and panels.top) or page)
