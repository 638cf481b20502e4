"""The sandbox of this machine: the first way to hold a command that works here, or none runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.errors import ToolError
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.limits import DEFAULT_LIMITS, SandboxLimits
from codex_py.sandbox.backends.backend import Rung, own_paths, platform_rungs, problem
from codex_py.sandbox.layout import Roots, absent_names, layout, resolve_roots, secrets
from codex_py.sandbox.placeholders import Placeholders
from codex_py.sandbox.survivors import Survivors

_DEATH_S = 1.0
"""What a namespace of processes may take to end. It takes some 20 ms."""


class LadderSandbox:
    """Tries the rungs when the first command comes, and stays with the one that works.

    Args:
        environment: of the commands.
        home: `$CODEX_HOME`, read-only wherever it lies; its logins are hidden.
        limits: of each command.
        rungs: in place of those of this platform, the strongest first. They have limits of their own.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        home: Path | None = None,
        limits: SandboxLimits = DEFAULT_LIMITS,
        rungs: Sequence[Rung] | None = None,
    ) -> None:
        self.unavailable: str | None = None
        search_path = environment.get("PATH", "")
        self._tmpdir = environment.get("TMPDIR", "")
        self._home = home
        self._rungs = platform_rungs(search_path, limits) if rungs is None else rungs
        self._rung: Rung | None = None
        self._roots: dict[SandboxPolicy, Roots] = {}
        self._placeholders = Placeholders()
        self._survivors = Survivors()

    def command(self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path) -> Sequence[str]:
        """See `Sandbox.command`."""
        if policy.mode == "danger-full-access":
            return argv
        rung = self._working_rung()
        if policy not in self._roots:
            self._roots[policy] = resolve_roots(policy, self._tmpdir, self._home)
        roots = self._roots[policy]
        absent = absent_names(roots)
        if rung.name in _COVERS_NAMES:
            self._placeholders.hold(absent)
        home, hidden = ([], ()) if self._home is None else ([self._home], secrets(self._home))
        own = (*own_paths(), *home, *absent)
        view = layout(roots, own, offline=not policy.network_access, hidden=hidden)
        command = rung.command(argv, view, roots, cwd, self._survivors.pipe())
        if command is None:
            # It was there when it was tried.
            raise self._refusal([f"{rung.name}: gone"])
        return command

    def release(self) -> None:
        """See `Sandbox.release`."""
        # A process that is being killed still finishes the call it is in, and one call makes a `.git`.
        if self._survivors.wait(_DEATH_S):
            self._placeholders.release()

    def _working_rung(self) -> Rung:
        if self.unavailable is not None:
            raise self._refusal([])
        if self._rung is None:
            problems: list[str] = []
            for rung in self._rungs:
                why = problem(rung)
                if why is None:
                    self._rung = rung
                    return rung
                problems.append(f"{rung.name}: {why}")
            raise self._refusal(problems)
        return self._rung

    def _refusal(self, problems: Sequence[str]) -> ToolError:
        if self.unavailable is None:
            reasons = "; ".join(problems) or "this system has no way to"
            self.unavailable = (
                f"commands can not be confined on this machine ({reasons});"
                " only `-s danger-full-access` would run them"
            )
        return ToolError(self.unavailable, code="SandboxUnavailable")


_COVERS_NAMES = {"namespaces", "bwrap", "views"}
"""Rungs that cover what exists: for them, what does not exist yet is made. A profile of macOS holds names
themselves, and Landlock neither."""
