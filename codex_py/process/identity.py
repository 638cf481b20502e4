"""Gives a process of this machine a name that no later process has, even one with the same id."""

import os
import platform
import re
from pathlib import Path


def process_name() -> str:
    """Return the name of this process: the machine, the process id and the start time.

    It consists of letters, digits, `_` and `-`.
    """
    return f"{_machine()}-{os.getpid()}-{_began(os.getpid())}"


def is_over(text: str) -> bool:
    """True if the text belongs to a process of this machine that has ended.

    Such a text begins with the `process_name` of the process, and `-`.
    """
    found = re.match(r"(\w*)-(\d+)-(\d*)-", text)
    if found is None:
        return False
    machine, process, began = found.groups()
    return machine == _machine() and began != _began(int(process))


def _machine() -> str:
    """Return the name of the machine, with `_` for every character that is no letter or digit."""
    return re.sub(r"\W", "_", platform.node(), flags=re.ASCII)


def _began(process: int) -> str | None:
    """Return the start time of a process as digits, in the system's own unit.

    Returns None if the process does not run or is another user's, and an empty text if the time is
    unknown.
    """
    try:
        os.kill(process, 0)
        status = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
        # proc(5): the time is the 22nd field. The second is a name in parentheses that may have
        # blanks, so count behind it.
        _, _, fields = status.rpartition(")")
        return fields.split()[19]
    except (ProcessLookupError, PermissionError):
        return None
    except OSError:
        return ""
