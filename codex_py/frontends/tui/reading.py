"""Shows a whole conversation in the overlay, and adds to it while the user reads."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from rich.console import RenderableType

from codex_py.frontends.tui.overlay import Pages
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol import event_items


def conversation_pages(
    title: str,
    items: Sequence[event_items.ThreadItem],
    under_way: Transcript | None,
    renderer: Renderer,
    *,
    show_reasoning: bool = True,
) -> tuple[Pages, Transcript]:
    """Return the pages of a conversation, and an `EventSink` that adds later events to them.

    Args:
        items: the items that are complete.
        under_way: the transcript that shows the running turn; None without one.
    """
    pages = Pages(title, at_end=True)

    def add(cell: RenderableType, space: bool) -> None:
        pages.add(cell, space, continues=transcript.is_answering)

    transcript = Transcript(renderer, add, show_reasoning=show_reasoning)
    transcript.replay(items)
    if under_way is not None:
        transcript.follow(under_way)
    pages.live = transcript.live
    return pages, transcript


@contextmanager
def listening(readers: list[Transcript], reader: Transcript) -> Generator[None]:
    """Let a reader get the events of the session while the context lasts."""
    readers.append(reader)
    try:
        yield
    finally:
        readers.remove(reader)
