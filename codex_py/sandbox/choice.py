"""The sandbox of this machine: the first way to hold a command that works here, or none runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.errors import ToolError
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.limits import DEFAULT_LIMITS, SandboxLimits
from codex_py.sandbox.backends.backend import Backend, own_paths, platform_backends, problem
from codex_py.sandbox.layout import Roots, absent_names, layout, resolve_roots, secrets
from codex_py.sandbox.liveness import LivenessPipe
from codex_py.sandbox.placeholders import Placeholders

_DEATH_S = 1.0
"""What a namespace of processes may take to end. It takes some 20 ms."""


class PlatformSandbox:
    """Tries the backends when the first command comes, and stays with the one that works.

    Args:
        environment: of the commands.
        home: `$CODEX_HOME`, read-only wherever it lies; its logins are hidden.
        limits: of each command.
        backends: in place of those of this platform, the strongest first. They have limits of their own.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        home: Path | None = None,
        limits: SandboxLimits = DEFAULT_LIMITS,
        backends: Sequence[Backend] | None = None,
    ) -> None:
        self.unavailable: str | None = None
        search_path = environment.get("PATH", "")
        self._tmpdir = environment.get("TMPDIR", "")
        self._home = home
        self._backends = platform_backends(search_path, limits) if backends is None else backends
        self._backend: Backend | None = None
        self._roots: dict[SandboxPolicy, Roots] = {}
        self._placeholders = Placeholders()
        self._liveness = LivenessPipe()

    def command(self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path) -> Sequence[str]:
        """See `Sandbox.command`."""
        if policy.mode == "danger-full-access":
            return argv
        backend = self._working_backend()
        if policy not in self._roots:
            self._roots[policy] = resolve_roots(policy, self._tmpdir, self._home)
        roots = self._roots[policy]
        absent = absent_names(roots)
        if backend.name in _COVERS_NAMES:
            self._placeholders.hold(absent)
        home, hidden = ([], ()) if self._home is None else ([self._home], secrets(self._home))
        own = (*own_paths(), *home, *absent)
        view = layout(roots, own, offline=not policy.network_access, hidden=hidden)
        command = backend.command(argv, view, roots, cwd, self._liveness.pipe())
        if command is None:
            # It was there when it was tried.
            raise self._refusal([f"{backend.name}: gone"])
        return command

    def release(self) -> None:
        """See `Sandbox.release`."""
        # A process that is being killed still finishes the call it is in, and one call makes a `.git`.
        if self._liveness.wait(_DEATH_S):
            self._placeholders.release()

    def _working_backend(self) -> Backend:
        if self.unavailable is not None:
            raise self._refusal([])
        if self._backend is None:
            problems: list[str] = []
            for backend in self._backends:
                why = problem(backend)
                if why is None:
                    self._backend = backend
                    return backend
                problems.append(f"{backend.name}: {why}")
            raise self._refusal(problems)
        return self._backend

    def _refusal(self, problems: Sequence[str]) -> ToolError:
        if self.unavailable is None:
            reasons = "; ".join(problems) or "this system has no way to"
            self.unavailable = (
                f"commands cannot be confined on this machine ({reasons});"
                " only `-s danger-full-access` would run them"
            )
        return ToolError(self.unavailable, code="SandboxUnavailable")


_COVERS_NAMES = {"namespaces", "bwrap", "views"}
"""Backends that cover what exists: for them, what does not exist yet is made. A profile of macOS holds names
themselves, and Landlock neither."""
