"""The open subagents of a session, its children's included: who they are, and how they are."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Final

from codex_py.app.features.agents.child import Child
from codex_py.core.session import Session
from codex_py.protocol.events import AgentState
from codex_py.tools.agents.params import Refused

_NICKNAMES: Final = (
    *("Ada", "Alan", "Barbara", "Dennis", "Edsger", "Emmy", "Euclid", "Euler", "Faraday"),
    *("Fourier", "Frances", "Gauss", "Grace", "Hedy", "Hilbert", "Hypatia", "Kepler", "Knuth"),
    *("Leibniz", "Margaret", "Maxwell", "Newton", "Pascal", "Radia", "Shannon", "Wirth"),
)
_BUSY: Final = {"pending_init", "running"}


class Family:
    """
    Args:
        limit: how many may be open, those that have answered included.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: dict[str, Child] = {}
        self._opening = 0
        self._changed = asyncio.Event()
        self._taken: set[str] = set()
        self.turns: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        """See `taking_turns`."""
        """Nicknames."""
        self._names: dict[str, str] = {}

    def __iter__(self) -> Iterator[Child]:
        return iter(list(self._open.values()))

    def get(self, agent_id: str) -> Child | None:
        return self._open.get(agent_id)

    def names(self) -> Mapping[str, str]:
        """Nicknames by id, also of closed ones."""
        return self._names

    def nickname(self, candidates: Sequence[str]) -> str:
        """One that no other subagent of the session has had."""
        numbered = (f"{name} {n}" for n in count(2) for name in candidates or _NICKNAMES)
        all_names: Iterable[str] = chain(candidates, () if candidates else _NICKNAMES, numbered)
        return next(name for name in all_names if name not in self._taken)

    async def add(self, child: Child, opening: AbstractAsyncContextManager[Session]) -> None:
        """Open a subagent.

        Raises:
            Refused: there are too many.
            CodexError: it cannot be opened.
        """
        if len(self._open) + self._opening >= self._limit:
            raise Refused("collab spawn failed: agent thread limit reached")
        self._opening += 1
        self._taken.add(child.nickname)
        child.on_change = self._on_change
        try:
            await child.open(opening)
        finally:
            self._opening -= 1
        self._open[child.id] = child
        self._names[child.id] = child.nickname

    async def wait(
        self, states: Callable[[], Mapping[str, AgentState]], timeout_s: float
    ) -> Mapping[str, AgentState]:
        """Wait until some of the states are those of idle agents. Returns those; none, if the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while True:
                    changed = self._changed
                    if idle := {k: s for k, s in states().items() if s.status not in _BUSY}:
                        return idle
                    await changed.wait()
        return {}

    async def close(self, ids: Iterable[str]) -> None:
        """Close these. The session of each ends, and closes those that it has opened."""
        closed = [child for each in ids if (child := self._open.pop(each, None)) is not None]
        await asyncio.gather(*(child.aclose() for child in closed))
        self._on_change()

    def _on_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
