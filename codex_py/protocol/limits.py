"""How much of the machine a sandboxed command may use."""

from codex_py.protocol.frozen import frozen


@frozen
class SandboxLimits:
    """`[sandbox_limits]`."""

    max_processes: int = 8192
    """Processes and threads of one command and its children. Enough for 64 workers with 64 threads each, and
    few enough that a fork bomb leaves the machine some gigabytes."""
    max_open_files: int = 65536
    """Of each process. Not a million: some programs close every possible descriptor one by one."""
    max_memory_mb: int | None = None
    """Data segment of each process, in MiB; None sets no limit."""


DEFAULT_LIMITS = SandboxLimits()
