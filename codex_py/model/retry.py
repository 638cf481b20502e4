"""How often a turn tries again, and how long it waits before."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from codex_py.errors import ModelError, StreamError

_MAX_RETRIES = 100
_BASE_DELAY_S = 0.2
_MAX_DELAY_S = 30.0
_MAX_SERVER_DELAY_S = 120.0
"""A server that asks for more is not waited for: whoever is waiting should rather be told."""
_MAX_TOTAL_S = 600.0
"""What one turn may wait in all."""


@dataclass(frozen=True, slots=True)
class Retry:
    attempt: int
    """From 1."""
    maximum: int
    delay_s: float


class Retries:
    """What is left to one turn: retries of requests and of begun streams, and time to wait.

    The defaults, the two phases and the back-off are those of Codex: 0.2 s, doubled each time, ±10 %.
    """

    def __init__(
        self, request_max: int, stream_max: int, *, random: Callable[[], float] = random.random
    ) -> None:
        """`random` gives numbers from 0 to 1, for the jitter."""
        self._request_max = min(request_max, _MAX_RETRIES)
        self._stream_max = min(stream_max, _MAX_RETRIES)
        self._random = random
        self._requests = 0
        self._streams = 0
        self._waited_s = 0.0

    def next(self, error: ModelError) -> Retry | None:
        """Use up a retry for this failure; None where the failure is final. The caller sleeps."""
        if not isinstance(error, StreamError):
            return None
        used = self._streams if error.started else self._requests
        maximum = self._stream_max if error.started else self._request_max
        delay_s = self._delay_s(used + 1, error.retry_after_s)
        if used >= maximum or delay_s is None or self._waited_s + delay_s > _MAX_TOTAL_S:
            return None
        self._waited_s += delay_s
        if error.started:
            self._streams += 1
        else:
            self._requests += 1
        return Retry(used + 1, maximum, delay_s)

    def _delay_s(self, attempt: int, asked_s: float | None) -> float | None:
        if asked_s is not None and asked_s > _MAX_SERVER_DELAY_S:
            return None
        jitter = 0.9 + 0.2 * self._random()
        delay_s = min(_BASE_DELAY_S * 2.0 ** (attempt - 1), _MAX_DELAY_S) * jitter
        # A server's word is kept to the full, and a 0 from it is no leave to hammer it.
        return delay_s if asked_s is None else max(asked_s, delay_s)
