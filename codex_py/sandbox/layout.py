"""What a policy means on this machine: folders that can be written, and what in them can not."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.protected import PROTECTED_NAMES

_MAX_POINTER_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Roots:
    """Folders, absolute and without links, as they were before the first command ran.

    They are not looked up again: what the model can write, it can also replace by a link to elsewhere.
    """

    workspace: tuple[Path, ...] = ()
    temporary: tuple[Path, ...] = ()
    """Shared with other programs, which would see what is put there to keep a name from being used."""

    @property
    def all(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(sorted((*self.workspace, *self.temporary), key=_depth)))


@dataclass(frozen=True, slots=True)
class Layout:
    """How the disk looks to one command. Everything not named here is read-only."""

    writable: tuple[Path, ...]
    """Outermost first. Folders between one root and another in it are named too: what is mounted on
    can not be renamed, and so the inner root stays where its protection is looked for."""
    protected: tuple[Path, ...]
    """Stays read-only although it is in something writable. It exists."""
    temporary: tuple[Path, ...]
    """Those of `writable` that are no one's work."""
    offline: bool


def resolve_roots(policy: SandboxPolicy, tmpdir: str) -> Roots:
    """The folders of a policy. `tmpdir` is the command's `$TMPDIR`, empty where it has none."""
    if policy.mode != "workspace-write":
        return Roots()
    temporary = [] if policy.exclude_slash_tmp else [Path("/tmp")]
    if tmpdir.startswith("/") and not policy.exclude_tmpdir_env_var:
        temporary.append(Path(tmpdir))
    workspace = _real(policy.writable_roots)
    return Roots(workspace, tuple(p for p in _real(temporary) if p not in workspace))


def absent_names(roots: Roots) -> list[Path]:
    """What could come to be in the workspace under a name that stays read-only."""
    paths = (root / name for root in roots.workspace for name in PROTECTED_NAMES)
    return [path for path in paths if not os.path.lexists(path)]


def layout(roots: Roots, own: Iterable[Path], *, offline: bool) -> Layout:
    """The view of a command that starts now. `own`: paths of this program, read-only wherever they are."""
    writable = [root for root in roots.all if _is_still(root)]
    named = [root / name for root in writable for name in PROTECTED_NAMES]
    between = [
        folder
        for inner in writable
        for folder in inner.parents
        if any(folder.is_relative_to(outer) and folder != outer for outer in writable)
        and not _is_in(folder, named)
    ]
    protected = dict.fromkeys(Path(os.path.realpath(path)) for path in (*named, *own))
    for path in named:
        if path.name == ".git" and path.is_file():
            protected |= dict.fromkeys(_git_folders(path))
    return Layout(
        writable=tuple(dict.fromkeys(sorted((*writable, *between), key=_depth))),
        protected=tuple(
            path
            for path in sorted(protected, key=_depth)
            if path.exists() and path not in writable and _is_in(path, writable)
        ),
        temporary=roots.temporary,
        offline=offline,
    )


def _git_folders(pointer: Path) -> list[Path]:
    """Where the `.git` file of a worktree or a submodule leads: its own folder, and the repository's."""
    folders: list[Path] = []
    with suppress(OSError, ValueError):
        folder = _led_to(pointer, prefix="gitdir:")
        folders.append(folder)
        folders.append(_led_to(folder / "commondir"))
    return folders


def _led_to(pointer: Path, prefix: str = "") -> Path:
    with pointer.open("rb") as file:
        text = os.fsdecode(file.read(_MAX_POINTER_BYTES)).strip()
    if not text.startswith(prefix):
        raise ValueError
    return Path(os.path.realpath(pointer.parent / text.removeprefix(prefix).strip()))


def _real(paths: Iterable[Path]) -> tuple[Path, ...]:
    real = (Path(os.path.realpath(path)) for path in paths)
    return tuple(dict.fromkeys(path for path in real if path.is_dir()))


def _is_still(root: Path) -> bool:
    return os.path.realpath(root) == str(root) and root.is_dir()


def _is_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _depth(path: Path) -> int:
    return len(path.parts)
