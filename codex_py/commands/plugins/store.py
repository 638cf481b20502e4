"""Adds plugins to `$CODEX_HOME/codex-py/plugins`, from a folder or a git repository, and removes them.

A plugin is added whole or not at all, even if this program is killed. Nothing in it is run, and
nothing else is fetched at any time. git runs without hooks, without the user's settings, without
questions, and with the protocols below only; its output and its time are limited. Files are not
checked out, because that could run filters.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from codex_py.app.user_programs import user_programs
from codex_py.config.config import Config
from codex_py.config.plugin_files import (
    MAX_BYTES,
    MAX_ENTRIES,
    RECORD,
    PluginFile,
    checked_files,
    read_files,
)
from codex_py.config.plugins import PLUGIN_NAME, Plugin, plugins_folder
from codex_py.errors import CodexError
from codex_py.filesystem.private import lock, locked, make_private
from codex_py.filesystem.reading import read_start, read_whole
from codex_py.patch.git import batched_contents, find_git
from codex_py.programs import Programs
from codex_py.protocol.frozen import frozen

_LOCK_TIMEOUT_S: Final = 10.0
_UNFINISHED: Final = ".new-"
_ADDRESS: Final = re.compile(r"(?:https|ssh|file)://[^\s-]\S*|git@[\w.][\w.-]*:\S+")
_REF: Final = re.compile(r"[\w][\w./+-]*")
_TIMEOUT_S: Final = 120
_MAX_FETCHED_BYTES: Final = 100 * 1024 * 1024
_MAX_ERROR_BYTES: Final = 2000
_MAX_OUTPUT_BYTES: Final = 2 * MAX_BYTES
_LIMITED: Final = (
    "/bin/sh",
    "-c",
    # The unit of `-f` is 512 or 1024 bytes. Not every system can limit memory.
    f'ulimit -f {_MAX_FETCHED_BYTES >> 10}; ulimit -v 4000000 2>/dev/null; exec "$@"',
    "sh",
)
_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "credential.helper=",
    "fetch.fsckObjects=true",
    "gc.auto=0",
    "maintenance.auto=false",
)
_VARIABLES: Final = {
    "GIT_ALLOW_PROTOCOL": "https:ssh:file",
    "GIT_ASKPASS": "false",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
}


@frozen
class PluginSource:
    files: Mapping[str, PluginFile]
    origin: Mapping[str, str]
    """The `source`, an absolute path or an address, and for a repository also the `commit`."""


def read_source(
    source: str,
    ref: str | None,
    workspace: Path,
    config: Config,
    environment: Mapping[str, str],
) -> PluginSource:
    """Read the files of a folder or of a git repository.

    Args:
        source: the path of a folder, relative to the working directory, or an address.
        ref: a branch, a tag or a commit. None: the folder as it is, or the repository's default.
        workspace: an empty folder for git.

    Raises:
        CodexError: the source cannot be read, git fails, or the files cannot belong to a plugin.
    """
    address = source
    is_repository = bool(_ADDRESS.fullmatch(source))
    if not is_repository:
        folder = Path(os.path.realpath(config.cwd / source))
        if not folder.is_dir():
            raise _failure(
                f"{source!r} is neither a folder nor an address that begins with https://, ssh://,"
                " file:// or git@"
            )
        address = str(folder)
        # A bare repository has no files to read, and a `ref` can be read only from a repository.
        is_bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
        is_repository = is_bare or ref is not None
    try:
        if not is_repository:
            return PluginSource(read_files(Path(address)), {"source": address})
        git = _Git(workspace, user_programs(config, environment), environment)
        return _fetched(address, ref or "HEAD", git)
    except ValueError as error:
        raise _failure(f"{source} cannot be added: {error}") from error


def _fetched(
    address: str,
    ref: str,
    git: "_Git",
) -> PluginSource:
    if not _REF.fullmatch(ref):
        raise _failure(f"{ref!r} is no branch, tag or commit")
    git.run("init", "-q", "--bare", "--template=", ".")
    options = ("-q", "--depth=1", "--no-tags", "--no-recurse-submodules")
    git.run("fetch", *options, "--", address, ref)
    # The commit comes first in this file, and then a tab.
    fetched = (git.folder / "FETCH_HEAD").read_text("utf-8")
    commit, _, _ = fetched.partition("\t")
    # A checkout would make an index without a limit: a few objects can stand for billions of files.
    # The output of `ls-tree` is limited.
    listing = git.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    # One more than is allowed, so that `checked_files` refuses it.
    blobs = list(islice(_blobs(listing), MAX_ENTRIES + 1))
    if sum(blob.size for blob in blobs) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES >> 20} MB")
    wanted = "".join(f"{blob.id}\n" for blob in blobs).encode()
    contents = batched_contents(git.run("cat-file", "--batch", given=wanted))
    files = checked_files(_entries(blobs, contents))
    return PluginSource(files, {"source": address, "commit": commit})


class _Blob(NamedTuple):
    """A file in a tree of git."""

    path: str
    id: str
    size: int
    is_executable: bool


def _entries(
    blobs: Iterable[_Blob], contents: Iterable[bytes | None]
) -> Iterator[tuple[str, PluginFile | None]]:
    """Yield the files, and None for each folder on the way to one."""
    for blob, data in zip(blobs, contents, strict=True):
        for folder in PurePosixPath(blob.path).parents:
            yield str(folder), None
        yield blob.path, PluginFile(data or b"", blob.is_executable)


def _blobs(listing: bytes) -> Iterator[_Blob]:
    """Parse the output of `ls-tree -r -l -z`, leaving out submodules.

    Raises a `ValueError` for a link.
    """
    for line in listing.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, kind, id_, size = head.decode().split()
        if mode == "120000":
            raise ValueError(f"{os.fsdecode(path)!r} is a link")
        if kind == "blob":
            is_executable = mode == "100755"
            yield _Blob(os.fsdecode(path), id_, int(size), is_executable)


class _Git:
    """Runs git in a folder of its own, with limits."""

    def __init__(
        self, folder: Path, programs: Programs, environment: Mapping[str, str]
    ) -> None:
        try:
            git = find_git(programs, environment)
        except CodexError as error:
            raise _failure(
                f"{error}; without git, only folders can be added"
            ) from error
        self._argv = [*_LIMITED, git.program]
        for setting in _SETTINGS:
            self._argv += ["-c", setting]
        self.folder = folder
        # The ssh agent does not ask the user.
        agent = {"SSH_AUTH_SOCK": environment.get("SSH_AUTH_SOCK", "")}
        self._environment = {**git.variables, **agent, **_VARIABLES}

    def run(self, *words: str, given: bytes = b"") -> bytes:
        """Run git and return its output. `given`: its input. Raises a `CodexError` if it fails."""
        # Output goes to files, because their size can be limited.
        given_path = self.folder / "input"
        output_path = self.folder / "output"
        errors_path = self.folder / "errors"
        given_path.write_bytes(given)
        with (
            given_path.open("rb") as stdin,
            output_path.open("wb") as out,
            errors_path.open("wb") as err,
        ):
            process = subprocess.Popen(
                [*self._argv, *words],
                cwd=self.folder,
                env=self._environment,
                stdin=stdin,
                stdout=out,
                stderr=err,
                # Without a terminal, ssh asks for no password.
                start_new_session=True,
            )
            try:
                code = process.wait(_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                raise _failure(f"git was not done after {_TIMEOUT_S} seconds") from None
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if code:
            said, _ = read_start(errors_path, _MAX_ERROR_BYTES)
            reason = said.decode(errors="replace").strip()
            if not reason:
                reason = "it needs more than its limits allow"
            raise _failure(f"git failed: {reason}")
        try:
            return read_whole(output_path, _MAX_OUTPUT_BYTES)
        except OSError as error:
            raise _failure(
                f"what git prints cannot be used: {error.strerror}"
            ) from error


def _failure(message: str) -> CodexError:
    return CodexError(message, code="plugin")


@contextmanager
def workspace(home: Path) -> Generator[Path]:
    """Make a private folder beside the plugins, and remove it at the end.

    Folders that killed programs left behind are removed too.

    Raises:
        CodexError: the folder cannot be made, or the file system fails inside the context.
    """
    folder = plugins_folder(home)
    try:
        make_private(folder)
        with locked(folder, _LOCK_TIMEOUT_S):
            for left in folder.glob(f"{_UNFINISHED}*"):
                # A folder that is still used is kept: its program holds the lock.
                with suppress(OSError), locked(left, 0):
                    _delete(left)
            made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))
            descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            lock(descriptor, 0)
        try:
            yield made
        finally:
            _delete(made)
            os.close(descriptor)
    except OSError as error:
        raise _failure(
            f"the plugins in {folder} cannot be changed: {error.strerror}"
        ) from error


def require_new(home: Path, name: str) -> None:
    """Raise a `CodexError` if a plugin of this name exists."""
    if os.path.lexists(plugins_folder(home) / name):
        raise _failure(
            f"there is a plugin {name} already; to add another one, run"
            f" `codex-py plugin remove {name}` first"
        )


def install(
    home: Path,
    made: Path,
    plugin: Plugin,
    source: PluginSource,
) -> None:
    """Write a plugin to a `workspace`, and move it to its place.

    Args:
        made: the folder of the workspace.

    Raises:
        CodexError: a plugin of its name exists.
        OSError: the file system failed; the plugin is not in its place.
    """
    staged = made / plugin.name
    digests = {path: file.digest for path, file in source.files.items()}
    for path, file in source.files.items():
        mode = 0o500 if file.is_executable else 0o400
        _write(staged / path, file.data, mode)
    record = {**source.origin, "files": digests}
    text = json.dumps(record, indent=1, ensure_ascii=False)
    _write(staged / RECORD, text.encode(), 0o400)
    # Otherwise, programs of the plugin that write to their own folder would change it.
    for folder, _, _ in os.walk(staged, topdown=False):
        Path(folder).chmod(0o500)
    # A folder must be writable to be moved.
    staged.chmod(0o700)
    with locked(plugins_folder(home), _LOCK_TIMEOUT_S):
        require_new(home, plugin.name)
        staged.rename(plugin.root)
    plugin.root.chmod(0o500)


def remove(home: Path, name: str) -> bool:
    """Remove a plugin, even one that has changed. Returns False if it does not exist.

    Raises:
        CodexError: the plugin cannot be removed.
    """
    root = plugins_folder(home) / name
    if not PLUGIN_NAME.fullmatch(name) or not os.path.lexists(root):
        return False
    # The workspace is deleted at its end. By the move, the plugin goes at once, or not at all.
    with workspace(home) as made:
        if not root.is_symlink():
            root.chmod(0o700)
        root.rename(made / name)
    return True


def _write(
    path: Path,
    data: bytes,
    mode: int,
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def _delete(folder: Path) -> None:
    for each, _, _ in os.walk(folder):
        Path(each).chmod(0o700)
    shutil.rmtree(folder)
