"""Ids of threads and calls, and the time stamps of session files, as text."""

import os
import re
import time
from datetime import UTC, datetime

_UUID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)


def new_thread_id() -> str:
    """A fresh UUIDv7 in lower case. Ids of one machine sort in the order in which they were made.

    Source: RFC 9562, 5.7, with the fraction of the millisecond in `rand_a` (6.2, method 3).
    """
    ms, ns = divmod(time.time_ns(), 1_000_000)
    fraction = ns * 4096 // 1_000_000
    random = int.from_bytes(os.urandom(8)) >> 2
    digits = f"{ms << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | random:032x}"
    groups = (
        digits[:8],
        digits[8:12],
        digits[12:16],
        digits[16:20],
        digits[20:],
    )
    return "-".join(groups)


def new_call_id() -> str:
    """A fresh id for a call whose server gave none."""
    return f"call_{os.urandom(16).hex()}"


def is_thread_id(text: str) -> bool:
    """True if the text is a UUID of any version, which makes it an id and not a name."""
    return _UUID.fullmatch(text) is not None


def utc_timestamp() -> str:
    """The current time in the form `2026-11-20T17:52:59.450Z`."""
    return (
        datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        + "Z"
    )
