"""Bounds for a command where no launcher of ours sets them: a shell does, and becomes the command."""

from collections.abc import Sequence

from codex_py.protocol.limits import SandboxLimits


def limited(argv: Sequence[str], limits: SandboxLimits, *, processes: bool) -> list[str]:
    """What sets the limits and runs `argv`. Those that are lower already stay.

    `processes`: the kernel counts those of the command alone, as in a user namespace of its own.
    """
    files = limits.max_open_files
    # The soft limit stays what programs expect, unless it is too high.
    words = [f"ulimit -H -n {files} || ulimit -n {files}"]
    if processes:
        # In dash, the option of the others is `-p`.
        words.append(f"ulimit -u {limits.max_processes} || ulimit -p {limits.max_processes}")
    if limits.max_memory_mb is not None:
        words.append(f"ulimit -d {limits.max_memory_mb << 10}")
    return ["/bin/sh", "-c", f'{{ {"; ".join(words)}; }} 2>/dev/null; exec "$@"', "sh", *argv]
