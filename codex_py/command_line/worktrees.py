"""Finds the folder that a session works in: a new git worktree (`--worktree`), or the worktree of a
resumed session. LIGHT."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.parser import working_folder
from codex_py.command_line.target import SessionTarget
from codex_py.config.config import Config
from codex_py.config.paths import codex_home, worktrees_folder
from codex_py.rollout.index import find_session

if TYPE_CHECKING:
    from codex_py.app.worktrees.worktree import Worktree


def in_folder_of_session(
    arguments: Arguments,
    target: SessionTarget,
    environment: Mapping[str, str],
) -> Arguments:
    """Set the working directory to the worktree of the session to resume.

    Nothing changes if the session had no worktree, or if an option names another place.

    Raises:
        SessionError: the worktree is gone.
    """
    if target.resume is None or names_folder(arguments):
        return arguments
    home = codex_home(environment)
    path = find_session(home, target.resume)
    if path is None:
        # Opening the session reports that it does not exist.
        return arguments
    from codex_py.app.worktrees import resumed  # 2 ms

    cwd = resumed.session_worktree(home, path)
    if cwd is None:
        return arguments
    if not cwd.is_dir():
        resumed.require_own_worktree(home, path, working_folder("."))
        return arguments
    return replace(arguments, cd=str(cwd))


def names_folder(arguments: Arguments) -> bool:
    """True if an option says in which folder the session works."""
    return arguments.cd is not None or arguments.worktree is not None


async def enter_worktree(
    stack: AsyncExitStack,
    arguments: Arguments,
    config: Config,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
) -> "Worktree | None":
    """Make or find the `Worktree` of a session with this configuration.

    Returns None if the session works in another folder. Leaving the stack removes a new worktree,
    unless something was changed in it.

    Raises:
        CodexError: the worktree cannot be made or used.
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
