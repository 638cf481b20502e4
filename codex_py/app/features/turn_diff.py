"""The `diff` in the terminal event of a turn: the net changes of its patches. LIGHT."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_py.app.loading import load
from codex_py.protocol.events import Event, FilesPatched
from codex_py.protocol.extension import Extension, Thread


class TurnDiff:
    """`root`: absolute; paths below it are shown relative to it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(self, _: Thread) -> Extension:
        # `NetChanges`, loaded with the first patch: it takes 5 ms.
        changes: Any = None

        def sink(event: Event) -> None:
            nonlocal changes
            if isinstance(event, FilesPatched):
                if changes is None:
                    changes = load("codex_py.patch.diff.turn_diff:NetChanges")()
                changes.add(event.files)

        def turn_facts() -> Mapping[str, Any]:
            nonlocal changes
            diff, changes = changes and changes.diff(self._root), None
            return {"diff": diff} if diff else {}

        return Extension(sink=sink, turn_facts=turn_facts)
