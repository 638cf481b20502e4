"""Short remarks below the composer, and work beside all else, whose errors they report."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from codex_py.errors import CodexError
from codex_py.frontends.terminal import printable


class Hints:
    """The remark is shown until the next key is pressed, or for a time.

    Args:
        changed: is called when there is something new to draw.

    Attributes:
        text: empty if there is no remark.
        answered: the remark that was shown when the last key was pressed; empty if there was none.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.text = ""
        self.answered = ""

    def show(self, text: str, *, for_s: float | None = None) -> None:
        self.text = text
        self._changed()
        if for_s is not None:
            asyncio.get_running_loop().call_later(for_s, self._end, text)

    def key_pressed(self, _processor: object) -> None:
        self.answered = self.text
        self._end(self.text)

    def _end(self, text: str) -> None:
        if text and self.text == text:
            self.show("")


class Tasks(asyncio.TaskGroup):
    """Work beside all else. A bug in a task ends the program."""

    def __init__(self, hints: Hints) -> None:
        super().__init__()
        self._hints = hints

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it as a task; a hint reports a `CodexError`."""

        async def run() -> None:
            try:
                await work
            except CodexError as error:
                self._hints.show(printable(str(error)))

        self.create_task(run())
