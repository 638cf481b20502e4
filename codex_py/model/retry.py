"""Limits the retries of requests, and computes the wait before each attempt."""

import random
from collections.abc import Callable

from codex_py.errors import ModelError, StreamError
from codex_py.protocol.stream import Retry

_MAX_RETRIES = 100
_MAX_TURN_RETRIES = 200
"""The limit for one turn: a service that breaks every request once would otherwise keep it alive
for ever."""
_BASE_DELAY_S = 0.2
_MAX_DELAY_S = 30.0
MAX_SERVER_DELAY_S = 120.0
"""If the server asks for a longer wait, the turn fails at once, so that the user knows."""
_MAX_REQUEST_WAIT_S = 600.0
"""The limit of all waits together before the attempts of one request."""


class Retries:
    """The retries that one turn has left.

    Each request has its own allowance, in the two layers of Codex: `stream_max` retries of a stream
    that breaks or does not begin, and before each of them `request_max` retries of a request
    without an answer. The back-off of each layer is 0.2 s, doubled each time up to 30 s, ±10 %. The
    total wait for one request, and the retries of the whole turn, are limited too.
    """

    def __init__(
        self,
        request_max: int,
        stream_max: int,
        *,
        random: Callable[[], float] = random.random,
    ) -> None:
        """`random` gives numbers from 0 to 1, for the jitter."""
        self._request_max = min(request_max, _MAX_RETRIES)
        self._stream_max = min(stream_max, _MAX_RETRIES)
        self._random = random
        self._turn_used = 0
        self.renew()

    def renew(self) -> None:
        """Give the next request a full allowance, because the last one succeeded."""
        self._requests = 0
        self._streams = 0
        self._attempt = 0
        self._waited_s = 0.0

    def next(self, error: ModelError) -> Retry | None:
        """Use up a retry for this failure; None if the failure is final.

        The caller does the waiting.
        """
        if not isinstance(error, StreamError) or self._turn_used >= _MAX_TURN_RETRIES:
            return None
        if not error.started and self._requests < self._request_max:
            requests = self._requests + 1
            streams = self._streams
        else:
            requests = 0
            streams = self._streams + 1
        max_streams = 0 if error.few_retries else self._stream_max
        if streams > max_streams:
            return None
        delay_s = self._delay_s(requests or streams, error.retry_after_s)
        if delay_s is None or self._waited_s + delay_s > _MAX_REQUEST_WAIT_S:
            return None
        self._turn_used += 1
        self._waited_s += delay_s
        self._attempt += 1
        self._requests = requests
        self._streams = streams
        left = max_streams - streams
        if not error.started:
            # Each stream that is left begins with a request and all retries of it.
            left = left * (self._request_max + 1) + self._request_max - requests
        left = min(left, _MAX_TURN_RETRIES - self._turn_used)
        return Retry(self._attempt, self._attempt + left, delay_s)

    def _delay_s(
        self,
        attempt: int,
        asked_s: float | None,
    ) -> float | None:
        """The wait before an attempt; None if the server asks for too long a wait.

        `asked_s`: the wait that the server asks for.
        """
        if asked_s is not None and asked_s > MAX_SERVER_DELAY_S:
            return None
        doubled_s = _BASE_DELAY_S * 2.0 ** (attempt - 1)
        jitter = 0.9 + 0.2 * self._random()
        delay_s = min(doubled_s, _MAX_DELAY_S) * jitter
        # Wait as long as the server asks, but never less than the back-off, even if the server asks
        # for 0.
        if asked_s is None:
            return delay_s
        return max(asked_s, delay_s)
