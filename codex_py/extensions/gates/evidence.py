"""Evidence: the commands of a turn that ran to their end, with their results. LIGHT.

It also says whether a file changed after a command. It comes from our own record, not from the
words of the model.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from codex_py.api.events import (
    AgentEvent,
    CommandExecution,
    Event,
    FileChange,
    FilesPatched,
    ItemCompleted,
    ItemStarted,
    McpToolCall,
)
from codex_py.api.scripts import plain_commands
from codex_py.api.turn_changes import TurnChanges

_MAX_KEPT: Final = 100
"""The largest number of commands kept in a turn; the oldest are dropped first."""
_MAX_CHARS: Final = 1000


@dataclass(slots=True)
class _Ran:
    """A command that ran to its end."""

    command: str
    words: str
    """The words that patterns are compared with; empty if the exit code proves nothing."""
    exit_code: int
    is_asked_for: bool
    """True if a pattern matches the words."""
    state: object = None
    """The state of the work tree after the command; None if it is unknown. Set only for commands
    that a pattern asks for."""
    is_last: bool = True
    """True if no file is known to have changed since."""


class Evidence:
    """The evidence of one turn.

    Args:
        patterns: globs for the whole commands that are asked for.
        cwd: the folder of the session, where the commands must run.
        changes: the changes of the turn; None if they are unknown.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        cwd: Path,
        changes: TurnChanges | None = None,
    ) -> None:
        self._patterns = patterns
        self._cwd = cwd
        self._changes = changes
        self._ran: list[_Ran] = []
        self._new: list[_Ran] = []
        """Commands that a pattern asks for and that succeeded, if nothing was started since."""
        self._running: dict[tuple[str, str], bool] = {}
        """The items that have not ended, by thread and id; True if nothing else has run
        meanwhile."""

    def watch(self, event: Event) -> None:
        """Take an event of the session or of a subagent."""
        agent = ""
        if isinstance(event, AgentEvent):
            agent = event.thread_id
            event = event.event
        match event:
            case ItemStarted(CommandExecution() | FileChange() | McpToolCall() as item):
                self._start((agent, item.id))
            case ItemCompleted(CommandExecution(exit_code=int(code)) as item):
                was_alone = self._running.pop((agent, item.id), False)
                words = "" if agent else _proving_words(item, self._cwd)
                ran = self._add(item.command, words, code)
                if code == 0 and was_alone and ran.is_asked_for:
                    self._new.append(ran)
            case ItemCompleted(
                CommandExecution() | FileChange() | McpToolCall() as item
            ):
                self._running.pop((agent, item.id), None)
            case FilesPatched():
                for earlier in self._ran:
                    earlier.is_last = False
            case _:
                pass

    def _start(self, key: tuple[str, str]) -> None:
        """Take the start of an item: neither it nor the items beside it have run alone."""
        # A command may have read a file before a command beside it changed that file.
        is_alone = not self._running
        for other in self._running:
            self._running[other] = False
        self._running[key] = is_alone
        # A change may follow the commands that have just ended, before the work tree is looked at.
        self._new.clear()

    def _add(
        self,
        command: str,
        words: str,
        exit_code: int,
    ) -> _Ran:
        for earlier in self._ran:
            # A command that is asked for is compared with the work tree later.
            if not earlier.is_asked_for:
                earlier.is_last = False
        patterns = self._patterns if words else ()
        is_asked_for = any(fnmatchcase(words, each) for each in patterns)
        ran = _Ran(command, words, exit_code, is_asked_for)
        self._ran = [*self._ran[1 - _MAX_KEPT :], ran]
        return ran

    async def look(self) -> None:
        """Look at the work tree between two responses, if a command that is asked for has ended."""
        new = self._new
        self._new = []
        if new:
            state = await self._state()
            for ran in new:
                ran.state = state

    async def settle(self) -> None:
        """Find out, when the model is done, whether files changed after these commands."""
        await self.look()
        asked = [ran for ran in self._ran if ran.is_last and ran.is_asked_for]
        now = None
        if any(ran.state is not None for ran in asked):
            now = await self._state()
        for ran in asked:
            ran.is_last = now is not None and ran.state == now

    def verdicts(self) -> Iterator[tuple[str, str | None]]:
        """Pair each pattern with the reason why it has no evidence, or with None if it has some."""
        for pattern in self._patterns:
            yield pattern, self._missing(pattern)

    def _missing(self, pattern: str) -> str | None:
        """Return the reason why a pattern has no evidence; None if it has some."""
        matching = [
            ran for ran in self._ran if ran.words and fnmatchcase(ran.words, pattern)
        ]
        if not matching:
            return "no such command was run; run it alone, in the folder of the session"
        succeeded = [ran for ran in matching if ran.exit_code == 0]
        if not succeeded:
            last = matching[-1]
            return f"it failed: {last.command!r} ended with {last.exit_code}"
        if not any(ran.is_last for ran in succeeded):
            return "files were changed after it, or beside it; run it again"
        return None

    @property
    def data(self) -> list[dict[str, Any]]:
        """The commands and their results, for the facts of the turn."""
        return [
            {
                "command": ran.command[:_MAX_CHARS],
                "exit_code": ran.exit_code,
                "after_last_change": ran.is_last,
            }
            for ran in self._ran
        ]

    async def _state(self) -> object:
        if self._changes is None:
            return None
        return await self._changes.state()


def _proving_words(item: CommandExecution, cwd: Path) -> str:
    """Return the words of the command, or an empty text if its exit code proves nothing.

    The exit code counts if the command is the only one of the item, and ran in `cwd`. For instance,
    `pytest || true` succeeds whatever the tests do, `exit 0 && pytest` without them, and `cd x &&
    pytest` with others.
    """
    try:
        commands = plain_commands(shlex.split(item.command)) or ()
    except ValueError:
        return ""
    if len(commands) != 1 or item.cwd != str(cwd):
        return ""
    words = commands[0]
    if " " in words[0]:
        # A program named `pytest -q` is not `pytest`.
        return ""
    return " ".join(words)
