"""Opens a subagent in a git worktree of its own, which is kept only if it has changed."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from codex_py.app.options import SessionOptions
from codex_py.app.worktrees import Worktree, add_worktree
from codex_py.config.config import Config
from codex_py.core.session import Session
from codex_py.errors import CodexError


class Isolation:
    """The worktree of one subagent, while its session is open.

    Args:
        environment: of the parent; git is found on its `PATH`.
        warn: tells the user what is left of it.
    """

    def __init__(self, environment: Mapping[str, str], warn: Callable[[str], None]) -> None:
        self._environment = environment
        self._warn = warn
        self._tree: Worktree | None = None

    @asynccontextmanager
    async def opened(
        self,
        open_child: Callable[[Config, SessionOptions], AbstractAsyncContextManager[Session]],
        config: Config,
        options: SessionOptions,
    ) -> AsyncGenerator[Session]:
        """Open the session in a new worktree.

        Raises:
            CodexError: there can be no worktree, or the session cannot be opened.
        """
        if options.choices is not None and options.choices.mode == "plan":
            # Nothing is changed, so none is needed; and a new one would be a change of the repository.
            async with open_child(config, options) as session:
                yield session
            return
        tree = await add_worktree(config.cwd, config.home, self._environment)
        self._tree = tree
        try:
            async with open_child(*_moved(config, options, tree)) as session:
                yield session
        finally:
            self._tree = None
            # A cancellation must not leave it behind.
            leaving = asyncio.ensure_future(asyncio.to_thread(_leave, tree))
            leaving.add_done_callback(
                lambda left: self._warn(left.result()) if left.result() else None
            )
            await asyncio.shield(leaving)

    async def remark(self) -> str:
        """What to add to the agent's answer: where its changes are. Empty if there are none."""
        if (tree := self._tree) is None or await asyncio.to_thread(tree.is_unchanged):
            return ""
        return f"\n\n(The changes are in {tree.path}, a git worktree, and not in {tree.root}.)"


def _leave(tree: Worktree) -> str:
    """Remove it unless it has changed. What to tell the user, if there is something."""
    if not tree.is_unchanged():
        return f"The changes of a subagent were kept in {tree.path}, a git worktree."
    try:
        tree.remove()
    except (CodexError, OSError) as error:
        return f"The git worktree {tree.path} could not be removed: {error}"
    return ""


def _moved(
    config: Config, options: SessionOptions, tree: Worktree
) -> tuple[Config, SessionOptions]:
    """The configuration and options for a session in a worktree. It cannot write to the tree that this was made from."""
    choices = options.choices
    assert choices is not None
    policy = choices.sandbox_policy
    others = (root for root in policy.writable_roots if not root.is_relative_to(tree.root))
    roots = (tree.cwd, *others) if policy.mode == "workspace-write" else ()
    moved = replace(
        options,
        choices=replace(choices, sandbox_policy=replace(policy, writable_roots=roots)),
        # Programs of the project are no more trusted from here.
        add_dirs=(*options.add_dirs, tree.root),
    )
    return replace(config, cwd=tree.cwd, project_root=tree.path), moved
