"""The signals that a command ignores when it starts."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

_KEYBOARD = (signal.SIGINT, signal.SIGQUIT)


@contextmanager
def default_keyboard_signals() -> Generator[None]:
    """Let commands that are started meanwhile be interrupted by the keyboard, even if we ignore that ourselves.

    A shell without job control starts `codex-py exec … &` with these signals ignored. Every command inherits
    that, and shells cannot undo it. A signal that is caught is reset in a command.
    """
    ignored = [number for number in _KEYBOARD if signal.getsignal(number) is signal.SIG_IGN]
    if not ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    for number in ignored:
        signal.signal(number, _do_nothing)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


def _do_nothing(_number: int, _frame: object) -> None:
    pass
