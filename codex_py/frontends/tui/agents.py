"""What the terminal knows of subagents: a row for each, and the conversation of one while it goes on."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from codex_py.app.features.agents.child import Child
from codex_py.app.thread import thread_items
from codex_py.app.views.item_text import script_of
from codex_py.frontends.tui.fitting import Fragments, joined, panel_size, shortened
from codex_py.frontends.tui.menu import Option, bind_arrows
from codex_py.frontends.tui.panel import Panel
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol import event_items, events
from codex_py.streams.terminal import printable

_MOST_SHOWN = 1_000
"""Characters of the last that an agent said."""
_MOST_WORKING = 4
_MOST_ROWS = 20_000
"""Of a transcript; earlier ones are in the session file."""
_HINT = "arrows and pages scroll, s stops it, Esc goes back"


@dataclass(slots=True)
class AgentNews:
    """What the events of one subagent say, for its row."""

    last: str = ""
    """The last that it said or did; not yet safe for a terminal."""
    tokens: int = 0
    is_working: bool = False
    reader: events.EventSink | None = None
    """Shows the events too."""

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.UsageReported(total=total):
                self.tokens = total.total_tokens
            case events.ItemStarted(event_items.CommandExecution(command=command)):
                self.last = f"$ {script_of(command)}"
            case events.ItemCompleted(event_items.AgentMessage(text=text)):
                self.last = text
            case events.ItemCompleted(event_items.FileChange()):
                self.last = "changed files"
            case events.TurnFailed(error):
                self.last, self.is_working = error.message, False
            case events.TurnStarted() | events.TurnCompleted():
                self.is_working = isinstance(event, events.TurnStarted)
            case _:
                pass
        if self.reader is not None:
            self.reader(event)

    @property
    def doing(self) -> str:
        """The last, on one line that is safe for a terminal."""
        return " ".join(printable(self.last[:_MOST_SHOWN]).split())


def working_rows(
    agents: Mapping[str, AgentNews], names: Mapping[str, str], columns: int
) -> list[Fragments]:
    """A row for each agent that works, with what it does; `names` by thread id."""
    working = [(names.get(each, "agent"), news) for each, news in agents.items() if news.is_working]
    rows: list[Fragments] = []
    for name, news in working[:_MOST_WORKING]:
        head, doing = f"  {printable(name)}  ", news.doing or "thinks"
        rows.append(shortened([("class:accent", head), ("class:quiet", doing)], columns))
    if (hidden := len(working) - _MOST_WORKING) > 0:
        rows.append([("class:quiet", f"  … +{hidden} at work (/agents)")])
    return [[], *rows] if rows else []


def agent_row(agent: Child, news: AgentNews) -> Option[Child]:
    def note() -> str:
        parts = [agent.state.status.replace("_", " "), f"{news.tokens:,} tokens", news.doing]
        return ", ".join(filter(None, parts))

    return Option(_name(agent), agent, note=note)


class AgentReader(Panel[None]):
    """The conversation of a subagent. It follows what happens.

    Args:
        start: starts a task.
    """

    def __init__(
        self,
        agent: Child,
        news: AgentNews,
        start: Callable[[Coroutine[Any, Any, None]], None],
        renderer: Renderer,
    ) -> None:
        super().__init__(None)
        self._agent = agent
        self._news = news
        self._renderer = renderer
        self._columns = 0
        self._rows: list[Fragments] = []
        self._transcript = self._replayed(panel_size().columns)
        self._above_end = 0
        """Rows between the end of the conversation and the last one that is shown."""
        bind_arrows(self.keys, self._scroll, page=_room)
        self.take_text({"s": lambda: start(agent.interrupt())}.get)
        self.contain(self._text)
        news.reader = lambda event: self._transcript(event)
        self.result.add_done_callback(lambda _: setattr(news, "reader", None))

    def _text(self) -> Fragments:
        columns, room = panel_size().columns, _room()
        if columns != self._columns:
            self._transcript = self._replayed(columns)
        rows = [*self._rows, *self._transcript.live(columns, room)]
        self._above_end = max(0, min(self._above_end, len(rows) - room))
        end = len(rows) - self._above_end
        state = f"  {self._agent.state.status.replace('_', ' ')}  {_HINT}"
        title: Fragments = [("bold", _name(self._agent)), ("class:quiet", state)]
        return joined([shortened(title, columns), *rows[max(0, end - room) : end]])

    def _replayed(self, columns: int) -> Transcript:
        """Shows what was said so far in so many columns, and then what is said."""
        self._columns, self._rows = columns, []
        transcript = Transcript(self._renderer, self._add)
        transcript.replay(thread_items(self._agent.items))
        return transcript

    def _add(self, cell: RenderableType, space: bool) -> None:
        rows = self._renderer.fragments(cell, self._columns)
        self._rows += [[], *rows] if space else rows
        del self._rows[:-_MOST_ROWS]

    def _scroll(self, rows: int) -> None:
        self._above_end = max(0, self._above_end - rows)
        self.changed()


def _name(agent: Child) -> str:
    return printable(f"{agent.nickname} ({agent.role})" if agent.role else agent.nickname)


def _room() -> int:
    return max(1, panel_size().rows - 1)
