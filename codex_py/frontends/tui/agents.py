"""The subagents on the terminal: `/agents` lists them, shows what one says and does, and stops one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import ANSI, split_lines, to_formatted_text
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import HSplit, Window
from prompt_toolkit.layout.controls import FormattedTextControl

from codex_py.app.thread import thread_items
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.cells.command import script_of
from codex_py.frontends.tui.fitting import Fragments, joined, panel_rows, shortened, window, wrapped
from codex_py.frontends.tui.key_codes import ESC, bind
from codex_py.frontends.tui.panel import Panel
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol import events

if TYPE_CHECKING:
    from codex_py.app.features.agents.child import Child

_MOST_ROWS = 20_000
"""Of a transcript; earlier ones are in the session file."""
_LIST_HINT = "Enter reads, s stops, Esc leaves"
_READ_HINT = "arrows and pages scroll, s stops, Esc goes back"


@dataclass(slots=True)
class AgentNews:
    """What the events of one subagent say, for its row."""

    last: str = ""
    """The last that it said or did; not yet safe for a terminal."""
    tokens: int = 0
    is_working: bool = False
    reader: Callable[[events.Event], None] = field(default=lambda _: None)
    """Shows the events too."""

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.UsageReported(total=total):
                self.tokens = total.total_tokens
            case events.ItemStarted(events.CommandExecution(command=command)):
                self.last = f"$ {script_of(command)}"
            case events.ItemCompleted(events.AgentMessage(text=text)):
                self.last = text
            case events.ItemCompleted(events.FileChange()):
                self.last = "changed files"
            case events.TurnFailed(error):
                self.last, self.is_working = error.message, False
            case events.TurnStarted() | events.TurnCompleted():
                self.is_working = isinstance(event, events.TurnStarted)
            case _:
                pass
        self.reader(event)


class AgentsPanel(Panel[None]):
    """The list of the subagents, or the conversation of one of them. Both follow what happens.

    Args:
        agents: those that are open.
        news: of one, by its id.
        stop: ends what one is at.
    """

    def __init__(
        self,
        agents: Callable[[], Sequence["Child"]],
        news: Callable[[str], AgentNews],
        stop: Callable[["Child"], None],
        renderer: Renderer,
    ) -> None:
        super().__init__()
        self._agents = agents
        self._news = news
        self._stop = stop
        self._renderer = renderer
        self._selected = 0
        self._reading: _Reading | None = None
        self._scrolled = 0
        """Rows between the end of the conversation and the last one that is shown."""
        keys = KeyBindings()
        bind(keys, "up c-p", lambda _: self._move(-1))
        bind(keys, "down c-n", lambda _: self._move(1))
        bind(keys, "pageup", lambda _: self._move(-_room()))
        bind(keys, "pagedown", lambda _: self._move(_room()))
        bind(keys, "enter", lambda _: self._read())
        bind(keys, "s", lambda _: self._stop_selected())
        bind(keys, ESC, lambda _: self._back())
        bind(keys, "c-c", lambda _: self.give(None))
        bind(keys, "<any>", lambda _: None)
        control = FormattedTextControl(
            self._text, focusable=True, key_bindings=keys, show_cursor=False
        )
        self.container = HSplit([Window(control, dont_extend_height=True)])
        self.result.add_done_callback(lambda _: self._close())

    def _text(self) -> Fragments:
        columns = get_app().output.get_size().columns
        agents = self._agents()
        if self._reading is not None:
            return self._conversation(self._reading, columns)
        self._selected = max(0, min(self._selected, len(agents) - 1))
        rows = [_on_one_row([("bold", "Agents"), ("class:quiet", f"  {_LIST_HINT}")], columns)]
        for n in window(self._selected, len(agents), max(1, _room())):
            style, sign = ("bold", "> ") if n == self._selected else ("", "  ")
            name, rest = self._row(agents[n])
            rows.append(_on_one_row([(style, f"{sign}{name}"), ("class:quiet", rest)], columns))
        return joined(rows if agents else [*rows, [("class:quiet", "  no agent is open")]])

    def _row(self, agent: "Child") -> tuple[str, str]:
        news, role = self._news(agent.id), f" ({agent.role})" if agent.role else ""
        parts = [agent.state.status.replace("_", " "), f"{news.tokens:,} tokens"]
        if last := " ".join(printable(news.last[:1000]).split()):
            parts.append(last)
        return printable(f"{agent.nickname}{role}"), f"  {', '.join(parts)}"

    def _conversation(self, reading: "_Reading", columns: int) -> Fragments:
        name, state = self._row(reading.agent)
        head: Fragments = [("bold", name), ("class:quiet", f"{state.split(', ')[0]}  {_READ_HINT}")]
        room = _room()
        if reading.columns != columns:
            reading = self._open(reading.agent, columns)
        rows = reading.rows(room)
        self._scrolled = max(0, min(self._scrolled, len(rows) - room))
        end = len(rows) - self._scrolled
        return joined([_on_one_row(head, columns), *rows[max(0, end - room) : end]])

    def _move(self, rows: int) -> None:
        if self._reading is not None:
            self._scrolled = max(0, self._scrolled - rows)
        elif agents := self._agents():
            self._selected = (self._selected + rows) % len(agents)
        self.changed()

    def _read(self) -> None:
        agents = self._agents()
        if self._reading is None and agents:
            agent = agents[self._selected]
            self._scrolled = 0
            self._open(agent, get_app().output.get_size().columns)
            self.changed()

    def _open(self, agent: "Child", columns: int) -> "_Reading":
        self._reading = _Reading(agent, self._renderer, columns)
        self._news(agent.id).reader = self._reading.transcript
        return self._reading

    def _back(self) -> None:
        if self._reading is None:
            self.give(None)
        self._close()
        self.changed()

    def _close(self) -> None:
        if self._reading is not None:
            self._news(self._reading.agent.id).reader = lambda _: None
            self._reading = None

    def _stop_selected(self) -> None:
        agents = self._agents()
        if self._reading is not None:
            self._stop(self._reading.agent)
        elif agents:
            self._stop(agents[self._selected])


class _Reading:
    """The conversation of a subagent as rows of so many columns."""

    def __init__(self, agent: "Child", renderer: Renderer, columns: int) -> None:
        self.agent = agent
        self.columns = columns
        self._rows: list[Fragments] = []
        self.transcript = Transcript(
            renderer, print_lines=self._print, changed=lambda: None, width=lambda: columns
        )
        self.transcript.replay(thread_items(agent.items))

    def rows(self, max_live: int) -> list[Fragments]:
        return [*self._rows, *self.transcript.live(self.columns, max_live)]

    def _print(self, lines: str) -> None:
        self._rows += split_lines(to_formatted_text(ANSI(lines.removesuffix("\n"))))
        del self._rows[:-_MOST_ROWS]


def _on_one_row(text: Fragments, columns: int) -> Fragments:
    return text if len(wrapped(text, columns)) == 1 else shortened(text, columns)


def _room() -> int:
    return max(1, panel_rows(get_app().output.get_size().rows) - 1)
