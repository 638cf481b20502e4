"""The `diff` of a turn's last event: what all its patches came to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_py.patch.diff.turn_diff import NetChanges
from codex_py.protocol.events import Event, FilesPatched
from codex_py.protocol.extension import Extension, Thread


class TurnDiff:
    """`root`: absolute; paths below it are shown relative to it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(self, _: Thread) -> Extension:
        changes = NetChanges()

        def sink(event: Event) -> None:
            if isinstance(event, FilesPatched):
                changes.add(event.files)

        def turn_facts() -> Mapping[str, Any]:
            nonlocal changes
            diff, changes = changes.diff(self._root), NetChanges()
            return {"diff": diff} if diff else {}

        return Extension(sink=sink, turn_facts=turn_facts)
