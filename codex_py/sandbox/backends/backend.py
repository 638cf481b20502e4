"""Defines what a backend is: one way to confine a command. Also sets limits for some of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from codex_py.protocol.approval import SandboxLimits
from codex_py.sandbox.layout import Layout


class Backend(Protocol):
    """One way to confine a command."""

    @property
    def name(self) -> str: ...

    def command(
        self, argv: Sequence[str], view: Layout, cwd: Path, alive: str = ""
    ) -> list[str] | None:
        """Return the command line that runs `argv` in the view; None if this machine cannot do it.

        Args:
            cwd: the working folder of the command; absolute.
            alive: see `LivenessPipe.path`; empty if nobody waits for the command's processes.
        """
        ...


def limited(
    argv: Sequence[str], limits: SandboxLimits, *, processes: bool
) -> list[str]:
    """Return the command line of a shell that sets the limits and then becomes `argv`.

    A limit that is already lower stays as it is.

    Args:
        processes: also limit the number of processes. Set it only for a command in a user namespace
            of its own: elsewhere, the kernel counts all processes of the user.
    """
    files = limits.max_open_files
    # Set only the hard limit, since programs expect the soft one. If that is too high, this fails,
    # and both are set.
    commands = [f"ulimit -H -n {files} || ulimit -n {files}"]
    if processes:
        # Most shells call it `-u`, dash calls it `-p`.
        count = limits.max_processes
        commands.append(f"ulimit -u {count} || ulimit -p {count}")
    if limits.max_memory_mb is not None:
        commands.append(f"ulimit -d {limits.max_memory_mb << 10}")
    set_limits = "; ".join(commands)
    script = f'{{ {set_limits}; }} 2>/dev/null; exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *argv]
