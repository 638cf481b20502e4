"""A summary of the calls that were refused in a turn."""

from dataclasses import field

from codex_py.protocol.frozen import frozen


@frozen
class Denied:
    calls: int = 0
    allow: tuple[str, ...] = ()
    """The options and settings that would allow them, each once; empty if none would."""
    causes: tuple[str, ...] = field(default=(), metadata={"json": False})
    """Why they were refused, as clauses for the user, each once."""

    def plus(self, cause: str | None, allow: str | None) -> "Denied":
        """Add one refused call."""
        return Denied(self.calls + 1, _with(self.allow, allow), _with(self.causes, cause))


def _with(values: tuple[str, ...], value: str | None) -> tuple[str, ...]:
    return values if value is None or value in values else (*values, value)
