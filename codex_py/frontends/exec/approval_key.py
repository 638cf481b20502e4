"""Hides the key that signs approvals from the programs that a run starts. LIGHT."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from codex_py.app.user_programs import APPROVAL_KEY


def without_key(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the key, which child processes must not see.

    The key is also erased from `/proc/PID/environ`, where the kernel shows it.
    """
    if APPROVAL_KEY in environment:
        # Without `/proc`, no other program can look there either.
        with suppress(OSError):
            _erase_key()
    return {name: value for name, value in environment.items() if name != APPROVAL_KEY}


def _erase_key() -> None:
    """Overwrite the key with zeros where the kernel keeps the environment of this process.

    Raises:
        OSError: `/proc` cannot be read, or not written.
    """
    after_name = Path("/proc/self/stat").read_bytes().rpartition(b")")[2]
    # The list begins with the third field. `env_start` is the 50th and `env_end` the 51st, see
    # proc(5). The byte before the first variable is a NUL.
    stat = after_name.split()
    start = int(stat[47]) - 1
    end = int(stat[48])
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        memory.seek(start)
        variables = memory.read(end - start)
        before, mark, after = variables.partition(b"\0%b=" % APPROVAL_KEY.encode())
        key = after.partition(b"\0")[0]
        memory.seek(start + len(before + mark))
        memory.write(bytes(len(key)))
