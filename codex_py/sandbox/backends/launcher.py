"""Confinement on Linux by our own launcher, `sandbox.child.launcher`, which needs nothing installed."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from codex_py.protocol.approval import SandboxLimits
from codex_py.sandbox.child import landlock
from codex_py.sandbox.child.seccomp import filter_program
from codex_py.sandbox.layout import PACKAGE, Layout, Roots, absent_names

# The package of the launcher, without the packages around it: what those import would cost 5 ms.
_START = (
    "import sys; package = type(sys)('codex_py.sandbox.child'); "
    "package.__path__ = [sys.argv.pop(1)]; "
    "sys.modules['codex_py'] = sys.modules[package.__name__] = package; "
    "from codex_py.sandbox.child.{} import main; main(sys.argv[1:])"
)
_CHILD = str(PACKAGE / "sandbox" / "child")
_SHARED_MEMORY = "/dev/shm"
"""The locks that processes share lie there, such as those of Python's `multiprocessing`. A view has its own;
with Landlock it is as open as `/tmp`."""


class LauncherBackend:
    def __init__(self, name: str, limits: SandboxLimits) -> None:
        """`name`: `namespaces`, `views`, `supervised` or `landlock`; see the launcher."""
        self.name = name
        self._limits = limits

    def command(
        self,
        argv: Sequence[str],
        view: Layout,
        roots: Roots,
        cwd: Path,  # noqa: ARG002
        alive: str = "",
    ) -> list[str] | None:
        is_supervised = self.name == "supervised"
        is_landlock = is_supervised or self.name == "landlock"
        program = filter_program(
            os.uname().machine,
            offline=view.offline,
            guard_truncate=is_landlock and landlock.version() < landlock.TRUNCATE_SINCE,
            supervised=is_supervised,
        )
        if program is None or not sys.executable:
            return None
        start = _START.format("supervised" if is_supervised else "launcher")
        words = [os.path.realpath(sys.executable), "-I", "-S", "-c", start, _CHILD]
        words += [self.name, f"filter={program.hex()}", f"alive={alive}"]
        words += [f"processes={self._limits.max_processes}", f"files={self._limits.max_open_files}"]
        if self._limits.max_memory_mb is not None:
            words.append(f"memory={self._limits.max_memory_mb << 20}")
        if view.offline:
            words.append("offline")
        for path in view.writable:
            # Landlock alone grants a folder whole or in parts, and a temporary one is of no use in parts.
            whole = self.name == "landlock" and path in view.temporary
            words.append(f"{'whole' if whole else 'write'}={path}")
        if is_landlock and Path("/tmp") in view.writable:
            words.append(f"whole={_SHARED_MEMORY}")
        words += [f"protect={path}" for path in view.protected]
        words += [f"{'protect' if is_landlock else 'link'}={path}" for path in view.links]
        words += [f"hide={path}" for path in view.hidden]
        if is_supervised:
            # The supervisor refuses to create these names; they need no placeholders.
            words += [f"protect={path}" for path in absent_names(roots)]
        return [*words, "--", *argv]
