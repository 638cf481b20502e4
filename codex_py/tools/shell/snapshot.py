"""Takes snapshots of the state that the user's login shell sets up.

With a snapshot, a command need not run the profile again. It runs with `-c` instead of `-lc`, and
the exported variables of the login shell are its environment. In bash, a script restores the rest:
functions, aliases, options, umask, other variables. The script is passed in variables too, which
its first line removes: no file exists that another command could find or change.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Final, NamedTuple, TypeAlias

from codex_py.errors import ToolError
from codex_py.process.piped import ProgramRunner
from codex_py.protocol.frozen import frozen

_MAX_S = 10.0
_MAX_BYTES = 1 << 20
_OWN_FILES: Final = (
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".bashrc",
    ".zshenv",
    ".zprofile",
    ".zshrc",
    ".zlogin",
)
_SYSTEM_FILES: Final = (
    "profile",
    "profile.d",
    "bash.bashrc",
    "bashrc",
    "zshenv",
    "zprofile",
    "zshrc",
    "zlogin",
)
_DECLARED: Final = re.compile(r"declare -(\S+) (\w+)")
# These scripts print the four parts of a `_State`. A profile may define functions with the names of
# builtins, and set options that would end the script.
_STATE_OF_BASH = r"""
\builtin trap - DEBUG ERR EXIT
{ \builtin ulimit -a; \builtin printf MARK
  \builtin set +o; \builtin shopt -p || \builtin :; \builtin set +aeufvx; \builtin printf MARK
  \builtin umask -p; \builtin declare -p IFS; \builtin declare -f; \builtin alias -p
  \builtin printf MARK; IFS=$' \n'
  for codex_py_name in $(\builtin compgen -v); do
    \builtin declare -p $codex_py_name; \builtin printf '\0'
  done; \builtin printf MARK
} >&9
"""
_VARIABLES: Final = re.compile(r"^(\w+)=", re.MULTILINE)
# Some shells cannot list their functions.
_STATE = """trap - EXIT; { ulimit -a; printf MARK; set +o; set +eufvx; printf MARK
umask; alias
typeset -f || ! grep -qs '()' /etc/profile ~/.profile /etc/profile.d/*.sh || exit 1
printf MARK; set; printf MARK; } >&9\n"""
# A plain shell prints its state, and then starts a login shell, which prints its own: only the
# differences must be restored. Output of the profile is dropped.
_PLAIN = 'exec 9>&1 >/dev/null 2>&1\n{}exec "$0" -lc "$1"'
_LOGIN = "{}exec /usr/bin/env -0 >&9"
_PARTS = 9
"""The four parts of the plain shell, those of the login shell, and its exported variables."""
_VARIABLE: Final = "CODEX_PY_SETUP"
_PIECE: Final = 30_000
"""Limit on the characters of a variable. Linux starts no program with a variable of more than 128
KiB."""


@frozen
class ShellSnapshot:
    exported: Mapping[str, str]
    setup: str = ""
    """A bash script that restores the rest of the state."""

    @property
    def pieces(self) -> dict[str, str]:
        """The variables that `command` needs."""
        starts = range(0, len(self.setup), _PIECE)
        return {f"{_VARIABLE}_{at}": self.setup[at : at + _PIECE] for at in starts}

    @property
    def command(self) -> str:
        """The command that runs `setup`; empty if `setup` is."""
        script = "".join(f"${name}" for name in self.pieces)
        if script:
            return f'eval "{script}"'
        return ""


_Stamps: TypeAlias = Mapping[Path, "tuple[int, int, int] | None"]
"""The inode, size and modification time of files; None for a missing file."""


_Stamped: TypeAlias = tuple[_Stamps, ShellSnapshot | None]
"""A snapshot, after the stamps of the files that it depends on. None instead of a snapshot: commands
must run the profile themselves."""


class _State(NamedTuple):
    """The state of a shell, as it prints it."""

    limits: str
    options: str
    definitions: str
    """The umask, the functions and the aliases."""
    variables: str
    """In bash, the result of `declare -p` for each, with a NUL after it."""


class _Declared(NamedTuple):
    """A variable of bash."""

    text: str
    """The command that declares it again."""
    name: str
    attributes: str


@dataclass(eq=False)
class LoginShell:
    """Takes the snapshots for all commands of a session.

    When a file of the profile has changed, the next command gets a new one.
    """

    path: str
    environment: Mapping[str, str]
    """The environment of commands. Without `HOME`, or with `BASH_ENV`, no snapshots are taken."""
    merge: Callable[[Mapping[str, str], Mapping[str, str]], dict[str, str]]
    """The function `environment_after_profile` of the session."""
    confine: Callable[[Sequence[str]], Sequence[str]]
    """Returns the argv that runs a command in the sandbox. May raise a `ToolError`."""
    cwd: Path
    snapshots: dict[object, _Stamped]
    """The last snapshot for each `_key`. The session shares them with its parent and its children."""
    _runner: ProgramRunner = field(default_factory=ProgramRunner)
    _task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Take a snapshot in the background, unless a current one or no profile file exists."""
        if self._task is None and self._current() is None:
            profiles = self._profiles()
            if any(_stamps(profiles).values()):
                self._task = asyncio.create_task(self._take(profiles))

    async def snapshot(self, argv: Sequence[str]) -> ShellSnapshot | None:
        """Return the snapshot for a command; None if the command must run unchanged.

        Waits while a snapshot is taken: running the profile would take as long.
        """
        name = PurePath(self.path).name
        if len(argv) != 3 or argv[1] != "-lc":
            return None
        if argv[0] not in {self.path, name}:
            return None
        self.begin()
        if self._task is not None:
            await asyncio.wait({self._task})
        current = self._current()
        if current is None:
            return None
        _, snapshot = current
        return snapshot

    async def aclose(self) -> None:
        """Stop a running snapshot. Another one can be taken afterwards."""
        if self._task is not None:
            self._task.cancel()
            # The shell need not end gracefully.
            self._runner.kill()
            await asyncio.wait({self._task})
            self._task = None
        self._runner.close()

    @cached_property
    def _key(self) -> object:
        # Parent and children share a snapshot, so the key must be the same for them: `merge` drops the
        # variables in which their environments differ.
        variables = self.merge(self.environment, {})
        return self.path, frozenset(variables.items())

    def _current(self) -> _Stamped | None:
        """Return the last snapshot and its stamps; None without one, or if a file has changed."""
        found = self.snapshots.get(self._key)
        if found is None:
            return None
        stamps, _ = found
        if _stamps(stamps) != stamps:
            return None
        return found

    def _profiles(self) -> Sequence[Path]:
        """Return the user's profile files, which need not exist, and those of `/etc/profile.d`."""
        home = self.environment.get("HOME")
        if not home or "BASH_ENV" in self.environment:
            return ()
        folders = dict.fromkeys((home, self.environment.get("ZDOTDIR", home)))
        own = (Path(folder, name) for folder in folders for name in _OWN_FILES)
        return (*own, *Path("/etc/profile.d").glob("*.sh"))

    async def _take(self, profiles: Sequence[Path]) -> None:
        system_files = [Path("/etc", name) for name in _SYSTEM_FILES]
        stamps = _stamps([*profiles, *system_files])
        snapshot = None
        try:
            snapshot = await self._taken()
        except (ToolError, OSError, ValueError):
            # Commands then run the profile themselves.
            pass
        finally:
            self._task = None
        if snapshot is not None and snapshot.exported.get("NVM_DIR"):
            # nvm stores the version for new shells in this file.
            version_file = Path(snapshot.exported["NVM_DIR"], "alias/default")
            stamps = {**stamps, **_stamps([version_file])}
        self.snapshots[self._key] = (stamps, snapshot)

    async def _taken(self) -> ShellSnapshot | None:
        """Return a new snapshot; None if the profile changes something that cannot be restored."""
        is_bash = PurePath(self.path).name == "bash"
        found = await self._states(is_bash=is_bash)
        if found is None:
            return None
        plain, login, exported = found
        # No script can restore limits.
        if plain.limits != login.limits:
            return None
        snapshot = ShellSnapshot(exported, self._setup(plain, login))
        if not is_bash:
            before = set(_VARIABLES.findall(plain.variables))
            after = set(_VARIABLES.findall(login.variables))
            unexported = after - before - exported.keys()
            # In other shells than bash, only exported variables can be restored.
            if snapshot.setup or unexported:
                return None
            return snapshot
        if not snapshot.setup:
            return snapshot
        # Try whether the script runs without an error and without output.
        environment = self.merge(exported, self.environment) | snapshot.pieces
        tried = await self._run([self.path, "-c", snapshot.command], environment)
        if tried == (0, ""):
            return snapshot
        return None

    async def _states(
        self, *, is_bash: bool
    ) -> tuple[_State, _State, Mapping[str, str]] | None:
        """Run a plain and a login shell. Returns their states, and the latter's exported variables.

        Returns None if what they print cannot be used.
        """
        mark = os.urandom(16).hex()
        state = _STATE_OF_BASH if is_bash else _STATE
        # The mark is in two words, because bash's variables contain its script and its last
        # command.
        state = state.replace("MARK", f"%s%s {mark[:16]} {mark[16:]}")
        options = ["--norc", "--noprofile"] if is_bash else []
        script = _PLAIN.format(state)
        login_script = _LOGIN.format(state)
        argv = [self.path, *options, "-c", script, self.path, login_script]
        code, printed = await self._run(argv, self.environment)
        parts = printed.split(mark)
        if code != 0 or len(parts) != _PARTS or "\ufffd" in printed:
            return None
        entries = parts.pop().split("\0")[:-1]
        exported = dict(entry.split("=", 1) for entry in entries)
        plain = _State(*parts[:4])
        login = _State(*parts[4:])
        return plain, login, exported

    def _setup(self, plain: _State, login: _State) -> str:
        """Return the script that gives a plain shell the state of a login shell.

        It is empty if both states are the same.
        """
        ignored = {"shopt -s login_shell", "set -o login"}
        before = ignored.union(plain.options.splitlines())
        options = [line for line in login.options.splitlines() if line not in before]
        shopt = [line for line in options if line.startswith("shopt")]
        other_options = [line for line in options if not line.startswith("shopt")]
        lines = [*shopt, *self._new_variables(plain, login)]
        if login.definitions != plain.definitions:
            lines.append(login.definitions)
        # Parsing a function depends on `shopt`, so that comes first. The other options may end the
        # script.
        lines += other_options
        if lines:
            return "\n".join([f"unset ${{!{_VARIABLE}_*}}", *lines])
        return ""

    def _new_variables(self, plain: _State, login: _State) -> list[str]:
        """Return the declarations of bash's variables that only the login shell has."""
        known = {each.name for each in _declared(plain.variables)}
        declared = _declared(login.variables)
        # A command gets only the variables that `merge` lets through.
        names = [each.name for each in declared]
        allowed = self.merge(dict.fromkeys(names, ""), {})
        new: list[str] = []
        for each in declared:
            if each.name in known or each.name not in allowed:
                continue
            # The environment already has the exported variables.
            is_exported = "x" in each.attributes
            if not is_exported and not each.name.startswith("BASH"):
                new.append(each.text)
        return new

    async def _run(
        self, argv: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[int | None, str]:
        """Run a program. Returns its exit code and output. No process is left running."""
        # `confine` may try a sandbox backend for the first time, which is slow.
        argv = await asyncio.to_thread(self.confine, argv)
        code, printed, errors = await self._runner.run(
            argv,
            cwd=self.cwd,
            environment=environment,
            stdin=b"",
            timeout_s=_MAX_S,
            max_output_bytes=_MAX_BYTES,
        )
        if len(printed) >= _MAX_BYTES // 2:
            # The output may have been cut.
            return code, ""
        return code, printed + errors


def _declared(variables: str) -> list[_Declared]:
    """Parse the variables of a bash; see `_State.variables`."""
    found: list[_Declared] = []
    for text in variables.split("\0"):
        match = _DECLARED.match(text)
        if match is not None:
            attributes, name = match.groups()
            found.append(_Declared(text, name, attributes))
    return found


def _stamps(files: Iterable[Path]) -> _Stamps:
    stamps: dict[Path, tuple[int, int, int] | None] = {}
    for path in files:
        try:
            status = path.stat()
            stamps[path] = status.st_ino, status.st_size, status.st_mtime_ns
        except OSError:
            stamps[path] = None
    return stamps
