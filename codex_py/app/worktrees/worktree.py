"""Git worktrees in `$CODEX_HOME/worktrees/<4 hex or a name>/<repository>`, as Codex has them.

git is started as in `patch.git`, so no program runs that the repository names. Therefore files of
Git LFS stay pointers.
"""

import asyncio
import secrets
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from codex_py.app.worktrees.changes import carry_over, ignored_files, unsaved_work
from codex_py.config.config import Config
from codex_py.config.paths import project_root, worktrees_folder
from codex_py.errors import CodexError, cause
from codex_py.filesystem.git import main_work_tree, named_path
from codex_py.filesystem.private import locked, make_private
from codex_py.patch.git import Git, for_tree, repository_git
from codex_py.patch.trees import aside, diff_between, work_tree
from codex_py.patch.undo.copies.store import store_path
from codex_py.programs import programs_outside, record_project
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.file_rules import NO_RULES, FileRules
from codex_py.protocol.frozen import frozen
from codex_py.streams.terminal import some_of

_LOCK_WAIT_S = 5.0


@frozen
class Worktree:
    """A git worktree in a folder of ours."""

    path: Path
    """The absolute path of its top."""
    cwd: Path
    """The folder that corresponds to the working directory; the top if the commit has no such
    folder."""
    root: Path
    """The top of the tree that the worktree was made from."""
    commit: str
    """The id of the commit without unsaved work. It is empty if no branch or tag contains HEAD, so
    that the worktree counts as changed."""
    git: Git
    """Works on this tree, even if its `.git` was changed."""
    home: Path
    """`$CODEX_HOME`."""
    carried: tuple[str, ...] = ()
    """The result of `carry_over`; empty if no changes of the original were carried over."""

    def unsaved(self) -> str:
        """Name work of the worktree that exists nowhere else, such as "changes"; empty without any.

        It runs git for some 10 ms.
        """
        if not self.path.is_dir():
            return ""
        try:
            if self.git.output(self.path, "rev-parse", "HEAD") != self.commit:
                return "changes"
            return unsaved_work(self.git, self.path, self.carried)
        except (CodexError, OSError):
            return "contents that cannot be compared"

    def diff(self) -> bytes:
        """Return the changes since the commit, for `git apply`: of any size, with binary files.

        Raises:
            CodexError: git fails.
        """
        with aside(self.git.without_filters(self.path)) as git:
            now = work_tree(git, self.path)
            return diff_between(git, self.path, self.commit, now)

    def remark(self) -> str:
        """Return a sentence for a subagent's answer that says where its changes are.

        Empty without changes.
        """
        if not self.unsaved():
            return ""
        return f"\n\n(The changes are in {self.path}, a git worktree, and not in {self.root}.)"

    def remove(self, *, force: bool = False) -> list[str]:
        """Remove the worktree, with `force` even if it has unsaved work.

        Returns the `ignored_files` that were removed with it.

        Raises:
            CodexError: it has unsaved work and stays as it is, or git fails.
            OSError: a file cannot be removed.
        """
        ignored: list[str] = []
        if self.path.is_dir():
            ignored = self._remove_files(force=force)
        # The path under which git knows the worktree.
        entry = Path(self.git.variables["GIT_DIR"], "gitdir")
        registered = named_path(entry).parent
        _unregister(self.git, self.root, registered)
        store = store_path(self.home, self.path.resolve())
        shutil.rmtree(store, ignore_errors=True)
        self.path.parent.rmdir()
        return ignored

    def _remove_files(self, *, force: bool) -> list[str]:
        """Remove the files of the worktree. See `remove`."""
        # A program that still writes to the worktree does not find it any more.
        aside = self.path.with_name(".removed")
        variables = {**self.git.variables, "GIT_WORK_TREE": str(aside)}
        git = replace(self.git, variables=variables, is_shielded=True)
        self.path.rename(aside)
        unsaved = ""
        if not force:
            unsaved = replace(self, path=aside, git=git).unsaved()
        if unsaved:
            aside.rename(self.path)
            raise CodexError(f"it has {unsaved}", code="worktree")
        ignored = ignored_files(git, aside)
        try:
            shutil.rmtree(aside)
        except RecursionError as error:
            raise CodexError(
                f"the folders in {aside} are too deep", code="worktree"
            ) from error
        return ignored

    def confined(
        self, policy: SandboxPolicy, environment: Mapping[str, str]
    ) -> SandboxPolicy:
        """Change the policy of the original tree for the worktree.

        The worktree becomes writable, and the original read-only.
        """
        root = self.root.resolve()
        policy = replace(policy, files=policy.files.copied(root, self.path))
        if policy.mode != "workspace-write":
            return policy

        def is_around(folder: Path) -> bool:
            """True if the folder is the root of the original tree or above it."""
            return root.is_relative_to(folder.resolve())

        writable = [self.cwd]
        for folder in policy.writable_roots:
            is_within = folder.resolve().is_relative_to(root)
            if is_within or is_around(folder):
                # It would make the original writable.
                continue
            writable.append(folder)
        slash_tmp = Path("/tmp")
        tmpdir = Path(environment.get("TMPDIR") or slash_tmp)
        return replace(
            policy,
            writable_roots=tuple(writable),
            exclude_slash_tmp=policy.exclude_slash_tmp or is_around(slash_tmp),
            exclude_tmpdir_env_var=policy.exclude_tmpdir_env_var or is_around(tmpdir),
        )

    def config(
        self,
        config: Config,
        environment: Mapping[str, str],
    ) -> Config:
        """Return the configuration of a session in the worktree.

        Settings and trust stay those of the original.
        """
        policy = self.confined(config.sandbox_workspace_write, environment)
        files = config.files.copied(self.root.resolve(), self.path)
        return replace(
            config,
            cwd=self.cwd,
            project_root=self.path,
            sandbox_workspace_write=policy,
            files=files,
        )


@asynccontextmanager
async def open_worktree(
    make: Callable[[], Worktree],
    warn: Callable[[str], None],
    *,
    force: bool = False,
) -> AsyncGenerator[Worktree]:
    """Make a worktree in a thread, for instance with `new_worktree`.

    Leaving the context removes the worktree unless it has changed, also after a cancellation.

    Args:
        warn: tells the user about the remaining files.
        force: remove it even if it has changed.

    Raises:
        CodexError: the error of `make`.
    """
    adding = asyncio.ensure_future(asyncio.to_thread(make))
    try:
        tree = await asyncio.shield(adding)
        with working_in(tree):
            yield tree
    finally:
        leaving = asyncio.ensure_future(_leave(adding, warn, force=force))
        await asyncio.shield(leaving)


@contextmanager
def working_in(tree: Worktree) -> Generator[None]:
    """Keep others from removing the worktree while the context lasts."""
    with _lock_if_possible(tree.path.parent, shared=True):
        yield


def run_worktree(
    git: Git,
    root: Path,
    *words: str,
) -> str:
    """Run `git worktree`, and return its output. Raises a `CodexError` if git fails.

    Only one runs at a time: it reads the entries of all worktrees, and fails if another one is just
    being written.
    """
    git = replace(git, is_shielded=True)
    with _lock_if_possible(git.own_repository.common):
        return git.output(root, "worktree", *words)


@contextmanager
def _lock_if_possible(
    folder: Path,
    *,
    shared: bool = False,
) -> Generator[None]:
    """Hold the lock of a folder, if it can be had within a few seconds."""
    with ExitStack() as stack:
        # Working without the lock is better than not working.
        with suppress(OSError):
            stack.enter_context(locked(folder, _LOCK_WAIT_S, shared=shared))
        yield


async def _leave(
    adding: Awaitable[Worktree],
    warn: Callable[[str], None],
    *,
    force: bool,
) -> None:
    """Remove a worktree when its context is left. See `open_worktree`."""
    try:
        tree = await adding
    except CodexError:
        return
    try:
        if force:
            await asyncio.to_thread(tree.remove, force=True)
            return
        found = await asyncio.to_thread(tree.unsaved)
        if found:
            warn(f"The git worktree {tree.path} has {found} and is kept.")
            return
        # Without this lock, somebody else works in the worktree, and it is kept.
        with locked(tree.path.parent, 0):
            ignored = await asyncio.to_thread(tree.remove)
        if ignored:
            warn(
                f"The git worktree {tree.path} was removed, and with it ignored files:"
                f" {some_of(ignored)}"
            )
    except (CodexError, OSError) as error:
        warn(f"The git worktree {tree.path} could not be removed: {cause(error)}")


def new_worktree(
    cwd: Path,
    home: Path,
    environment: Mapping[str, str],
    *,
    name: str = "",
    base: str = "HEAD",
    parent: Path | None = None,
    with_changes: bool = False,
    rules: FileRules = NO_RULES,
) -> Worktree:
    """Check out a commit of the repository around `cwd`, with HEAD detached.

    Args:
        home: `$CODEX_HOME`.
        name: the name of the worktree's folder; empty: four digits.
        base: the commit, in any form that git knows.
        parent: the parent of that folder; None for the usual one in `home`.
        with_changes: carry uncommitted changes over, see `carry_over`; otherwise they stay behind.
        rules: the files that these rules deny are not carried over.

    Raises:
        CodexError: there is no repository or no commit, git is not installed or fails, the disk is
            full, or the name is taken. Nothing is left behind.
    """
    root = project_root(cwd, (".git",))
    if root is None:
        raise CodexError(
            f"a worktree needs a git repository, and {cwd} is in none", code="git"
        )
    record_project(home, environment, root)
    git = require_git(home, environment, root)
    commit = _commit(git, root, base)
    parent = parent or worktrees_folder(home)
    try:
        folder = _new_folder(parent, name)
    except OSError as error:
        raise CodexError(
            f"{parent} has no place for a worktree: {error.strerror}"
        ) from error
    path = folder / (root.name or "root")
    try:
        run_worktree(git, root, "add", "--detach", "--no-checkout", str(path), commit)
        tree = Worktree(path, path, root, commit, for_tree(git, path), home)
        tree.git.without_filters(path).output(path, "reset", "--hard", "--quiet")
        if with_changes:
            carried = carry_over(git, root, tree.git, path, rules)
            tree = replace(tree, carried=carried)
    except CodexError:
        _discard(git, root, path)
        raise
    except OSError as error:
        _discard(git, root, path)
        raise CodexError(
            f"the worktree {path} cannot be made: {error.strerror}"
        ) from error
    inner = path / cwd.relative_to(root)
    if inner.is_dir():
        return replace(tree, cwd=inner)
    return tree


def _discard(git: Git, root: Path, path: Path) -> None:
    """Remove a worktree that could not be made, with its folder."""
    shutil.rmtree(path.parent, ignore_errors=True)
    with suppress(CodexError):
        _unregister(git, root, path)


def _commit(git: Git, root: Path, base: str) -> str:
    """The id of a commit. Raises a `CodexError` if there is no such commit."""
    verify = ("rev-parse", "--verify", "-q", "--end-of-options", f"{base}^{{commit}}")
    # The exit code 1 means that there is no such commit. For any other failure, `output` raises.
    if git.run(root, *verify).returncode != 1:
        return git.output(root, *verify)
    why = "has none" if base == "HEAD" else f"does not have {base!r}"
    raise CodexError(f"a worktree needs a commit, and {root} {why}", code="git")


async def worktree_around(
    folder: Path, home: Path, environment: Mapping[str, str]
) -> Worktree | None:
    """Find the worktree around a folder in a thread; see `find_worktree`."""
    return await asyncio.to_thread(find_worktree, folder, home, environment)


def find_worktree(
    folder: Path, home: Path, environment: Mapping[str, str]
) -> Worktree | None:
    """Return the worktree around a folder; None without one, or if its repository does not know it.

    Raises:
        CodexError: git is not installed, or fails.
    """
    worktrees = worktrees_folder(home)
    parts = folder.relative_to(worktrees).parts
    if len(parts) < 2:
        return None
    path = worktrees.joinpath(*parts[:2])
    root = main_work_tree(path)
    if root is None:
        return None
    git = require_git(home, environment, path)
    commit = git.output(path, "rev-parse", "--verify", "HEAD")
    kept = git.output(path, "for-each-ref", "--count=1", "--contains", commit)
    return Worktree(path, folder, root, commit if kept else "", git, home)


def require_git(
    home: Path,
    environment: Mapping[str, str],
    top: Path,
) -> Git:
    """Return the git for a work tree. Raises the errors of `repository_git`."""
    return repository_git(programs_outside(home, environment, top), environment, top)


def _unregister(
    git: Git,
    root: Path,
    path: Path,
) -> None:
    """Have git forget a worktree. Raises a `CodexError` if git fails."""
    # Twice `--force`: the worktree is locked if a kill interrupted its creation.
    run_worktree(for_tree(git, root), root, "remove", "--force", "--force", str(path))


def _new_folder(parent: Path, name: str) -> Path:
    """Make the folder of a new worktree.

    Raises:
        CodexError: the name is taken.
        OSError: the folder cannot be made.
    """
    make_private(parent)
    while True:
        folder = parent / (name or secrets.token_hex(2))
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            if not name:
                # Four digits are soon taken: try others.
                continue
            raise CodexError(
                f"there is a worktree {name!r} already: go on with its session, or remove it with"
                f" `codex-py worktree remove {name}`"
            ) from None
        return folder
