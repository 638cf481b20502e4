"""A git repository of our own for the copies of one work tree: `$CODEX_HOME/codex-py/undo/HASH`.

Nothing of the user's repository is written, and none of its settings is read, so no filter, hook or
monitor runs. `info/attributes` turns off every conversion, so that the bytes on disk are copied. The
user's objects are an alternate: what is committed is not copied. If the user's repository loses
objects (`git gc`), its folder of packs changes; that empties the index, and all files are copied
anew. The journal has contents of its own, so a copy is not needed once its turn has ended.
"""

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from codex_py.errors import CodexError
from codex_py.filesystem.private import locked, make_private, written_whole
from codex_py.filesystem.reading import read_whole
from codex_py.filesystem.repository import (
    ForeignRepository,
    OwnRepository,
    check_contents,
    check_plain,
    check_rules,
    own_repository,
)
from codex_py.patch.blobs import blob_name
from codex_py.patch.git import BLOCKED, Git, batched_contents, find_git
from codex_py.programs import programs_outside

_MAX_KB: Final = 512 * 1024
"""The limit for the objects of a store. The next session empties a larger one."""
_MAX_STORES: Final = 20
_MAX_AGE_S: Final = 30 * 24 * 3600
"""The time for which an unused store is kept."""
_MAX_CHANGED_BYTES: Final = 256 * 1024 * 1024
"""The limit for the contents of the changes between two copies, old and new together."""
_LOCK_PATIENCE_S: Final = 5.0
_PATIENCE_S: Final = 20.0
"""The time that a git command may take."""
_MAX_SETTINGS_BYTES: Final = 1024 * 1024
_CONFIG: Final = """\
[core]
repositoryformatversion = 0
bare = false
looseCompression = 1
fsync = none
protectNTFS = false
protectHFS = false
precomposeUnicode = false
"""
ALONE: Final = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ""}
"""Variables that hide the objects of the user's repository, which trees do not need."""
_ATTRIBUTES: Final = "* -text -eol -filter -ident -working-tree-encoding\n"


class SnapshotError(CodexError):
    """A work tree cannot be copied. The message is a clause without a full stop."""

    def __init__(self, reason: str, *, is_too_large: bool = False) -> None:
        super().__init__(reason, code="undo")
        self.is_too_large = is_too_large


class CopyStore:
    """The repository with the copies of one work tree.

    Creating this writes nothing. Its methods block, and raise a `SnapshotError` if they fail.

    Args:
        home: `$CODEX_HOME`, absolute.
        root: the top of the work tree, absolute, without links.
        dot_git: the `.git` of the repository; None for a folder outside of any repository.
    """

    def __init__(
        self,
        home: Path,
        root: Path,
        dot_git: Path | None,
        environment: Mapping[str, str],
    ) -> None:
        self.path = store_path(home, root)
        """The folder of the repository. It is complete once it has a HEAD."""
        self._home = home
        self.root = root
        self._dot_git = dot_git
        self._environment = environment
        self._git: Git | None = None

    @contextmanager
    def locked(self) -> Generator[None]:
        """Keep other processes from copying this work tree. An error inside empties the store."""
        try:
            make_private(self.path)
            with locked(self.path / "lock", _LOCK_PATIENCE_S, is_file=True):
                try:
                    yield
                except SnapshotError as error:
                    if not error.is_too_large:
                        self.empty()
                    raise
        except OSError as error:
            raise SnapshotError(f"{self.path} cannot be written ({error})") from error

    @property
    def is_no_project(self) -> bool:
        """True for a folder such as the user's home, of which no copies are made."""
        return self._dot_git is None and _is_too_general(self.root, self._environment)

    def open(self) -> None:
        """Make or update the store, if that is not done yet. The caller holds the lock."""
        if self._git is not None:
            return
        self._check_plain()
        if self.is_no_project:
            raise SnapshotError(f"{self.root} is no project", is_too_large=True)
        programs = programs_outside(self._home, self._environment, self.root)
        try:
            git = find_git(programs, self._environment)
        except CodexError as error:
            raise SnapshotError(str(error)) from error
        variables = {
            "GIT_DIR": str(self.path),
            "HOME": str(self.path),
            "XDG_CONFIG_HOME": str(self.path),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_WORK_TREE": str(self.root),
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": self._set_up(),
        }
        self._git = replace(git, variables={**git.variables, **variables})
        printed = self.run("count-objects", "-v", variables=ALONE)
        size = re.search(rb"^size: (\d{1,18})$", printed, re.MULTILINE)
        if size is None:
            raise SnapshotError(f"{git.program} does not answer as git does")
        is_too_large = int(size[1]) > _MAX_KB
        # A running turn needs its copies.
        if is_too_large and not any(self.path.glob("*.turn")):
            for path in (self.path / "objects").iterdir():
                shutil.rmtree(path)
            self.empty()

    def _check_plain(self) -> None:
        """Raise a `SnapshotError` if git would block on a file, such as a pipe, of the work tree or
        its repository."""
        index: Path | None = None
        with suppress(OSError, ValueError):
            index = self._repository().folder / "index"
        try:
            check_rules(self.root)
            if index is not None:
                check_plain(index)
        except ForeignRepository as error:
            raise SnapshotError(str(error), is_too_large=True) from error

    def run(
        self,
        *words: str,
        stdin: bytes = b"",
        timeout_s: float = _PATIENCE_S,
        inner: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run a git command in the work tree, and return its output.

        Paths are literal, never patterns.

        Args:
            inner: a folder with a repository of its own. It becomes the work tree, with an empty index.
            variables: further environment variables.
        """
        if self._git is None:
            with self.locked():
                self.open()
        assert self._git is not None
        root = self.root / inner
        variables = {**self._git.variables, **(variables or {})}
        if inner:
            variables |= {
                "GIT_WORK_TREE": str(root),
                "GIT_INDEX_FILE": str(self.path / "none"),
            }
        git = replace(self._git, variables=variables)
        try:
            done = git.run(root, *words, stdin=stdin, timeout_s=timeout_s)
        except CodexError as error:
            raise self._failure(error) from error
        if done.returncode:
            printed = done.stderr.decode(errors="replace").strip()
            reason, _, _ = printed.partition("\n")
            raise SnapshotError(f"git cannot copy {self.root}: {reason}")
        return done.stdout

    def _failure(self, error: CodexError) -> SnapshotError:
        """The error for a git command that could not run to its end."""
        if error.code == BLOCKED:
            return SnapshotError(str(error), is_too_large=True)
        if isinstance(error.__cause__, subprocess.TimeoutExpired):
            return SnapshotError(f"{self.root} has too many files", is_too_large=True)
        return SnapshotError(str(error))

    def names(self, *words: str, **options: Any) -> list[str]:
        """Run a command with `-z`, and return the names that it prints. `options`: as for `run`."""
        printed = os.fsdecode(self.run(*words, **options))
        return [name for name in printed.split("\0") if name]

    def ignored(self, names: Sequence[str]) -> set[str]:
        """Return those of the paths that the user's repository ignores; none if git cannot tell.

        Args:
            names: relative to the root; a folder may end in a slash. The result has no slashes at
                ends.
        """
        with suppress(SnapshotError, OSError, ValueError):
            # git needs the index to know tracked files, which are not ignored.
            if self._dot_git:
                index = self._repository().folder / "index"
            else:
                index = self.path / "none"
            return self._check_ignore(names, {"GIT_INDEX_FILE": str(index)})
        return set()

    def _check_ignore(
        self,
        names: Sequence[str],
        variables: Mapping[str, str],
        *options: str,
    ) -> set[str]:
        """Ask git which of the paths are ignored. The results have no slashes at their ends."""
        # With a slash at its end, a folder would be ignored by a `.gitignore` of its own. `./` keeps
        # a name from being a pattern.
        asked = [f"./{name.rstrip('/')}" for name in names]
        stdin = b"".join(os.fsencode(name) + b"\0" for name in asked)
        words = (*options, "check-ignore", "-z", "--stdin")
        variables = {**variables, "GIT_LITERAL_PATHSPECS": "0"}
        found = self.names(*words, stdin=stdin, variables=variables)
        return {name.removeprefix("./") for name in found}

    def ignored_by(self, tree: str, folders: Sequence[str]) -> set[str]:
        """Return those of the folders that the `.gitignore` files of a tree ignore; none if git cannot tell.

        Args:
            folders: relative to the root, each with a slash at its end, as in the result.
        """
        with (
            suppress(SnapshotError, OSError),
            TemporaryDirectory(dir=self.path) as rules,
        ):
            for name, blob in self._rules_of(tree).items():
                path = Path(rules) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(blob)
            for name in folders:
                # The folders must exist: a rule may apply to folders alone.
                (Path(rules) / name).mkdir(parents=True, exist_ok=True)
            variables = {
                "GIT_WORK_TREE": rules,
                "GIT_INDEX_FILE": str(self.path / "none"),
            }
            found = self._check_ignore(folders, variables, "-C", rules)
            return {f"{name}/" for name in found}
        return set()

    def _rules_of(self, tree: str) -> dict[str, bytes]:
        """The contents of the `.gitignore` files of a tree by their names."""
        words = ("ls-tree", "-r", "-z", "--full-tree", tree)
        found: dict[str, str] = {}
        for line in self.names(*words, variables=ALONE):
            facts, _, name = line.partition("\t")
            _, _, last_name = name.rpartition("/")
            if last_name == ".gitignore":
                _mode, _kind, found[name] = facts.split()
        blobs = self.blobs({*found.values()})
        return {name: blobs[blob] for name, blob in found.items() if blob in blobs}

    def blobs(self, ids: set[str]) -> dict[str, bytes]:
        """Read contents by object id, without those that are missing, damaged, or over the limit for
        all together."""
        if not ids:
            return {}
        stdin = "".join(f"{name}\n" for name in sorted(ids)).encode()
        checked = self.run("cat-file", "--batch-check", stdin=stdin).decode()
        room = _MAX_CHANGED_BYTES
        readable = list[str]()
        for line in checked.splitlines():
            # A missing object has no size.
            name, kind, *sizes = line.split()
            if kind != "blob":
                continue
            size = int(sizes[0])
            if size <= room:
                room -= size
                readable.append(name)
        stdin = "".join(f"{name}\n" for name in readable).encode()
        found = batched_contents(self.run("cat-file", "--batch", stdin=stdin))
        # The user's repository may hold other contents under an id.
        return {
            name: data
            for name, data in zip(readable, found, strict=True)
            if data is not None and blob_name(data, len(name)) == name
        }

    def empty(self) -> None:
        """Make the next copy look at every file. Half-written objects are removed too: they would
        keep a full disk full."""
        # A git that was killed leaves `index.lock` behind.
        for name in ("index", "state", "index.lock"):
            (self.path / name).unlink(missing_ok=True)
        for path in self.path.glob("objects/*/tmp_obj_*"):
            path.unlink(missing_ok=True)

    def _set_up(self) -> str:
        """Write the files of the store that are missing or have changed.

        Returns:
            The folder of the user's objects; empty if they cannot be used.
        """
        path = self.path
        (path / "index.lock").unlink(missing_ok=True)
        if not (path / "HEAD").exists():
            _prune(path.parent, but=path)
        for name in ("info", "refs", "objects"):
            (path / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        objects, packs, excluded = self._of_user()
        wanted = {
            "config": _CONFIG.encode(),
            "info/attributes": _ATTRIBUTES.encode(),
            "info/exclude": excluded,
            "packs": packs,
            "HEAD": b"ref: refs/heads/none\n",
        }
        for name, data in wanted.items():
            file = path / name
            if _contents(file, len(data)) != data:
                if name == "packs":
                    # Objects that the index counts on may be gone.
                    self.empty()
                with written_whole(file) as stream:
                    stream.write(data)
        # The time of the folder is that of the last use; see `_prune`.
        os.utime(path)
        return objects

    def _repository(self) -> OwnRepository:
        """Find the user's repository.

        Raises:
            OSError, ValueError: it is missing, or not the work tree's own.
        """
        if self._dot_git is None:
            raise ValueError("there is no repository")
        return own_repository(self._dot_git.parent)

    def _of_user(self) -> tuple[str, bytes, bytes]:
        """Read three things from the user's repository: its folder of objects, a mark that changes
        if objects may be gone, and `info/exclude`."""
        excluded = b""
        try:
            repository = self._repository()
            folder = repository.common
            with suppress(OSError):
                excluded = read_whole(
                    folder / "info" / "exclude", _MAX_SETTINGS_BYTES, root=folder
                )
            check_contents(repository)
            settings = read_whole(folder / "config", _MAX_SETTINGS_BYTES).lower()
            objects = Path(os.path.realpath(folder / "objects"))
            loose = objects.stat()
            packed = (objects / "pack").stat()
        except (OSError, ValueError):
            return "", b"", excluded
        # git would misread such a path in the variable of alternates.
        is_misread = ":" in str(objects) or str(objects).startswith('"')
        # SHA-256 objects have other ids.
        has_other_ids = b"objectformat" in settings
        if is_misread or has_other_ids:
            return "", b"", excluded
        mark = [loose.st_ino, packed.st_ino, packed.st_mtime_ns]
        return str(objects), str(mark).encode(), excluded


def stores(home: Path) -> Path:
    """Return the folder of all stores."""
    return home / "codex-py" / "undo"


def store_path(home: Path, root: Path) -> Path:
    """Return the folder of the store for a work tree. `root`: absolute, without links."""
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()
    return stores(home) / digest[:24]


def _contents(path: Path, max_bytes: int) -> bytes | None:
    """The contents of a file; None if there is no regular file, or it is larger than `max_bytes`."""
    try:
        return read_whole(path, max_bytes)
    except OSError:
        return None


def _prune(folder: Path, *, but: Path) -> None:
    """Remove stores that were not used for 30 days, and, if there are too many, those that were not
    used for the longest time. Stores of running turns stay."""
    with suppress(OSError):
        others = [path for path in folder.iterdir() if path != but]
        by_use = sorted((path.stat().st_mtime, path) for path in others)
        oldest = time.time() - _MAX_AGE_S
        for rank, (used, path) in enumerate(reversed(by_use), 1):
            is_unneeded = rank >= _MAX_STORES or used < oldest
            if is_unneeded and not any(path.glob("*.turn")):
                shutil.rmtree(path, ignore_errors=True)


def _is_too_general(root: Path, environment: Mapping[str, str]) -> bool:
    """True for folders that hold more than one project: the user's home, the folders for temporary
    files, and all folders above these."""
    named = (
        environment.get("HOME") or "/",
        environment.get("TMPDIR") or "/",
        "/tmp",
        "/var/tmp",
    )
    real = [Path(os.path.realpath(name)) for name in named]
    return any(path.is_relative_to(root) for path in real)
