"""Loads the program. Until it is loaded, Ctrl-C ends the process silently."""

import gc
import os
import signal
from collections.abc import Callable, Collection, Sequence
from types import FrameType

from codex_py.cli.type_ahead import take_keyboard


def start(argv: Sequence[str], *, as_apply_patch: bool) -> int:
    """Load the program and run it. Restores the terminal, and returns the exit code.

    Args:
        as_apply_patch: run `apply_patch` in place of `codex-py`.
    """
    # Ctrl-C waits until its handler can restore the keyboard.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    give_back = take_keyboard(argv)
    try:
        return _load(as_apply_patch, give_back, unblocked)(argv)
    finally:
        give_back()


def _load(
    as_apply_patch: bool,
    give_back: Callable[[], None],
    unblocked: Collection[int],
) -> Callable[[Sequence[str]], int]:
    """Import the program and return its `main`.

    Args:
        give_back: restores the keyboard; called if Ctrl-C ends the process.
        unblocked: the signal mask to restore.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        give_back()
        os._exit(128 + number)

    # The imports make no garbage, and looking for it costs 6 to 10 ms. A frontend that runs long
    # turns the collector on again once it is loaded.
    gc.disable()
    # A parent that ignores SIGCHLD makes us ignore it too: the kernel then drops the exit codes of
    # our children.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        # An exception inside an import may be printed and then ignored, so Ctrl-C ends the process
        # directly. There is nothing to clean up yet.
        signal.signal(signal.SIGINT, leave)
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    if as_apply_patch:
        from codex_py.commands.apply.envelope import main  # 25 ms
    else:
        from codex_py.cli.main import main  # 12 ms
    signal.signal(signal.SIGINT, handler)
    return main
