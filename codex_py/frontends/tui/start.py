"""Runs `codex-py [PROMPT]` from the command line to the first frame. LIGHT.

`terminal_run.py`, which is not, goes on from there.
"""

from collections.abc import Mapping

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import load_session_config
from codex_py.command_line.parser import working_folder
from codex_py.command_line.target import require_images, terminal_target
from codex_py.command_line.worktrees import in_folder_of_session, names_folder
from codex_py.config.config import Config
from codex_py.config.paths import worktrees_folder
from codex_py.frontends.tui.first_frame import FirstFrame
from codex_py.frontends.tui.launch import Launch
from codex_py.frontends.tui.theme import own_styles, terminal_theme
from codex_py.rollout.index import require_session


def run_terminal(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Run the terminal to its end. Returns the exit code.

    Raises:
        CodexError: before anything is drawn.
    """
    target = terminal_target(arguments)
    require_images(arguments, target)
    needs_own_worktree = not names_folder(arguments)
    arguments = in_folder_of_session(arguments, target, environment)

    def configured() -> Config:
        return load_session_config(arguments, environment, {})

    config = configured()
    config.require_enforced()
    if target.resume is not None:
        require_session(config.home, target.resume)
    add_dirs = tuple(working_folder(arguments.cd) / name for name in arguments.add_dir)
    tui = config.settings.tui
    own = own_styles(config.home / "codex-py" / "theme.toml")
    theme = terminal_theme(environment, tui.theme, cwd=str(config.cwd), own=own)
    is_unattended = any(each.is_unattended for each in arguments.of_extensions)
    launch = Launch(
        config,
        theme,
        configured,
        target,
        add_dirs,
        environment,
        needs_own_worktree=needs_own_worktree,
        bypass_hook_trust=arguments.bypass_hook_trust,
        plan=arguments.plan,
        images=arguments.images,
        of_extensions=arguments.of_extensions,
        is_unattended=is_unattended,
    )
    frame = FirstFrame()
    try:
        # Before a worktree is entered, programs are started: they must not inherit the signals
        # that the frame blocks.
        is_in_worktree = config.cwd.is_relative_to(worktrees_folder(config.home))
        needs_worktree = arguments.worktree is not None or is_in_worktree
        if not is_unattended and not needs_worktree:
            frame.draw(theme, config.cwd, vi=tui.vim_mode_default is True)
        from codex_py.frontends.tui.terminal_run import (
            run,  # 100 ms: prompt-toolkit and asyncio
        )

        return run(launch, arguments, frame)
    finally:
        frame.erase()
