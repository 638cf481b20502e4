"""Signals that end a command without an event loop, which first undoes its unfinished work.

Commands with a loop use `Interruption`: asyncio takes 25 ms to load.
"""

import signal
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal ends the command. As with `KeyboardInterrupt`, no handler of errors catches it.

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
        # `nohup` ignores SIGHUP, and a shell ignores SIGINT for its background jobs.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    for other in _ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped(number)
