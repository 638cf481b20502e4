"""Writes ages and durations in words."""

from datetime import UTC, datetime


def age(time: datetime) -> str:
    """Return how long ago a time was, in words: `just now`, `5 min ago`, `2 h ago`, `3 d ago`."""
    seconds = int((datetime.now(UTC) - time).total_seconds())
    lengths = {"d": 86_400, "h": 3_600, "min": 60}
    for unit, length in lengths.items():
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return "just now"


def took(milliseconds: int) -> str:
    """Return how long something took, in words: `<1s`, `1.2s`, `42s`, `3m 05s`."""
    if milliseconds < 1000:
        return "<1s"
    if milliseconds < 10_000 and milliseconds % 1000:
        return f"{milliseconds / 1000:.1f}s"
    return duration(milliseconds // 1000)


def duration(seconds: int) -> str:
    """Return a whole number of seconds in words: `42s`, `3m 05s`, `1h 02m`."""
    minutes, seconds = divmod(seconds, 60)
    if not minutes:
        return f"{seconds}s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02}m"
    return f"{minutes}m {seconds:02}s"
