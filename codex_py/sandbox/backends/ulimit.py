"""Limits for a command that our own launcher does not start: a shell sets them and becomes the command."""

from collections.abc import Sequence

from codex_py.protocol.approval import SandboxLimits


def limited(argv: Sequence[str], limits: SandboxLimits, *, processes: bool) -> list[str]:
    """The command line that sets the limits and runs `argv`. Lower limits stay as they are.

    `processes`: limit them too. Only in a user namespace of its own does the kernel count the command alone.
    """
    files = limits.max_open_files
    # The soft limit stays what programs expect unless it is too high.
    words = [f"ulimit -H -n {files} || ulimit -n {files}"]
    if processes:
        # `-u` in most shells, `-p` in dash.
        words.append(f"ulimit -u {limits.max_processes} || ulimit -p {limits.max_processes}")
    if limits.max_memory_mb is not None:
        words.append(f"ulimit -d {limits.max_memory_mb << 10}")
    return ["/bin/sh", "-c", f'{{ {"; ".join(words)}; }} 2>/dev/null; exec "$@"', "sh", *argv]
