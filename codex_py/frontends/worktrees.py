"""Finds the folder that a session works in: a new git worktree (`--worktree`), or that of a resumed session. LIGHT."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.target import SessionTarget
from codex_py.config.config import Config
from codex_py.config.paths import codex_home, worktrees_folder
from codex_py.errors import SessionError
from codex_py.rollout.index import find_session
from codex_py.rollout.records import read_meta
from codex_py.streams.standard import tell


def in_folder_of_session(
    arguments: Arguments, target: SessionTarget, environment: Mapping[str, str]
) -> Arguments:
    """Set the working directory to the worktree of the session to resume, if it had one and no option names another
    place."""
    if target.resume is None or arguments.cd != "." or arguments.worktree is not None:
        return arguments
    home = codex_home(environment)
    folder = worktrees_folder(home)
    path = find_session(home, target.resume) if folder.is_dir() else None
    try:
        cwd = Path("/") if path is None else Path(read_meta(path).cwd)
    except SessionError:
        # Opening the session reports it.
        return arguments
    if not cwd.is_relative_to(folder):
        return arguments
    if cwd.is_dir():
        return replace(arguments, cd=str(cwd))
    tell(f"Warning: the worktree of this session, {cwd}, is gone; the session goes on here.")
    return arguments


async def enter_worktree(
    stack: AsyncExitStack,
    arguments: Arguments,
    config: Config,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
):
    """Make or find the `Worktree` of a session with this configuration; None if it works in another folder.

    Leaving the stack removes a new one unless something was changed in it.

    Raises:
        CodexError: there can be no worktree.
    """
    name = arguments.worktree
    if name is None and not config.cwd.is_relative_to(worktrees_folder(config.home)):
        return None
    from codex_py.app.worktrees import worktree  # 22 ms

    if name is None:
        tree = await worktree.worktree_around(config.cwd, config.home, environment)
        if tree is not None:
            stack.enter_context(worktree.working_in(tree))
        return tree
    make = partial(
        worktree.new_worktree,
        config.cwd,
        config.home,
        environment,
        name=name,
        with_changes=arguments.with_changes,
        rules=config.files,
    )
    return await stack.enter_async_context(worktree.open_worktree(make, warn))
