"""The last rows of the screen: what is under way, the composer or a panel, and the status."""

from collections.abc import Callable

from prompt_toolkit.layout import (
    AnyContainer,
    Dimension,
    DynamicContainer,
    HSplit,
    Window,
    to_container,
)
from prompt_toolkit.layout.controls import FormattedTextControl

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.compose.window import composer_window
from codex_py.frontends.tui.fitting import Fragments, fit, joined
from codex_py.frontends.tui.surface import Surface

_LEAST_ROWS = 3
"""Of what is under way, however low the screen is."""
_OTHER_ROWS = 8
"""Rows of the rest, as a rule."""
_QUEUED = "  (after the turn; Alt-Up takes it back)"


def program_layout(surface: Surface, live: Callable[[int, int], list[Fragments]]) -> AnyContainer:
    """
    Args:
        live: the rows of what is under way, for a width and a number of rows.
    """
    composer = composer_window(surface.composer, surface.screen)
    return HSplit(
        [
            Window(
                FormattedTextControl(lambda: _live(surface, live)),
                height=lambda: _live_height(surface),
                dont_extend_height=True,
            ),
            DynamicContainer(lambda: surface.panels.top or composer),
            Window(FormattedTextControl(lambda: _below(surface)), height=1),
        ]
    )


def _live(surface: Surface, live: Callable[[int, int], list[Fragments]]) -> Fragments:
    """What is under way, the line that names it, and an empty line above the composer."""
    screen, theme, outbox = surface.screen, surface.screen.theme, surface.outbox
    # What is under way is kept for the next frame: it must not be changed.
    lines = list(live(screen.width, max(_LEAST_ROWS, screen.height - _OTHER_ROWS)))
    if working := surface.status.working(theme):
        lines += [[], working]
    for submissions, note in ((outbox.steered, ""), (outbox.queue, _QUEUED)):
        for each in submissions:
            text = printable(each.text.splitlines()[0])
            lines.append([("class:quiet", f"  {theme.glyph('prompt')} {text}{note}")])
    lines.append([])
    if (left := _rows_beside_panel(surface)) is not None:
        return joined(lines[max(0, len(lines) - left) :])
    return [fragment for line in lines for fragment in (*line, ("", "\n"))]


def _rows_beside_panel(surface: Surface) -> int | None:
    """How many rows the panel leaves, for it gives up none; None if there is no panel."""
    if (panel := surface.panels.top) is None:
        return None
    columns, rows = surface.screen.width, surface.screen.height
    return max(0, rows - 1 - to_container(panel).preferred_height(columns, rows).preferred)


def _live_height(surface: Surface) -> Dimension:
    return Dimension.exact(0) if _rows_beside_panel(surface) == 0 else Dimension()


def _below(surface: Surface) -> Fragments:
    columns = surface.screen.width
    if hint := surface.hints.text or surface.panels.hint:
        return [("class:quiet", fit(hint, columns))]
    mode = f"{name} " if (name := surface.composer.vi_mode) else ""
    line = surface.status.line(surface.screen.theme, columns - len(mode))
    return [("class:accent", mode), *line]
