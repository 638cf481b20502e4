"""Makes the ids of threads and calls, and the time stamps of session files."""

import os
import re
import time
from datetime import UTC, datetime, timedelta

_UUID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)
_UUID_VERSION = 0x7
_UUID_VARIANT = 0b10


def new_thread_id() -> str:
    """Return a fresh UUIDv7 in lower case.

    The ids of one machine sort in the order in which they were made.

    Source: RFC 9562, 5.7, with the fraction of the millisecond in `rand_a` (6.2, method 3).
    """
    ms, ns = divmod(time.time_ns(), 1_000_000)
    fraction = ns * 4096 // 1_000_000
    random = int.from_bytes(os.urandom(8)) >> 2
    number = ms << 80
    number |= _UUID_VERSION << 76
    number |= fraction << 64
    number |= _UUID_VARIANT << 62
    number |= random
    digits = f"{number:032x}"
    groups = (
        digits[:8],
        digits[8:12],
        digits[12:16],
        digits[16:20],
        digits[20:],
    )
    return "-".join(groups)


def new_call_id() -> str:
    """Return a fresh id for a call to which the server gave none."""
    return f"call_{os.urandom(16).hex()}"


def is_thread_id(text: str) -> bool:
    """True if the text is a UUID of any version. Any other text can only be a thread's name."""
    return _UUID.fullmatch(text) is not None


def utc_timestamp(later_ms: int = 0) -> str:
    """Return the current time, or a later one, in the form `2026-11-20T17:52:59.450Z`."""
    moment = datetime.now(UTC) + timedelta(milliseconds=later_ms)
    time_text = moment.isoformat(timespec="milliseconds")
    return time_text.removesuffix("+00:00") + "Z"
