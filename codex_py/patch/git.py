"""Starts git such that it runs nothing that a repository names, and reads nothing that lies
elsewhere.

A repository is data here: its configuration and its hooks do not decide what runs. Text conversions
cannot be turned off one by one, so only commands that use none are run. Commands that look at files
of the work tree need a git `without_filters`: git reads a file again, through its filter, if it may
have changed since it was checked out.

Nor does it decide where its files are: `repository_git` names the work tree and the repository, so
`core.worktree` and `core.bare` have no effect, and `filesystem.repository` says which repository
that may be. Files that the configuration includes are still read as settings by git; nothing of
what they say is shown, and the settings here win over them.
https://git-scm.com/docs/git-config
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.filesystem.reading import read_whole
from codex_py.filesystem.repository import (
    ForeignRepository,
    OwnRepository,
    check_contents,
    own_repository,
    special_rules,
)
from codex_py.programs import ONLY_INSIDE, Programs, programs_outside

_TIMEOUT_S = 60
_SETTINGS_TIMEOUT_S = 5.0
_SETTINGS_FILES = ("config", "config.worktree")
_MAX_SETTINGS_BYTES = 1024 * 1024

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=",
    "core.sshCommand=false",
    "credential.helper=",
    "diff.external=",
    "commit.gpgSign=false",
    "core.attributesFile=",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "checkout.workers=4",
    # It guards the commits of people; our copies are not commits.
    "core.safecrlf=false",
)
"""Settings that win over those of every file."""

_VARIABLES = {
    # No transport at all; and git 2.45 does not even look for a missing object elsewhere.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}


_KEPT = {
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "EMAIL",
    "TZ",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "DEVELOPER_DIR",
}
"""The variables of ours that git gets: no keys, and nothing that names a repository or a program."""
_ABOUT_SETTINGS = re.compile(
    r"(?i)\bconfig|does not contain a section|invalid (?:key|section)|bad (?:numeric|boolean)"
)
"""Errors of git that may quote a file that is no configuration at all."""
SETTINGS_PROBLEM = (
    "its configuration, or a file that the configuration includes, cannot be read"
)
BLOCKED = "git_blocked"
"""The code of the error if git waits for a named pipe or the like."""
_PLACES = ("GIT_DIR", "GIT_WORK_TREE")
_SAFE = "safe.directory"
"""The setting in git's advice about a repository that belongs to another user."""
_FOUND_NONE = 1
"""The exit code of `git config` if there is no such setting."""
_OF_REPOSITORY = frozenset({"local", "worktree"})
"""Scopes of settings, as `git config --show-scope` prints them."""


@dataclass(frozen=True, slots=True)
class Git:
    program: str
    home: Path
    """`$CODEX_HOME`, for temporary files that git writes."""
    variables: Mapping[str, str]
    is_shielded: bool = False
    """True if Ctrl-C in a terminal must not reach it: it tidies up, and takes no time."""
    repository: OwnRepository | None = None
    """The repository that all commands work on; None for a git that is used outside of
    repositories."""

    @property
    def own_repository(self) -> OwnRepository:
        """The `repository`; the caller knows that it is not None."""
        assert self.repository is not None
        return self.repository

    def run(
        self,
        folder: Path,
        *words: str,
        stdin: bytes = b"",
        timeout_s: float = _TIMEOUT_S,
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run a command to its end; it may have failed. Raises a `CodexError` if it could not be
        run, or did not end."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        try:
            return self._completed(
                [self.program, "--no-pager", *settings, *words],
                folder,
                stdin,
                timeout_s,
            )
        except subprocess.TimeoutExpired as error:
            special = special_rules(folder)
            if special is not None:
                message = (
                    f"git cannot read {special}, which is neither a file nor a folder"
                )
                raise CodexError(message, code=BLOCKED) from error
            message = f"git {words[0]} did not end within {timeout_s:g} s in {folder}"
            raise CodexError(message, code="git") from error
        except (OSError, ValueError) as error:
            # The cause alone: an `OSError` may name the folder as Python writes a `Path`. A word with
            # a NUL is a `ValueError`.
            cause = getattr(error, "strerror", None) or str(error)
            raise CodexError(
                f"git could not be run in {folder}: {cause}", code="git"
            ) from error

    def _completed(
        self, argv: list[str], folder: Path, stdin: bytes, timeout_s: float
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run a program to its end. If that is not waited for, nothing of it is left."""
        with subprocess.Popen(
            argv,
            cwd=folder,
            env=self.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0 if self.is_shielded else None,
        ) as process:
            try:
                out, err = process.communicate(stdin, timeout_s)
            except BaseException:
                self._kill(process)
                raise
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        if self.is_shielded:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()

    def output(
        self,
        folder: Path,
        *words: str,
        stdin: bytes = b"",
    ) -> str:
        """Run a command. Returns its output, without blank ends. Raises a `CodexError` if it failed
        or could not be run."""
        return os.fsdecode(self.data(folder, *words, stdin=stdin)).strip()

    def names(self, folder: Path, *words: str) -> list[str]:
        """Run a command that prints names with NUL bytes between them. Raises as `output`."""
        return [
            os.fsdecode(name) for name in self.data(folder, *words).split(b"\0") if name
        ]

    def data(
        self,
        folder: Path,
        *words: str,
        stdin: bytes = b"",
    ) -> bytes:
        """Run a command. Returns its output as it is. Raises as `output`."""
        done = self.run(folder, *words, stdin=stdin)
        if done.returncode:
            # The first error is the cause of those after it.
            said = done.stderr.decode(errors="replace").strip().splitlines()
            errors = (line for line in said if line.startswith(("error:", "fatal:")))
            reason = next(errors, "; ".join(said)) or f"exit code {done.returncode}"
            if _ABOUT_SETTINGS.search(reason):
                reason = SETTINGS_PROBLEM
            advice = next((line.strip() for line in said if _SAFE in line), None)
            if advice is not None:
                reason += f"; if you trust it, run: {advice}"
            raise CodexError(f"git {words[0]} failed in {folder}: {reason}", code="git")
        return done.stdout

    def outside(self) -> "Git":
        """Return the git for use outside of repositories."""
        return replace(self, variables=_without_places(self), repository=None)

    def without_filters(self, tree: Path) -> "Git":
        """A git for the files of a work tree. The configured filters do nothing, and a list of
        ignored files that the repository keeps elsewhere is not read."""
        asked = ("--show-scope", "--get-regexp", r"^(filter\.|core\.excludesfile$)")
        done = self.run(tree, "config", "-z", *asked)
        if done.returncode not in {0, _FOUND_NONE}:
            message = f"git config failed in {tree}: {SETTINGS_PROBLEM}"
            raise CodexError(message, code="git")
        words = [os.fsdecode(word) for word in done.stdout.split(b"\0")]
        listed = [
            (scope, *setting.partition("\n")[::2])
            for scope, setting in zip(words[::2], words[1::2], strict=False)
        ]
        names = {
            key.rpartition(".")[0] for _, key, _ in listed if key.startswith("filter.")
        }
        off = [("smudge", ""), ("clean", ""), ("process", ""), ("required", "false")]
        settings = [(f"{name}.{key}", value) for name in names for key, value in off]
        lists = [
            (scope, value) for scope, key, value in listed if key == "core.excludesfile"
        ]
        if lists and not self._may_read(tree, *lists[-1]):
            of_user = [value for scope, value in lists if scope not in _OF_REPOSITORY]
            settings.append(("core.excludesFile", of_user[-1] if of_user else ""))
        # `-c` cannot set a name with `=` in it.
        variables = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings):
            variables |= {
                f"GIT_CONFIG_KEY_{number}": key,
                f"GIT_CONFIG_VALUE_{number}": value,
            }
        return replace(self, variables={**self.variables, **variables})

    def _may_read(
        self,
        tree: Path,
        scope: str,
        path: str,
    ) -> bool:
        """True unless a setting of the repository names a file elsewhere."""
        if scope not in _OF_REPOSITORY:
            return True
        is_of_home = path.startswith("~")
        return (
            not is_of_home
            and self.repository is not None
            and self.repository.holds(tree / path)
        )


def _without_places(git: Git) -> dict[str, str]:
    """The variables of a git without those that name a repository."""
    return {name: value for name, value in git.variables.items() if name not in _PLACES}


def object_contents(
    git: Git, top: Path, names: Sequence[str], max_bytes: int
) -> list[bytes | None]:
    """Read objects of a repository, such as `HEAD:a.py`, in the order of their names.

    None stands for an object that is lost, or larger than `max_bytes`.

    Raises:
        CodexError: git fails.
    """
    if any("\n" in name for name in names):
        return [None] * len(names)

    def asked(option: str, names: Sequence[str]) -> bytes:
        lines = [os.fsencode(name) + b"\n" for name in names]
        return git.data(top, "cat-file", option, stdin=b"".join(lines))

    sizes = asked("--batch-check=%(objectsize)", names).splitlines()
    small = [
        name
        for name, size in zip(names, sizes, strict=True)
        if size.isdigit() and int(size) <= max_bytes
    ]
    contents = batched_contents(asked("--batch", small))
    found = dict(zip(small, contents, strict=True))
    return [found.get(name) for name in names]


def linked_work_trees(git: Git, top: Path) -> list[Path]:
    """List the work trees of a repository, that at `top` first.

    A repository can list any folder as its work tree: those that are not are left out.

    Raises:
        CodexError: git fails.
    """
    printed = git.output(top, "worktree", "list", "--porcelain")
    trees = [top]
    for line in printed.splitlines():
        name = line.removeprefix("worktree ")
        if name != line and git.own_repository.has_tree(Path(name)):
            trees.append(Path(name))
    return trees


def batched_contents(printed: bytes) -> Iterator[bytes | None]:
    """The contents that `cat-file --batch` has printed, in the order asked for; None for an object that is lost."""
    stream = BytesIO(printed)
    while head := stream.readline().split():
        # A newline follows each.
        if len(head) == 3:
            yield stream.read(int(head[2]) + 1)[:-1]
        else:
            yield None


def repository_git(
    programs: Programs, environment: Mapping[str, str], top: Path
) -> Git:
    """The git for a repository. `top`: the top of its work tree, absolute; it has a `.git`.

    Raises:
        CodexError: git is missing, or would not touch the repository; or the repository is damaged,
            or leads elsewhere.
    """
    return for_tree(find_git(programs, environment), top)


def git_for(top: Path, home: Path, environment: Mapping[str, str]) -> Git:
    """The git for a repository, from a folder that no command of the model can write to.

    Args:
        top: the top of the work tree, absolute; it has a `.git`.
        home: `$CODEX_HOME`.

    Raises as `repository_git`.
    """
    return repository_git(programs_outside(home, environment, top), environment, top)


def for_tree(git: Git, top: Path) -> Git:
    """The same git for the repository of a work tree, also after its `.git` has changed. Raises as `repository_git`."""
    try:
        repository = own_repository(top)
        check_contents(repository)
        is_ours = _is_ours(repository)
    except ForeignRepository as error:
        raise CodexError(str(error), code="git") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CodexError(f"{top} is no git work tree: {reason}", code="git") from error
    if not is_ours:
        # With the variables below, git does not check who owns a repository.
        git.outside().output(top, "rev-parse", "--git-dir")
    variables = {
        **git.variables,
        "GIT_DIR": str(repository.folder),
        "GIT_WORK_TREE": str(top),
    }
    own = replace(git, variables=variables, repository=repository)
    _check_included(own)
    return own


def _check_included(git: Git) -> None:
    """Raise a `CodexError` if git waits for a file that the repository's configuration includes,
    such as a named pipe.

    Only git knows which files those are: they may include others, under conditions.
    """
    repository = git.own_repository
    places = dict.fromkeys((repository.common, repository.folder))
    files = [folder / name for folder in places for name in _SETTINGS_FILES]
    if not any(map(_has_includes, files)):
        return
    try:
        git.run(
            repository.top,
            "config",
            "--list",
            "--name-only",
            timeout_s=_SETTINGS_TIMEOUT_S,
        )
    except CodexError as error:
        message = (
            f"the settings of the repository {repository.folder} cannot be read: {error};"
            " look at the files that they include"
        )
        raise CodexError(message, code="git") from error


def _has_includes(path: Path) -> bool:
    try:
        return b"include" in read_whole(path, _MAX_SETTINGS_BYTES).lower()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        # Git may be able to read it.
        return True


def _is_ours(repository: OwnRepository) -> bool:
    """True if this user owns all that git would look at.
    https://git-scm.com/docs/git-config#_safe_directory"""
    places = (repository.top, repository.top / ".git", repository.folder)
    return all(os.stat(place).st_uid == os.geteuid() for place in places)  # noqa: PTH116


def find_git(programs: Programs, environment: Mapping[str, str]) -> Git:
    """A git for use outside of repositories. Raises a `CodexError` if git cannot be found or
    used."""
    try:
        program = programs.find("git", environment)
    except FileNotFoundError as error:
        inside = error.filename2
        if inside:
            why = f"cannot be used: {ONLY_INSIDE}, {inside}"
        else:
            why = "is not installed"
        raise CodexError(f"git {why}", code="git") from error
    kept = {
        name: value
        # git looks for parts of itself on `PATH`.
        for name, value in programs.environment(environment).items()
        if name in _KEPT
    }
    return Git(program, programs.home, kept | _VARIABLES)
