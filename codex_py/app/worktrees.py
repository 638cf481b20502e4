"""Git worktrees of our own, `$CODEX_HOME/worktrees/<4 hex>/<repository>` as Codex has them.

git is started as `patch.git` says: nothing that the repository names runs. So files of Git LFS stay pointers.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from codex_py.config.paths import project_root
from codex_py.errors import CodexError
from codex_py.filesystem.own import make_private
from codex_py.patch.diff.work_tree import work_tree_diff
from codex_py.patch.git import Git, find_git
from codex_py.protocol.frozen import frozen


@frozen
class Worktree:
    path: Path
    """Its top, absolute."""
    cwd: Path
    """The folder that corresponds to the working directory; the top if the commit does not have it."""
    root: Path
    """The top of the tree that it was made from."""
    commit: str
    git: Git
    """Works on this tree, whatever its `.git` says by now."""

    def is_unchanged(self) -> bool:
        """True if it has nothing but the files of its commit, and ignored ones. Runs git for some 10 ms."""
        if not self.path.is_dir():
            return True
        try:
            return _output(self.git, self.path, "rev-parse", "HEAD") == self.commit and not (
                work_tree_diff(self.git, self.path)
            )
        except CodexError:
            # More differs than can be compared.
            return False

    def remark(self) -> str:
        """What to add to the answer of who works in it: where the changes are. Empty if there are none."""
        if self.is_unchanged():
            return ""
        return f"\n\n(The changes are in {self.path}, a git worktree, and not in {self.root}.)"

    def remove(self) -> None:
        """Remove it with all that is in it. A `CodexError`: git could not."""
        own = {"GIT_DIR", "GIT_WORK_TREE"}
        variables = {name: v for name, v in self.git.variables.items() if name not in own}
        git = replace(self.git, variables=variables)
        _output(git, self.root, "worktree", "remove", "--force", str(self.path))
        self.path.parent.rmdir()


@asynccontextmanager
async def worktree(
    cwd: Path, home: Path, environment: Mapping[str, str], warn: Callable[[str], None]
) -> AsyncGenerator[Worktree]:
    """Check out the commit of the repository around `cwd`, with HEAD detached; changed files stay behind.

    Leaving the context removes the worktree unless it has changed, also after a cancellation.

    Args:
        home: `$CODEX_HOME`.
        warn: tells the user what is left.

    Raises:
        CodexError: there is no repository or no commit, or git is not installed or fails.
    """
    adding = asyncio.ensure_future(asyncio.to_thread(_add, cwd, home, environment))
    try:
        yield await asyncio.shield(adding)
    finally:
        await asyncio.shield(asyncio.ensure_future(_leave(adding, warn)))


async def _leave(adding: Awaitable[Worktree], warn: Callable[[str], None]) -> None:
    try:
        tree = await adding
    except CodexError:
        return
    try:
        if await asyncio.to_thread(tree.is_unchanged):
            await asyncio.to_thread(tree.remove)
        else:
            warn(f"There are changes in {tree.path}, a git worktree, which is kept.")
    except (CodexError, OSError) as error:
        warn(f"The git worktree {tree.path} could not be removed: {error}")


def _add(cwd: Path, home: Path, environment: Mapping[str, str]) -> Worktree:
    root = project_root(cwd, (".git",))
    if root is None:
        raise CodexError(f"a worktree needs a git repository, and {cwd} is in none", code="git")
    if (git := find_git(root, environment)) is None:
        raise CodexError("a worktree needs git, which is not installed", code="git")
    commit = _output(git, root, "rev-parse", "--verify", "HEAD")
    try:
        path = _new_folder(home / "worktrees") / (root.name or "root")
    except OSError as error:
        raise CodexError(f"{home} has no place for a worktree: {error.strerror}") from error
    _output(git, root, "worktree", "add", "--detach", "--no-checkout", str(path), commit)
    folder = _output(git, path, "rev-parse", "--absolute-git-dir")
    own = {"GIT_DIR": folder, "GIT_WORK_TREE": str(path)}
    git = replace(git, variables={**git.variables, **own})
    tree = Worktree(path, path, root, commit, git)
    try:
        _output(git.without_filters(path), path, "reset", "--hard", "--quiet")
    except CodexError:
        tree.remove()
        raise
    inner = path / cwd.relative_to(root)
    return replace(tree, cwd=inner) if inner.is_dir() else tree


def _new_folder(parent: Path) -> Path:
    make_private(parent)
    while True:
        folder = parent / secrets.token_hex(2)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder


def _output(git: Git, folder: Path, *words: str) -> str:
    done = git.run(folder, *words)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise CodexError(f"git {words[0]} failed in {folder}: {reason}", code="git")
    return os.fsdecode(done.stdout).strip()
