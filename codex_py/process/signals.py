"""The signals that a command starts with."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

_KEYBOARD = (signal.SIGINT, signal.SIGQUIT)


@contextmanager
def default_keyboard_signals() -> Generator[None]:
    """Let what is started meanwhile be interrupted from its terminal, although we may not be.

    A shell without job control starts `codex-py exec … &` with these signals ignored. That is inherited
    by every command, and a shell cannot take it back. A signal that we catch is not inherited.
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
