"""`codex-py worktree list` and `remove`: sessions' git worktrees in `$CODEX_HOME/worktrees`."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from codex_py.app.worktrees.snapshot import sweep
from codex_py.app.worktrees.worktree import Worktree, find_worktree
from codex_py.command_line.subcommand import command_config, command_parser, required
from codex_py.config.paths import project_root, worktrees_folder
from codex_py.errors import CodexError
from codex_py.filesystem.private import locked
from codex_py.patch.git import find_git
from codex_py.programs import programs_outside
from codex_py.protocol.frozen import frozen
from codex_py.rollout.index import metas_with
from codex_py.rollout.writer import ThreadLock
from codex_py.streams.standard import print_json, print_out, print_table
from codex_py.streams.terminal import on_one_line, some_of


@frozen
class _Kept:
    """A worktree in `$CODEX_HOME/worktrees`."""

    name: str
    """The name of the folder in `worktrees`."""
    path: Path
    sessions: tuple[str, ...]
    """The ids of the sessions that ran in the worktree, the newest first."""
    tree: Worktree | None = None
    """None if the worktree is broken: its repository does not know it, for instance because its
    creation was killed."""
    commit: str = ""
    """The commit that is checked out; empty if the worktree is broken."""
    unsaved: str = ""
    """The work that exists nowhere else, see `Worktree.unsaved`."""

    @property
    def state(self) -> Literal["clean", "changed", "broken"]:
        if self.tree is None:
            return "broken"
        if self.unsaved:
            return "changed"
        return "clean"


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the worktrees of sessions. Returns the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    config = command_config(options, environment, warns=False)
    home = config.home
    root = project_root(config.cwd, (".git",))
    if root is not None:
        sweep(root, home, environment)
    found = _kept_worktrees(home, environment)
    if options.json:
        return print_json([_data(each) for each in found], indent=2)
    if not found:
        return print_out(
            "There are no worktrees. `--worktree` makes one for a session.\n"
        )
    rows = [("NAME", "STATE", "COMMIT", "SESSION", "PATH")]
    for each in found:
        commit = each.commit[:9] or "-"
        newest = each.sessions[0] if each.sessions else "-"
        path = str(each.path)
        rows.append((each.name, each.state, commit, newest, path))
    return print_table(rows)


def run_remove(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Remove a worktree. Returns the exit code."""
    options = command_parser("worktree", "--force").parse_args(list(argv))
    wanted = required(
        options.worktree, "worktree: codex-py worktree remove PATH, NAME or SESSION"
    )
    home = command_config(options, environment, warns=False).home
    path = Path(wanted).resolve()
    for each in _kept_worktrees(home, environment):
        is_named = wanted in {each.name, *each.sessions}
        if is_named or path == each.path:
            return _print_removed(home, each, force=options.force)
    raise CodexError(f"there is no worktree {wanted!r}; see `codex-py worktree list`")


def _print_removed(
    home: Path,
    kept: _Kept,
    *,
    force: bool,
) -> int:
    """Remove a worktree and say so; see `_remove`. Returns the exit code."""
    ignored = _remove(home, kept, force=force)
    text = f"Removed the worktree {on_one_line(str(kept.path))}.\n"
    if ignored:
        names = on_one_line(some_of(ignored))
        text += f"With it, ignored files were removed: {names}\n"
    return print_out(text)


def _kept_worktrees(home: Path, environment: Mapping[str, str]) -> list[_Kept]:
    """The worktrees of sessions, sorted by name. Raises a `CodexError` if git is not installed."""
    # The ids of the sessions in a folder and in those below it.
    sessions: dict[Path, list[str]] = {}
    for meta in metas_with(home, b"worktrees/"):
        cwd = Path(meta.cwd)
        for folder in (cwd, *cwd.parents):
            sessions.setdefault(folder, []).append(meta.id)
    parent = worktrees_folder(home)
    # Fail once here rather than for each worktree.
    find_git(programs_outside(home, environment, parent), environment)
    found: list[_Kept] = []
    for name, path in _folders(parent):
        ids = tuple(dict.fromkeys(sessions.get(path, ())))
        kept = _Kept(name, path, ids)
        # The error of git for a broken worktree does not help the user.
        with suppress(CodexError):
            tree = find_worktree(path, home, environment)
            if tree is not None:
                commit = tree.git.output(path, "rev-parse", "HEAD")
                kept = _Kept(name, path, ids, tree, commit, tree.unsaved())
        found.append(kept)
    return found


def _remove(
    home: Path,
    kept: _Kept,
    *,
    force: bool,
) -> list[str]:
    """Remove a worktree. Returns the `ignored_files` that went with it.

    Args:
        force: remove it even if it has changes or is broken.

    Raises:
        CodexError: a session is using the worktree, it has changes, or it cannot be removed.
    """
    if not force and kept.state != "clean":
        text = f"the worktree {kept.path} "
        if kept.unsaved:
            text += f"has {kept.unsaved}"
        else:
            text += "is broken: nobody can tell what is in it"
        raise CodexError(f"{text}; --force removes it", code="worktree")
    folder = worktrees_folder(home) / kept.name
    try:
        for thread_id in kept.sessions:
            ThreadLock(home, thread_id).release()
        with locked(folder, 0):
            if kept.tree is not None:
                return kept.tree.remove(force=force)
            shutil.rmtree(folder)
            return []
    except TimeoutError as error:
        raise CodexError(f"a session is at work in the worktree {kept.path}") from error
    except OSError as error:
        raise CodexError(f"{kept.path} cannot be removed: {error.strerror}") from error


def _folders(parent: Path) -> Iterator[tuple[str, Path]]:
    """Find the names and paths of worktrees: each is the only folder in a folder of its name.

    If the creation of a worktree was killed early, its path is a folder without a tree.
    """
    if not parent.is_dir():
        return
    for folder in sorted(parent.iterdir()):
        if folder.is_dir() and not folder.is_symlink():
            trees = [each for each in folder.iterdir() if each.is_dir()]
            yield folder.name, trees[0] if trees else folder


def _data(kept: _Kept) -> dict[str, object]:
    repository = None
    if kept.tree is not None:
        repository = str(kept.tree.root)
    return {
        "name": kept.name,
        "path": str(kept.path),
        "repository": repository,
        "commit": kept.commit or None,
        "state": kept.state,
        "unsaved": kept.unsaved or None,
        "sessions": kept.sessions,
    }
