"""Supports features that judge the work of a turn before it may end. LIGHT."""

from collections.abc import Generator
from contextlib import contextmanager

from codex_py.app.features.agents.feature import SubAgents
from codex_py.app.features.copies_place import place_of_copies
from codex_py.app.features.turn_changes import TurnChanges
from codex_py.app.options import SessionSetup
from codex_py.app.session_tools import SessionTools
from codex_py.protocol.extension import Thread


def turn_changes(thread: Thread) -> TurnChanges:
    """Return the record of the changes of a session. Call it only once the session has started."""
    changes = thread.feature(TurnChanges)
    assert changes is not None
    return changes


@contextmanager
def comparing_files(setup: SessionSetup, changes: TurnChanges) -> Generator[None]:
    """Make sure within a turn that the work tree can be compared with its state at the start.

    The copies for that are in the home, or in the repository if the home cannot be written to.

    Raises:
        ConfigError: neither can be written to.
    """
    with place_of_copies(setup.config) as place:
        changes.use_place(place)
        yield


async def end_work(thread: Thread) -> None:
    """End the subagents and commands of a session that still run.

    They cannot change files afterwards. Those that may outlive the turn go on.
    """
    agents = thread.feature(SubAgents)
    if agents is not None:
        await agents.end_work()
    tools = thread.feature(SessionTools)
    if tools is not None:
        await tools.end_commands()
