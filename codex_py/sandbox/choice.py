"""Confines commands with the first backend that works on this machine.

If none works, no command runs.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from codex_py.errors import ToolError, cause
from codex_py.filesystem.denials import NOTHING, DeniedPaths, denials_of
from codex_py.filesystem.folder_times import FolderTimes
from codex_py.protocol.approval import DEFAULT_LIMITS, SandboxLimits, SandboxPolicy
from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.file_rules import FileRules
from codex_py.protocol.network_report import NetworkReport
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.backends.linux import BubblewrapBackend, LauncherBackend
from codex_py.sandbox.backends.seatbelt import SeatbeltBackend
from codex_py.sandbox.child import landlock
from codex_py.sandbox.layout import (
    Layout,
    Roots,
    absent_names,
    free_own_paths,
    is_inside,
    layout,
    own_paths,
    resolve_roots,
    secrets,
    with_covered_home,
)
from codex_py.sandbox.liveness import LivenessPipe
from codex_py.sandbox.placeholders import Placeholders
from codex_py.sandbox.runner_files import runner_files

_TRIAL_TIMEOUT_S = 10.0
_SILENT = f"no answer within {_TRIAL_TIMEOUT_S:.0f} s"
"""The problem of a backend that does not answer in time."""
_NO_ROOTS = Roots()
_DEATH_S = 1.0
"""The time that a process namespace may take to end. Usually it takes 20 ms."""
_HIDES = {"namespaces", "bwrap", "views", "seatbelt"}
"""The backends that can make a file unreadable; see `_can_hide`."""
_ACCEPT = "`--allow-unenforced permissions.filesystem`"
_PROXIES = {"namespaces", "bwrap", "views"}
"""The backends that can make our proxy a command's only way out. Landlock judges ports, not
hosts."""
_COVERS_HOME = {"namespaces", "views"}
"""The backends that show only what `$CODEX_HOME` has when a command starts. Landlock alone does so
too. With `bwrap`, a login that is renewed meanwhile can be read."""
_NEEDS_PLACEHOLDERS = {"namespaces", "bwrap", "views"}
"""The backends that mount over protected names, which must exist for that. Other backends need no
placeholders: a profile of macOS denies the names themselves, the supervisor refuses to create them,
and Landlock alone cannot protect them."""


def _free_view(denied: DeniedPaths, hidden: Sequence[Path]) -> Layout:
    """The view of a command that may write everywhere except to denied paths.

    The folders around paths that must stay where they are become mounts, so that no command can
    rename them.
    """
    own = free_own_paths()
    above = {Path("/")}
    for path in (*denied.pinned, *own):
        above.update(path.parents)
    writable = [
        folder for folder in above if folder not in own and not is_inside(folder, own)
    ]
    outer_first = sorted(writable, key=lambda path: len(path.parts))
    return Layout(
        tuple(outer_first),
        own,
        (),
        offline=False,
        links=denied.links,
        hidden=(*hidden, *denied.hidden),
        opened=denied.opened,
    )


def _denied(
    rules: FileRules,
    roots: Roots,
    cwd: Path,
    backend: str,
) -> DeniedPaths:
    """The files that are denied and exist at this moment.

    Raises:
        ToolError: the backend cannot deny one of them.
    """
    denied = denials_of(rules).now((*roots.all, cwd))
    links = [path for path in denied.links if is_inside(path, roots.all)]
    if links and backend == "bwrap" and not rules.may_be_unenforced:
        # `bwrap` would cover the link's target. Without the link, the next session would not
        # deny it.
        text = f"{links[0]} is denied and a symbolic link, which 'bwrap' cannot keep as it is"
        raise ToolError(f"{text}; {_ACCEPT} accepts that", code="SandboxUnavailable")
    return denied


def _too_weak(
    backend: str,
    task: str,
    name: str,
) -> ToolError:
    """The error if a backend cannot do a task, which the table `permissions.{name}` asks for."""
    accept = f"`--allow-unenforced permissions.{name}` accepts that"
    text = f"the sandbox backend {backend!r} cannot {task}; {accept}"
    return ToolError(text, code="SandboxUnavailable")


class _Needs(NamedTuple):
    """The limits that a policy sets for commands, each of which not every backend can hold."""

    limits_writes: bool
    """True if a command may write only to some folders."""
    hides: bool
    """True if a command must not read some files."""
    domains: DomainRules | None
    """The only hosts that a command may reach; None if hosts are not restricted."""

    @classmethod
    def of(cls, policy: SandboxPolicy) -> "_Needs":
        domains = None
        if policy.network_access:
            domains = policy.domains
        limits_writes = policy.mode != "danger-full-access"
        return cls(limits_writes, bool(policy.files.denies), domains)

    @property
    def nothing(self) -> bool:
        """True if commands are not limited at all."""
        return not self.limits_writes and not self.hides and self.domains is None


def _kept_by(
    backend: Backend,
    needs: _Needs,
    policy: SandboxPolicy,
) -> _Needs:
    """The needs that the backend can meet, without others that the user has given up.

    Raises:
        ToolError: the backend cannot meet a need that the user has not given up.
    """
    if needs.hides and not _can_hide(backend.name):
        if not policy.files.may_be_unenforced:
            task = "keep commands from reading what is denied"
            raise _too_weak(backend.name, task, "filesystem")
        needs = needs._replace(hides=False)
    if needs.domains is not None and backend.name not in _PROXIES:
        if not needs.domains.may_be_unenforced:
            task = "restrict the hosts that commands reach"
            raise _too_weak(backend.name, task, "network")
        needs = needs._replace(domains=None)
    return needs


class PlatformSandbox:
    """Tries the backends when the first command comes, and keeps the first one that works.

    Creating a sandbox removes the placeholders of agents that were killed.

    Args:
        environment: the environment of the commands. `bwrap` is looked up on its `PATH`.
        home: `$CODEX_HOME`, which is always read-only; its logins are hidden.
        limits: the limits of each command.
        backends: used instead of those of this platform, the strongest first. They have their own
            limits.
        network: gets the refused connections of commands that may reach only some hosts. Without
            it, these commands are offline.
        problems: the reason why each backend does not work here, by its name; None if it works.
            Backends that are tried are added, so that other sandboxes need not try them.
        folder_times: is told of the changes that placeholders make to their folders.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        home: Path | None = None,
        limits: SandboxLimits = DEFAULT_LIMITS,
        backends: Sequence[Backend] | None = None,
        problems: dict[str, str | None] | None = None,
        network: NetworkReport | None = None,
        folder_times: FolderTimes | None = None,
    ) -> None:
        self.unavailable: str | None = None
        """The reason why a command was refused, as a line for the user; None if none was
        refused."""
        self.warning: str | None = None
        """A line for the user if another backend of this machine may be stronger than the chosen
        one."""
        search_path = environment.get("PATH", "")
        self._tmpdir = environment.get("TMPDIR", "")
        self._home = home
        if backends is None:
            self._backends = platform_backends(search_path, limits)
        else:
            self._backends = backends
        self._backend: Backend | None = None
        if problems is None:
            problems = {}
        self._problems = problems
        self._roots: dict[SandboxPolicy, Roots] = {}
        listed = None
        # A home that does not exist may get a placeholder itself.
        if home is not None and home.is_dir():
            listed = home / "codex-py/placeholders"
        self._placeholders = Placeholders(listed, folder_times)
        self._placeholders.remove_leftovers()
        self._liveness = LivenessPipe()
        self._report = network
        self._network = None

    def confines(self, policy: SandboxPolicy) -> bool:
        """True if the policy limits commands at all. Then only `command` may start them."""
        return not _Needs.of(policy).nothing

    def command(
        self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path
    ) -> Sequence[str]:
        """The command line that runs `argv`, confined to the policy.

        May create placeholders for protected names, which `release` removes.

        Args:
            cwd: the working directory of the command, absolute.

        Raises:
            ToolError: the command cannot be confined, so it must not run.
        """
        needs = _Needs.of(policy)
        if needs.nothing:
            return argv
        if policy not in self._roots:
            self._roots[policy] = resolve_roots(policy, self._tmpdir, self._home)
        roots = self._roots[policy]
        if self._backend is None:
            self._backend = self._working_backend(roots)
        needs = _kept_by(self._backend, needs, policy)
        if needs.nothing:
            return argv
        denied = NOTHING
        if policy.files.denies:
            denied = _denied(policy.files, roots, cwd, self._backend.name)
        hidden = secrets(self._home, denies=policy.files.denies)
        if needs.limits_writes:
            view = self._view(policy, roots, denied, hidden)
            if self._home is not None and self._backend.name in _COVERS_HOME:
                view = with_covered_home(view, self._home)
        elif needs.hides:
            view = _free_view(denied, hidden)
        else:
            view = _free_view(denied, ())
        if needs.domains is not None and not view.offline:
            view = self._reaching(view, needs.domains)
        return self._confined(argv, view, cwd)

    def _view(
        self,
        policy: SandboxPolicy,
        roots: Roots,
        denied: DeniedPaths,
        hidden: tuple[Path, ...],
    ) -> Layout:
        """The view of a command that may write only to the roots.

        Raises:
            ToolError: another process has removed a placeholder just now.
        """
        absent = list(absent_names(roots))
        absent += [path for path in denied.absent if is_inside(path, roots.all)]
        held: Sequence[Path] = []
        if self._backend is not None and self._backend.name in _NEEDS_PLACEHOLDERS:
            held = self._placeholders.hold(absent)
        own = list(own_paths())
        if self._home is not None:
            own.append(self._home)
        own += absent
        own += [path for path, access in policy.files.entries if access == "read"]
        own += runner_files(os.environ, roots.all)
        offline = not policy.network_access
        view = layout(roots, own, offline=offline, hidden=hidden, denied=denied)
        lost = set(held).difference(view.protected, view.writable)
        if lost:
            raise ToolError(
                f"{min(lost)} was removed just now", code="SandboxUnavailable"
            )
        return view

    def _reaching(self, view: Layout, domains: DomainRules) -> Layout:
        """The view in which a command can reach only these hosts."""
        if self._report is None:
            return replace(view, offline=True)
        if self._network is None:
            from codex_py.sandbox.network.proxy import NetworkProxy  # 60 ms

            self._network = NetworkProxy(self._report)
        return replace(
            view,
            proxy=self._network.address(domains),
            allows_local=domains.allows_local,
            direct=self._network.direct_hosts(domains),
        )

    def _confined(
        self,
        argv: Sequence[str],
        view: Layout,
        cwd: Path,
    ) -> Sequence[str]:
        """The command line of the chosen backend.

        Raises:
            ToolError: the backend does not work any more.
        """
        assert self._backend is not None
        command = self._backend.command(argv, view, cwd, self._liveness.path())
        if command is None:
            # The backend's program was there when the backend was tried.
            raise self._refusal([f"{self._backend.name}: gone"])
        return command

    def release(self, timeout_s: float = _DEATH_S) -> bool:
        """Remove everything that `command` created, when no command runs. More commands may follow.

        Waits until all processes that the commands left behind are dead, which they usually are.

        Returns:
            False if a process lives on; then no placeholder was removed.
        """
        # A killed process still finishes its current system call, which may be a `mkdir`.
        is_dead = self._liveness.wait(timeout_s)
        if is_dead:
            self._placeholders.release()
        if self._network is not None and (is_dead or timeout_s):
            self._network.close()
        return is_dead

    def _working_backend(self, roots: Roots) -> Backend:
        """The first backend that works. Warns of stronger ones that gave no answer.

        Raises:
            ToolError: no backend works.
        """
        found = self._problems
        for backend in self._backends:
            if backend.name not in found:
                found[backend.name] = problem(backend, roots)
            if found[backend.name] is not None:
                continue
            silent = [repr(name) for name, why in found.items() if why == _SILENT]
            if silent:
                self.warning = (
                    f"Commands are confined by the sandbox backend {backend.name!r},"
                    f" which may hold less than {' or '.join(silent)}:"
                    f" {_SILENT} when that was tried."
                )
            return backend
        raise self._refusal([f"{name}: {why}" for name, why in found.items()])

    def _refusal(self, problems: Sequence[str]) -> ToolError:
        """The error that no command can run. All refusals have the text of the first one."""
        if self.unavailable is None:
            reasons = "; ".join(problems) or "this system has no way to"
            self.unavailable = (
                f"commands cannot be confined on this machine ({reasons});"
                " only `-s danger-full-access` would run them"
            )
        return ToolError(self.unavailable, code="SandboxUnavailable")


def _can_hide(backend: str) -> bool:
    """True if the backend can make a file in a writable folder unreadable."""
    if backend == "views" and landlock.version() < landlock.REFER_SINCE:
        # Without Landlock, another process leads to the file: /proc/PID/root.
        return False
    return backend in _HIDES


def platform_backends(
    search_path: str, limits: SandboxLimits = DEFAULT_LIMITS
) -> list[Backend]:
    """All backends of this platform, the strongest first, including those that do not work here.

    Args:
        search_path: the `$PATH` on which `bwrap` is looked up.
    """
    match sys.platform:
        case "linux":
            return [
                LauncherBackend("namespaces", limits),
                BubblewrapBackend(search_path, limits),
                LauncherBackend("views", limits),
                LauncherBackend("supervised", limits),
                LauncherBackend("landlock", limits),
            ]
        case "darwin":
            return [SeatbeltBackend(limits)]
        case _:
            return []


def problem(backend: Backend, roots: Roots = _NO_ROOTS) -> str | None:
    """Try the backend, which takes some 15 ms.

    Args:
        roots: the folders that the model can write to. No program in them is started.

    Returns:
        The reason why the backend does not work here, in a few words; None if it works.
    """
    root = Path("/")
    view = Layout((), (), (), offline=True, roots=roots)
    command = backend.command(["/bin/sh", "-c", ": >/dev/null"], view, root)
    if command is None:
        return "not there"
    try:
        tried = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd=root,
            timeout=_TRIAL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return _SILENT
    except OSError as error:
        return cause(error)
    if tried.returncode == 0:
        return None
    lines = tried.stderr.decode(errors="replace").strip().splitlines()
    if lines:
        return _reason(lines[-1])
    return f"exit code {tried.returncode}"


def _reason(line: str) -> str:
    """The reason in a line of an error. If the system gave the reason, its path is kept."""
    of_system = re.search(r"\[Errno \d+\] (.+)", line)
    if of_system is None:
        return line.rpartition(": ")[2]
    return of_system[1]
