"""Turns signals into an exception, so that a command can undo its unfinished work before it ends.

It is for commands without an event loop, since asyncio takes 25 ms to load. The others use
`Interruption`.
"""

import signal
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal ends the command. It is no `Exception`, so no handler of errors catches it.

    Attributes:
        exit_code: the code that a shell reports for the signal.
    """

    code = "aborted"

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number


def raise_when_stopped() -> None:
    """Let the first signal raise `Stopped`, and ignore later ones."""
    for number in _ENDING:
        # Leave ignored signals so: `nohup` ignores SIGHUP for us, and a shell SIGINT for a
        # background job.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    for other in _ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped(number)
