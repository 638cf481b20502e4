"""What the last lines of the screen show: what is under way, the composer or a panel, and the status."""

from typing import TYPE_CHECKING

from prompt_toolkit.layout import (
    AnyContainer,
    Dimension,
    DynamicContainer,
    HSplit,
    Window,
    to_container,
)
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.styles import Style

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.fitting import joined
from codex_py.frontends.tui.fragments import Fragments
from codex_py.frontends.tui.picker import cut
from codex_py.frontends.tui.theme import Theme

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

_LEAST_ROWS = 3
"""Of what is under way, however low the screen is."""
_OTHER_ROWS = 8
"""What the rest takes, as a rule."""
_STYLES = ("quiet", "accent", "error", "warning", "ok", "user")
_QUEUED = "  (after the turn; Alt-Up takes it back)"


def program_layout(terminal: "Terminal") -> AnyContainer:
    live = FormattedTextControl(lambda: _live(terminal))
    below = FormattedTextControl(lambda: _below(terminal))
    return HSplit(
        [
            Window(live, height=lambda: _live_height(terminal), dont_extend_height=True),
            DynamicContainer(lambda: terminal.panels.top or terminal.composer.container),
            Window(below, height=1),
        ]
    )


def program_style(theme: Theme) -> Style:
    """The names of styles that fragments may have: `class:quiet`."""
    return Style.from_dict({name: _ptk_style(theme.style(name)) for name in _STYLES})


def _live(terminal: "Terminal") -> Fragments:
    """What is under way, the line that says so, and an empty line above the composer."""
    theme, conversation = terminal.theme, terminal.conversation
    room = max(_LEAST_ROWS, terminal.screen.height - _OTHER_ROWS)
    lines: list[Fragments] = []
    if terminal.has_transcript:
        lines += terminal.transcript.live(terminal.screen.width, room)
    if working := terminal.status.working(theme):
        lines += [[], working]
    notes = ["" for _ in conversation.steered] + [_QUEUED for _ in conversation.queue]
    for waiting, note in zip((*conversation.steered, *conversation.queue), notes, strict=True):
        text = printable(waiting.text.splitlines()[0])
        lines.append([("class:quiet", f"  {theme.glyph('prompt')} {text}{note}")])
    lines += [[]]
    if (left := _rows_beside_panel(terminal)) is not None:
        return joined(lines[max(0, len(lines) - left) :])
    return [fragment for line in lines for fragment in (*line, ("", "\n"))]


def _rows_beside_panel(terminal: "Terminal") -> int | None:
    """How many a question or a list leaves, for it gives up nothing; None if there is none."""
    if (panel := terminal.panels.top) is None:
        return None
    columns, rows = terminal.screen.width, terminal.screen.height
    return max(0, rows - 1 - to_container(panel).preferred_height(columns, rows).preferred)


def _live_height(terminal: "Terminal") -> Dimension:
    return Dimension.exact(0) if _rows_beside_panel(terminal) == 0 else Dimension()


def _below(terminal: "Terminal") -> Fragments:
    if hint := terminal.hinted or terminal.panels.hint:
        return [("class:quiet", cut(hint, terminal.screen.width))]
    mode = terminal.composer.mode()
    room = terminal.screen.width - sum(len(text) for _, text, *_ in mode)
    return [*mode, *terminal.status.line(terminal.theme, room)]


def _ptk_style(style: str) -> str:
    """A style of the theme in prompt-toolkit's words."""
    return " ".join(
        word if word in {"bold", "dim", "underline"} else f"ansi{word}" for word in style.split()
    )
