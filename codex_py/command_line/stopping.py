"""Signals that end a command without an event loop, which first takes back what it has begun.

`Interruption` is for those with a loop: asyncio takes 25 ms to load.
"""

import signal
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal ends the command. As with `KeyboardInterrupt`, no handler of errors catches it.

    Attributes:
        exit_code: the one that a shell reports for the signal.
    """

    code = "aborted"

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number


def raise_when_stopped() -> None:
    """From now on the first signal raises `Stopped`, and further ones change nothing."""
    for number in _ENDING:
        # `nohup` ignores SIGHUP, and a shell ignores SIGINT for its background jobs.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    for other in _ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped(number)
