"""The interface of a backend, which is one way to confine a command, and what several of them need."""

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
        """The command line that runs `argv` in the view; None if this machine lacks what that takes.

        `alive`: see `LivenessPipe.path`; empty if nobody will wait.
        """
        ...


def limited(
    argv: Sequence[str], limits: SandboxLimits, *, processes: bool
) -> list[str]:
    """The command line of a shell that sets the limits and becomes `argv`. Lower limits stay as they are.

    `processes`: limit them too. Only in a user namespace of its own does the kernel count the command alone.
    """
    files = limits.max_open_files
    # The soft limit stays what programs expect unless it is too high.
    words = [f"ulimit -H -n {files} || ulimit -n {files}"]
    if processes:
        # `-u` in most shells, `-p` in dash.
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
