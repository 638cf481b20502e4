"""How much of the machine a sandboxed command may use."""

from codex_py.protocol.frozen import frozen


@frozen
class SandboxLimits:
    """`[sandbox_limits]`."""

    max_processes: int = 8192
    """Of one command and all that it starts; threads count. Room for 64 workers with 64 threads each, and
    few enough that a fork bomb leaves the machine some gigabytes."""
    max_open_files: int = 65536
    """Of each process. Programs exist that visit every possible descriptor, so not a million."""
    max_memory_mb: int | None = None
    """Data of each process, in MiB; None for no bound of ours."""


DEFAULT_LIMITS = SandboxLimits()
