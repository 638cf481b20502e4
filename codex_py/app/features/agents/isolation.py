"""Opens a subagent in a git worktree of its own."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from codex_py.app.options import SessionOptions
from codex_py.app.worktrees import Worktree, worktree
from codex_py.config.config import Config
from codex_py.core.session import Session

if TYPE_CHECKING:
    from codex_py.app.features.agents.child import Child


@asynccontextmanager
async def opened_apart(
    child: "Child",
    open_child: Callable[[Config, SessionOptions], AbstractAsyncContextManager[Session]],
    config: Config,
    options: SessionOptions,
    environment: Mapping[str, str],
) -> AsyncGenerator[Session]:
    """Open the session of a child in a new worktree. A `CodexError`: there can be none, or the session cannot be opened."""
    async with worktree(config.cwd, config.home, environment, child.parent.warn) as tree:
        child.tree = tree
        async with open_child(*_moved(config, options, tree)) as session:
            yield session


def _moved(
    config: Config, options: SessionOptions, tree: Worktree
) -> tuple[Config, SessionOptions]:
    """The configuration and options for a session in a worktree. It cannot write to the tree that this was made from."""
    choices = options.choices
    assert choices is not None
    policy, root = choices.sandbox_policy, tree.root.resolve()
    if policy.mode == "workspace-write":
        reals = {each: each.resolve() for each in policy.writable_roots}
        others = (
            each
            for each, real in reals.items()
            if not real.is_relative_to(root) and not root.is_relative_to(real)
        )
        policy = replace(policy, writable_roots=(tree.cwd, *others))
    moved = replace(
        options,
        choices=replace(choices, sandbox_policy=policy),
        # Programs of the project are no more trusted from here.
        add_dirs=(*options.add_dirs, tree.root),
    )
    return replace(config, cwd=tree.cwd, project_root=tree.path), moved
