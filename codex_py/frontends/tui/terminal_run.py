"""Runs `codex-py [PROMPT]` from the first frame to the end, when the shell has the terminal."""

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
from codex_py.command_line.worktrees import enter_worktree
from codex_py.config.config import Config
from codex_py.filesystem.git import for_another_tree
from codex_py.frontends.tui.composer import composer_window
from codex_py.frontends.tui.first_frame import FirstFrame, greeting
from codex_py.frontends.tui.keys import composer_keys, program_keys
from codex_py.frontends.tui.launch import Launch
from codex_py.frontends.tui.output import TerminalWriter
from codex_py.frontends.tui.page import Page, live_rows, rows_below
from codex_py.frontends.tui.terminal_ui import SessionInterface, TerminalUI
from codex_py.streams.standard import OutputStream, tell

_DRAIN_S = 1.0


def run(
    launch: Launch,
    arguments: Arguments,
    frame: FirstFrame,
) -> int:
    """Run the terminal to its end. Returns the exit code. `frame` is on the screen meanwhile."""
    return asyncio.run(_run_in_place(launch, arguments, frame))


async def _run_in_place(
    launch: Launch,
    arguments: Arguments,
    frame: FirstFrame,
) -> int:
    """Run the terminal, in the worktree of the session if it has one."""
    async with AsyncExitStack() as stack:

        async def enter() -> int:
            nonlocal launch
            tree = await enter_worktree(
                stack, arguments, launch.config, launch.environment, tell
            )
            if tree is not None:
                environment = launch.environment
                launch = _moved(launch, lambda config: tree.config(config, environment))
            return 0

        code = await Interruption().run(enter())
        if code != 0:
            return code
        return await _run(launch, frame)


def _moved(launch: Launch, in_tree: Callable[[Config], Config]) -> Launch:
    """The same launch in a worktree. `in_tree` gives a configuration the worktree's folder."""
    config = in_tree(launch.config)
    return replace(
        launch,
        config=config,
        theme=replace(launch.theme, cwd=str(config.cwd)),
        environment=for_another_tree(launch.environment),
        reload=lambda: in_tree(launch.reload()),
    )


async def _run(launch: Launch, frame: FirstFrame) -> int:
    writer = TerminalWriter(1, unicode=launch.theme.unicode)
    ui = TerminalUI(launch, writer, create_input(), _load_session_half)
    keys = program_keys(ui)
    panels = ui.panels
    ui.screen.show(_layout(ui), keys, ui.status.title, lambda: panels.covers)
    processor = ui.screen.app.key_processor
    processor.before_key_press += ui.panels.before_key
    processor.before_key_press += ui.hints.key_pressed
    processor.after_key_press += ui.panels.after_key
    ui.screen.drawn = panels.drawn
    ui.leaving.listen()
    ui.screen.rows_above = frame.take_over()
    if not ui.screen.rows_above:
        ui.screen.print(greeting(launch.theme, ui.cwd))
    try:
        farewell = await _shown(ui)
    finally:
        # Only now: one of the tasks may still have read the history.
        ui.composer.history.close()
        # Before anything else is written, even a traceback.
        writer.drain(_DRAIN_S)
    code = ui.leaving.result()
    OutputStream(1).write_text(farewell)
    return code


async def _shown(ui: TerminalUI) -> str:
    """Show the program until the user leaves. Returns what to print then."""
    farewell = ""
    async with ui.tasks:
        opening = ui.tasks.create_task(_begin(ui))
        try:
            await ui.screen.run()
        except EOFError:
            ui.leaving.lost_terminal()
        finally:
            ui.leaving.has_left_screen = True
            opening.cancel()
            if ui.session_half is not None:
                farewell = await ui.session_half.close()
            ui.panels.close()
    return farewell


async def _begin(ui: TerminalUI) -> None:
    # Load it while the user looks at the first frame.
    await asyncio.to_thread(_session_half)
    gc.enable()
    await ui.load_session_half().begin()


def _load_session_half(ui: TerminalUI) -> SessionInterface:
    return _session_half()(ui)


def _session_half() -> Callable[[TerminalUI], SessionInterface]:
    # This takes longer than the first frame.
    from codex_py.frontends.tui.session_half import SessionHalf  # 300 ms

    return SessionHalf


def _layout(ui: TerminalUI) -> layout.AnyContainer:
    """The page, in whose body a panel or the composer is; a panel may cover it."""
    panels = ui.panels
    if ui.launch.is_unattended:
        # This has the focus between questions; text typed there does not hold up a question.
        buffer = ui.composer.buffer
        buffer.on_text_changed += Buffer.reset
        composer = layout.Window(layout.BufferControl(buffer), height=0)
    else:
        composer = composer_window(ui.composer, ui.screen, composer_keys(ui.composer))
    body = layout.DynamicContainer(lambda: panels.top or composer)
    page = Page(body, lambda: live_rows(ui), lambda: rows_below(ui))

    def shown() -> layout.AnyContainer:
        if panels.covers and panels.top is not None:
            return panels.top
        return page

    return layout.DynamicContainer(shown)
