"""Names a process of this machine such that a later one with the same id has another name."""

import os
import platform
import re
from pathlib import Path


def process_name() -> str:
    """The machine, the id, and when this process began. Letters, digits, `_` and `-`."""
    return f"{_machine()}-{os.getpid()}-{_began(os.getpid())}"


def is_over(text: str) -> bool:
    """True if the text begins with the `process_name`, and `-`, of a process of this machine that
    has ended."""
    found = re.match(r"(\w*)-(\d+)-(\d*)-", text)
    return (
        found is not None
        and found[1] == _machine()
        and _began(int(found[2])) != found[3]
    )


def _machine() -> str:
    return re.sub(r"\W", "_", platform.node(), flags=re.ASCII)


def _began(process: int) -> str | None:
    """The start time of a process in the system's form; None if it does not run, empty if the time
    is unknown."""
    try:
        os.kill(process, 0)
        # proc(5): the 22nd field, but the second, a name in parentheses, may have blanks.
        fields = (
            Path(f"/proc/{process}/stat")
            .read_text("utf-8", "replace")
            .rpartition(")")[2]
        )
        return fields.split()[19]
    except (ProcessLookupError, PermissionError):
        return None
    except OSError:
        return ""
