"""Lets Esc end the input of a program that reads lines from a terminal."""

import os
import select
import termios
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

ESCAPE: Final = b"\x1b"
_SEQUENCE_S: Final = 0.05
"""The time within which the rest of a key's sequence follows its Esc."""
_SEQUENCE_BYTES: Final = 64
_INTRODUCERS: Final = b"[O"
_LOCAL_MODES: Final = 3
_CHARACTERS: Final = 6
"""Indexes of the attributes of a terminal."""


@contextmanager
def escape_ends_lines(terminal: int) -> Generator[None]:
    """Let Esc end a line as Enter does, so that a reader gets it at once. Does nothing elsewhere
    than on a terminal."""
    try:
        before = termios.tcgetattr(terminal)
        changed = termios.tcgetattr(terminal)
    except termios.error:
        yield
        return
    changed[_CHARACTERS][termios.VEOL] = ESCAPE
    termios.tcsetattr(terminal, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def escape_was_alone(terminal: int) -> bool:
    """Call it after an Esc was read. False if another key has sent it, whose sequence is dropped."""
    with suppress(termios.error):
        before = termios.tcgetattr(terminal)
        changed = termios.tcgetattr(terminal)
        # The terminal holds the rest of a line back until it is complete.
        changed[_LOCAL_MODES] &= ~termios.ICANON
        termios.tcsetattr(terminal, termios.TCSANOW, changed)
        try:
            return not _drop_sequence(terminal)
        finally:
            termios.tcsetattr(terminal, termios.TCSANOW, before)
    return True


def _drop_sequence(terminal: int) -> bool:
    """Read the rest of a key's sequence, and nothing after it. False if there is none."""
    first = _byte_soon(terminal)
    if first and first in _INTRODUCERS:
        for _ in range(_SEQUENCE_BYTES):
            # A letter or a tilde is the end; digits and signs stand before it.
            if not b"\x20" <= _byte_soon(terminal) < b"\x40":
                break
    return bool(first)


def _byte_soon(terminal: int) -> bytes:
    """The next byte; empty if none follows at once."""
    ready, _, _ = select.select([terminal], [], [], _SEQUENCE_S)
    return os.read(terminal, 1) if ready else b""
