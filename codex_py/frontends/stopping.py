"""Signals that end a command without an event loop: what it has begun is taken back first."""

import signal
from types import FrameType

from codex_py.frontends.streams import OutputStream

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """One of them has come. As the interrupt from the keyboard, it passes by all that handles errors.

    Attributes:
        exit_code: what a shell reports for the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number

    def tell(self) -> int:
        """Say so on standard error; the exit code."""
        OutputStream(2).write_text(f"Error: {self}\n")
        return self.exit_code


def raise_when_stopped() -> None:
    """From now on the first signal raises `Stopped`, and more of them change nothing."""
    for number in _ENDING:
        # `nohup` asks to live on when the terminal goes, and a shell has its background jobs so.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    for other in _ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise Stopped(number)
