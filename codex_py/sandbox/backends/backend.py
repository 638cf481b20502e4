"""The interface of a backend, which is one way to confine a command, and shared code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from codex_py.protocol.approval import SandboxLimits
from codex_py.sandbox.layout import Layout


class Backend(Protocol):
    @property
    def name(self) -> str: ...

    def command(
        self, argv: Sequence[str], view: Layout, cwd: Path, alive: str = ""
    ) -> list[str] | None:
        """The command line that runs `argv` in the view; None if this machine cannot do it.

        `alive`: see `LivenessPipe.path`; empty if nobody will wait.
        """
        ...


def limited(
    argv: Sequence[str], limits: SandboxLimits, *, processes: bool
) -> list[str]:
    """The command line of a shell that sets the limits and becomes `argv`. Lower limits are kept.

    `processes`: also limit the number of processes. The kernel counts only the command's processes
    if it has a user namespace of its own.
    """
    files = limits.max_open_files
    # Keep the soft limit that programs expect, unless it is too high.
    words = [f"ulimit -H -n {files} || ulimit -n {files}"]
    if processes:
        # Most shells call it `-u`, dash calls it `-p`.
        words.append(
            f"ulimit -u {limits.max_processes} || ulimit -p {limits.max_processes}"
        )
    if limits.max_memory_mb is not None:
        words.append(f"ulimit -d {limits.max_memory_mb << 10}")
    return [
        "/bin/sh",
        "-c",
        f'{{ {"; ".join(words)}; }} 2>/dev/null; exec "$@"',
        "sh",
        *argv,
    ]
