"""Lock a file, so that one process at a time writes patches."""

import errno
import fcntl
import time

from codex_py.errors import PatchError

_POLL_S = 0.01
_NO_LOCKS_HERE = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""What file systems without locks say. Patching unlocked there is better than not patching."""


def lock(fd: int, deadline: float) -> None:
    """Hold the lock of a file until its descriptor is closed.

    Args:
        deadline: on the clock of `time.monotonic`; with one that is past it is tried once.

    Raises:
        PatchError: of kind `file`: another process has it until then.
        OSError: the file can not be locked.
    """
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            # There is no flock with a deadline.
            if time.monotonic() >= deadline:
                raise PatchError(
                    "Another process is writing a patch and does not come to an end", kind="file"
                ) from error
            time.sleep(_POLL_S)
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                raise
            return
        else:
            return
