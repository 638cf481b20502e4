"""Pseudo-terminals for commands that need one."""

import fcntl
import os
import struct
import termios
from collections.abc import Sequence
from dataclasses import dataclass

_ROWS, _COLUMNS = 40, 120

# A session leader without a terminal gets the first one that it opens as its controlling terminal. A shell does so
# in the child: with our own code between fork and exec, the child could not be started by vfork.
_ATTACH = 'exec "$@" <>"$0" >&0 2>&1'


@dataclass(slots=True)
class Terminal:
    """Both ends of a pseudo-terminal. The caller closes them."""

    master: int
    """Not blocking."""
    slave: int
    """Kept open while the command starts and runs: without any open end, reading the master fails."""
    path: str

    def attached(self, argv: Sequence[str]) -> list[str]:
        """The command line that gives `argv` the terminal. It is to be run as the leader of a new session."""
        return ["/bin/sh", "-c", _ATTACH, self.path, *argv]


def open_terminal() -> Terminal:
    """A new terminal of 40 rows and 120 columns.

    Raises:
        OSError: the system has none left.
    """
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    os.set_blocking(master, False)
    return Terminal(master, slave, os.ttyname(slave))
