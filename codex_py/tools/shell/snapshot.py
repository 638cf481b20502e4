"""A snapshot of the state that the user's login shell sets up, so that each command need not run
the profile again.

Commands run with `-c` instead of `-lc`. The exported variables of the login shell are their
environment. In bash, a script restores the rest: functions, aliases, options, umask, other
variables. The script is passed in variables too, which its first line removes: no file exists that
another command could find or change.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Final, TypeAlias

from codex_py.errors import ToolError
from codex_py.process.piped import ProgramRunner
from codex_py.protocol.frozen import frozen

_MAX_S = 10.0
_MAX_BYTES = 1 << 20
_ZSH: Final = (".zshenv", ".zprofile", ".zshrc", ".zlogin")
_OWN_FILES: Final = (".bash_profile", ".bash_login", ".profile", ".bashrc", *_ZSH)
_SYSTEM_FILES: Final = (
    "profile",
    "profile.d",
    "bash.bashrc",
    "bashrc",
    *(n[1:] for n in _ZSH),
)
_DECLARED: Final = re.compile(r"declare -(\S+) (\w+)")
# These scripts print four parts: limits, options, definitions and variables. A profile may define
# functions with the names of builtins, and set options that would end the script.
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
# A plain shell prints its state first: only the differences must be restored. Output of the profile
# is dropped.
_PLAIN = 'exec 9>&1 >/dev/null 2>&1\n{}exec "$0" -lc "$1"'
_LOGIN = "{}exec /usr/bin/env -0 >&9"
_PARTS = 9
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


@dataclass(eq=False)
class LoginShell:
    """Takes the snapshots for all commands of a session; a new one when a file of the profile has
    changed."""

    path: str
    environment: Mapping[str, str]
    """The environment of commands. Without `HOME`, or with `BASH_ENV`, no snapshots are taken."""
    merge: Callable[[Mapping[str, str], Mapping[str, str]], dict[str, str]]
    """The function `environment_after_profile` of the session."""
    confine: Callable[[Sequence[str]], Sequence[str]]
    """Returns the argv that runs a command in the sandbox. May raise a `ToolError`."""
    cwd: Path
    snapshots: dict[object, tuple[_Stamps, ShellSnapshot | None]]
    """The snapshots, shared with the session's parent and children, and the files that each depends
    on. None for a snapshot that failed."""
    _runner: ProgramRunner = field(default_factory=ProgramRunner)
    _task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Take a snapshot in the background, unless a current one or no profile file exists."""
        if self._task is None and self._current() is None:
            profiles = self._profiles()
            if any(_stamps(profiles).values()):
                self._task = asyncio.create_task(self._take(profiles))

    async def snapshot(self, argv: Sequence[str]) -> ShellSnapshot | None:
        """The snapshot for a command; None if the command must run unchanged.

        Waits while a snapshot is taken: running the profile would take as long.
        """
        name = PurePath(self.path).name
        if len(argv) != 3 or argv[1] != "-lc" or argv[0] not in {self.path, name}:
            return None
        self.begin()
        if self._task is not None:
            await asyncio.wait({self._task})
        _, snapshot = self._current() or (None, None)
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
        # `merge` drops the variables that differ between a parent and its children.
        return self.path, frozenset(self.merge(self.environment, {}).items())

    def _current(self) -> tuple[_Stamps, ShellSnapshot | None] | None:
        found = self.snapshots.get(self._key)
        if found is not None and _stamps(found[0]) == found[0]:
            return found
        return None

    def _profiles(self) -> Sequence[Path]:
        """The profile files of the user, and the files of `/etc/profile.d`. They need not exist."""
        home = self.environment.get("HOME")
        if not home or "BASH_ENV" in self.environment:
            return ()
        folders = dict.fromkeys((home, self.environment.get("ZDOTDIR", home)))
        own = (Path(folder, name) for folder in folders for name in _OWN_FILES)
        return (*own, *Path("/etc/profile.d").glob("*.sh"))

    async def _take(self, profiles: Sequence[Path]) -> None:
        stamps = _stamps([*profiles, *(Path("/etc", name) for name in _SYSTEM_FILES)])
        snapshot = None
        try:
            snapshot = await self._asked()
        except (ToolError, OSError, ValueError):
            # Commands then run the profile themselves.
            pass
        finally:
            self._task = None
        if snapshot is not None and (nvm := snapshot.exported.get("NVM_DIR")):
            # nvm stores the version for new shells there.
            stamps = {**stamps, **_stamps([Path(nvm, "alias/default")])}
        self.snapshots[self._key] = stamps, snapshot

    async def _asked(self) -> ShellSnapshot | None:
        """Take a snapshot. None if the profile changes something that cannot be restored."""
        is_bash = PurePath(self.path).name == "bash"
        mark = os.urandom(16).hex()
        state = _STATE_OF_BASH if is_bash else _STATE
        # The mark is in two words, because bash's variables contain its script and its last
        # command.
        state = state.replace("MARK", f"%s%s {mark[:16]} {mark[16:]}")
        plain = [self.path]
        if is_bash:
            plain += ["--norc", "--noprofile"]
        plain.append("-c")
        words = [_PLAIN.format(state), self.path, _LOGIN.format(state)]
        code, printed = await self._run([*plain, *words], self.environment)
        parts = printed.split(mark)
        # No script can restore limits.
        if (
            code != 0
            or len(parts) != _PARTS
            or parts[0] != parts[4]
            or "\ufffd" in printed
        ):
            return None
        exported = dict(entry.split("=", 1) for entry in parts.pop().split("\0")[:-1])
        snapshot = ShellSnapshot(exported, self._setup(parts[1:4], parts[5:]))
        if not is_bash:
            before, after = ({*_VARIABLES.findall(parts[n])} for n in (3, 7))
            if snapshot.setup or after - before - exported.keys():
                return None
            return snapshot
        if not snapshot.setup:
            return snapshot
        environment = self.merge(exported, self.environment) | snapshot.pieces
        tried = await self._run([self.path, "-c", snapshot.command], environment)
        if tried == (0, ""):
            return snapshot
        return None

    def _setup(self, plain: Sequence[str], login: Sequence[str]) -> str:
        """The script that gives a plain shell the state of a login shell; empty if both states are
        the same."""
        before = {*plain[0].splitlines(), "shopt -s login_shell", "set -o login"}
        options = [line for line in login[0].splitlines() if line not in before]
        shopt = [line for line in options if line.startswith("shopt")]
        known = {
            found[2] for found in map(_DECLARED.match, plain[2].split("\0")) if found
        }
        found = [match for match in map(_DECLARED.match, login[2].split("\0")) if match]
        kept = self.merge({match[2]: "" for match in found}, {}).keys() - known
        # The environment already has the exported variables.
        variables = [
            m.string
            for m in found
            if m[2] in kept and "x" not in m[1] and m[2][:4] != "BASH"
        ]
        definitions = [] if login[1] == plain[1] else [login[1]]
        # Parsing a function depends on `shopt`, so that comes first. The other options may end the
        # script.
        lines = [
            *shopt,
            *variables,
            *definitions,
            *(o for o in options if o not in shopt),
        ]
        if lines:
            return "\n".join([f"unset ${{!{_VARIABLE}_*}}", *lines])
        return ""

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
        return code, printed + errors if len(printed) < _MAX_BYTES // 2 else ""


def _stamps(files: Iterable[Path]) -> _Stamps:
    stamps: dict[Path, tuple[int, int, int] | None] = {}
    for path in files:
        try:
            status = path.stat()
            stamps[path] = status.st_ino, status.st_size, status.st_mtime_ns
        except OSError:
            stamps[path] = None
    return stamps
