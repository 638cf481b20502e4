"""Describes unexpected exceptions: in a line for users, and in an event for the log. LIGHT."""

import traceback
from collections.abc import Callable
from typing import Final, cast

from codex_py.errors import single_error
from codex_py.protocol.events import BugFound
from codex_py.protocol.messages import replace_surrogates

_MAX_CHARS: Final = 1_000
"""The length of the longest description."""


def bug_line(error: BaseException) -> str:
    """Return a line of bounded length about an exception, for users and models.

    It never raises, even if the `repr` of the exception does.
    """
    return f"internal error: {_described(error)}"


def bug_found(error: BaseException) -> BugFound:
    """Return the event that brings an exception and its traceback to the log."""
    trace = "".join(traceback.format_exception(error))
    return BugFound(_described(error), replace_surrogates(trace))


def _described(error: BaseException) -> str:
    cause = single_error(error)
    texts = [text_of(cause, repr), *_notes(cause)]
    words = "; ".join(texts).split()
    described = " ".join(words)
    if len(described) > _MAX_CHARS:
        described = f"{described[:_MAX_CHARS]}…"
    return described


def _notes(error: BaseException) -> list[str]:
    """Return the notes of an exception, which may say where it was raised."""
    notes: object = getattr(error, "__notes__", None)
    if not isinstance(notes, list):
        return []
    texts = cast("list[object]", notes)
    return [replace_surrogates(note) for note in texts if isinstance(note, str)]


def text_of(
    error: BaseException, describe: Callable[[BaseException], str] = str
) -> str:
    """Return the text of an exception, or the name of its class if it has none.

    Args:
        describe: makes the text; if it raises, there is no text.
    """
    try:
        text = replace_surrogates(describe(error))
    except Exception:  # noqa: BLE001 - the method belongs to a foreign exception class
        text = ""
    return text or type(error).__name__
