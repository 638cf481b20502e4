"""Unexpected exceptions: a line about one, and the event that carries its traceback to the log.
LIGHT."""

import traceback
from collections.abc import Callable
from typing import Final, cast

from codex_py.errors import single_error
from codex_py.protocol.events import BugFound
from codex_py.protocol.messages import replace_surrogates

_MAX_CHARS: Final = 1_000


def bug_line(error: BaseException) -> str:
    """One bounded line for users and models. It names any exception, even one whose `repr`
    raises."""
    return f"internal error: {_described(error)}"


def bug_found(error: BaseException) -> BugFound:
    trace = "".join(traceback.format_exception(error))
    return BugFound(_described(error), replace_surrogates(trace))


def _described(error: BaseException) -> str:
    cause = single_error(error)
    texts = [text_of(cause, repr), *_notes(cause)]
    described = " ".join("; ".join(texts).split())
    if len(described) > _MAX_CHARS:
        described = f"{described[:_MAX_CHARS]}…"
    return described


def _notes(error: BaseException) -> list[str]:
    """The notes of an exception, such as the place where it was raised."""
    notes: object = getattr(error, "__notes__", None)
    if not isinstance(notes, list):
        return []
    texts = cast("list[object]", notes)
    return [replace_surrogates(note) for note in texts if isinstance(note, str)]


def text_of(
    error: BaseException, describe: Callable[[BaseException], str] = str
) -> str:
    """The text of an exception; the name of its class if the text is empty or `describe` raises."""
    try:
        text = replace_surrogates(describe(error))
    except Exception:  # noqa: BLE001 - the method belongs to a foreign exception class
        text = ""
    return text or type(error).__name__
