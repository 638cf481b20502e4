"""Signals the process group of a command, and nobody else."""

import os
import subprocess
from contextlib import suppress


class ProcessGroup:
    """The group (and session) that a `Popen` with `start_new_session` leads.

    The kernel does not reuse the id while the leader is unreaped or a member lives. So if there is a process with
    that id after the leader was reaped, the group has ended and the id belongs to a stranger.
    """

    def __init__(self, leader: subprocess.Popen[bytes]) -> None:
        self.id = leader.pid
        self._leader = leader

    def has_members(self) -> bool:
        """True if a process of the group is left; an unreaped leader counts."""
        if self._is_reused():
            return False
        try:
            os.killpg(self.id, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            # We may not signal a member; on macOS this also means a zombie.
            pass
        return True

    def send_signal(self, number: int) -> None:
        """Signal every member, if any is left."""
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
