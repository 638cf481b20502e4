"""Subagents in the terminal: a row for each, and the live conversation of one."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from codex_py.app.features.agents.child import ChildAgent
from codex_py.app.thread import thread_items
from codex_py.app.views.command_script import script_of
from codex_py.frontends.tui.cells.markup import unmarked
from codex_py.frontends.tui.fitting import Fragments, shortened
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.overlay import Overlays
from codex_py.frontends.tui.reading import conversation_pages, listening
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol import event_items, events
from codex_py.streams.terminal import printable

_MOST_SHOWN = 1_000
"""Characters of an agent's last message or action."""
_MOST_WORKING = 4
_WAITS = "waits for you"


@dataclass(slots=True)
class AgentNews:
    """The latest state of one subagent, read from its events, for its row."""

    last: str = ""
    """The agent's last message or action; not yet safe for a terminal."""
    tokens: int = 0
    is_working: bool = False
    readers: list[Transcript] = field(default_factory=list[Transcript])
    """Transcripts that receive the events too."""

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.UsageReported(total=total):
                self.tokens = total.total_tokens
            case events.ItemStarted(event_items.CommandExecution(command=command)):
                self.last = f"$ {script_of(command)}"
            case events.ItemCompleted(event_items.AgentMessage(text=text)):
                self.last = unmarked(text)
            case events.ItemCompleted(event_items.FileChange()):
                self.last = "changed files"
            case events.TurnFailed(error):
                self.last = error.message
                self.is_working = False
            case events.TurnStarted():
                self.is_working = True
            case events.TurnCompleted():
                self.is_working = False
            case _:
                pass
        for reader in self.readers:
            reader(event)

    @property
    def doing(self) -> str:
        """The last message or action, on one line that is safe for a terminal."""
        return " ".join(printable(self.last[:_MOST_SHOWN]).split())


def working_rows(
    agents: Mapping[str, AgentNews],
    names: Mapping[str, str],
    columns: int,
    asking: Collection[str | None] = (),
) -> list[Fragments]:
    """Make a row for each working agent, with its last action, below a blank row.

    Args:
        names: the names of agents, by the id of their thread.
        asking: the names of the agents that wait for an answer of the user; see `Status`.

    Returns:
        The rows; none if no agent works.
    """
    working = [
        (names.get(each, "agent"), news)
        for each, news in agents.items()
        if news.is_working
    ]
    rows: list[Fragments] = []
    for name, news in working[:_MOST_WORKING]:
        head = f"  {printable(name)}  "
        if name in asking:
            doing = _WAITS
        else:
            doing = news.doing or "thinks"
        rows.append(
            shortened([("class:accent", head), ("class:quiet", doing)], columns)
        )
    hidden = len(working) - _MOST_WORKING
    if hidden > 0:
        rows.append([("class:quiet", f"  … +{hidden} at work (/agents)")])
    if rows:
        return [[], *rows]
    return []


def agent_row(
    agent: ChildAgent, news: AgentNews, asking: Collection[str | None]
) -> MenuOption[ChildAgent]:
    def note() -> str:
        if agent.nickname in asking:
            state = _WAITS
        else:
            state = agent.state.status.replace("_", " ")
        parts = [state, f"{news.tokens:,} tokens", news.doing]
        return ", ".join(filter(None, parts))

    return MenuOption(_name(agent), agent, note=note)


async def read_agent(
    agent: ChildAgent,
    news: AgentNews,
    overlays: Overlays,
    interrupt: Callable[[], None],
) -> None:
    """Show the conversation of an agent, updated live, until the user leaves it."""
    items = thread_items(agent.items)
    pages, reader = conversation_pages(_name(agent), items, None, overlays.renderer)
    pages.state = lambda: agent.state.status.replace("_", " ")

    def stopping() -> str:
        if agent.state.status == "running":
            return " · {agents.stop} stops it"
        return ""

    with listening(news.readers, reader):
        await overlays.show(pages, ("c-k", stopping, interrupt))


def _name(agent: ChildAgent) -> str:
    if agent.role:
        return printable(f"{agent.nickname} ({agent.role})")
    return printable(agent.nickname)
