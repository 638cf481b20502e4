"""Work that is finished even when the program is told twice to end, because others rely on its end.

It takes a bounded time, and may run in any thread.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager

_changed = threading.Condition()
"""Told when work has ended."""
_running: list[str] = []
"""What runs, in words."""


@contextmanager
def finishing(what: str) -> Generator[None]:
    """Mark work that a second signal must not cut off. `what`: the work in words."""
    with _changed:
        _running.append(what)
    try:
        yield
    finally:
        with _changed:
            _running.remove(what)
            _changed.notify_all()


def being_finished() -> str | None:
    """Return the work that has to be finished first, in words; None if nothing has.

    A signal handler may ask: this takes no lock.
    """
    return next(iter(_running), None)


def wait_until_finished() -> None:
    """Block until there is no such work."""
    with _changed:
        _changed.wait_for(lambda: not _running)
