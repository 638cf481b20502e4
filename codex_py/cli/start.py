"""Loading the program. Until it is loaded, Ctrl-C ends the process without a word."""

import gc
import os
import signal
from collections.abc import Callable, Collection, Sequence
from types import FrameType

from codex_py.cli.type_ahead import take_keyboard


def start(argv: Sequence[str], *, as_apply_patch: bool) -> int:
    """Load the program and run it; the exit code. The terminal is left as it was found."""
    # A Ctrl-C that comes as the keyboard is taken waits until there is a handler that gives it back.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    give_back = take_keyboard(argv)
    try:
        return _load(as_apply_patch, give_back, unblocked)(argv)
    finally:
        give_back()


def _load(
    as_apply_patch: bool, give_back: Callable[[], None], unblocked: Collection[int]
) -> Callable[[Sequence[str]], int]:
    """`unblocked`: the mask of signals to go on with."""

    def leave(number: int, _frame: FrameType | None) -> None:
        give_back()
        os._exit(128 + number)

    # The imports make no garbage: collecting costs 6 to 10 ms. A frontend that runs long turns the
    # collector on again once it is loaded.
    gc.disable()
    # If the parent ignores it, so would we, and the kernel would drop the exit codes of our children.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        # An exception in the middle of an import may be printed and forgotten. There is nothing to clean up yet.
        signal.signal(signal.SIGINT, leave)
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    if as_apply_patch:
        from codex_py.commands.apply.envelope import main  # 25 ms
    else:
        from codex_py.cli.main import main  # 12 ms
    signal.signal(signal.SIGINT, handler)
    return main
