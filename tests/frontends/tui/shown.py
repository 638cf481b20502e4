"""A transcript without a terminal: what it prints, and what it would draw."""

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType

from codex_py.frontends.tui.characters import ascii_only
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.theme import Theme
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol.event_items import AgentMessage, ThreadItem
from codex_py.protocol.events import Event, ItemCompleted, MessageDelta

PLAIN = Theme(dumb=True, color=False)
LOOKS: Mapping[str, tuple[int, Theme]] = {
    "60 columns": (60, PLAIN),
    "80 columns": (80, PLAIN),
    "140 columns": (140, PLAIN),
    "80 columns, dark": (80, Theme()),
    "80 columns, light": (80, Theme(background="light")),
    "80 columns, NO_COLOR": (80, Theme(color=False)),
    "20 columns, TERM=dumb, no Unicode": (
        20,
        Theme(dumb=True, color=False, unicode=False),
    ),
}


class Shown:
    """Gathers what a transcript prints; its clock is moved by hand."""

    def __init__(self, width: int = 80, theme: Theme = PLAIN, **settings: Any) -> None:
        self.parts: list[str] = []
        self.time_s = 1000.0
        self.width = width
        self.renderer = Renderer(theme)
        self.transcript = Transcript(
            self.renderer,
            self._print,
            clock=lambda: self.time_s,
            now=lambda: "23:28",
            **settings,
        )

    def _print(self, cell: RenderableType, space: bool) -> None:
        text = self.renderer.text(cell, self.width)
        self.parts.append(
            "\n" * space + (text if self.renderer.theme.unicode else ascii_only(text))
        )

    def tell(self, *events: Event) -> None:
        for event in events:
            self.transcript(event)

    def complete(self, *items: ThreadItem) -> None:
        self.tell(*map(ItemCompleted, items))

    def answer(self, text: str, *, delta_size: int = 7) -> None:
        """An answer as it arrives."""
        for start in range(0, len(text), delta_size):
            self.tell(MessageDelta(text[start : start + delta_size]))
        self.complete(AgentMessage(id="answer", text=text))

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def lines(self) -> list[str]:
        return self.text.strip("\n").split("\n")

    def live(self, max_rows: int = 20) -> list[str]:
        rows = self.transcript.live(self.width, max_rows)
        return ["".join(fragment[1] for fragment in row).rstrip() for row in rows]
