"""The process group of a command, and signals that reach no one else."""

import os
import subprocess
from contextlib import suppress


class ProcessGroup:
    """The group, and session, whose leader a `Popen` with `start_new_session` is.

    A group id cannot be given away while the leader is unreaped or any member lives. So once the
    leader is reaped, a process of that id proves that the group has ended and the id is a stranger's.
    """

    def __init__(self, leader: subprocess.Popen[bytes]) -> None:
        self.id = leader.pid
        self._leader = leader

    def has_members(self) -> bool:
        """Whether a process of the group is left; an unreaped leader counts."""
        if self._is_reused():
            return False
        try:
            os.killpg(self.id, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            # Members that are not ours to signal; on macOS also a zombie.
            pass
        return True

    def send_signal(self, number: int) -> None:
        """Signal every member; nothing happens where none is left."""
        if not self._is_reused():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.id, number)

    def _is_reused(self) -> bool:
        if self._leader.returncode is None:
            return False
        try:
            os.kill(self.id, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True
