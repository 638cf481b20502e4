"""The interface of a backend: one way to confine a command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from codex_py.sandbox.layout import Layout, Roots


class Backend(Protocol):
    @property
    def name(self) -> str: ...

    def command(
        self, argv: Sequence[str], view: Layout, roots: Roots, cwd: Path, alive: str = ""
    ) -> list[str] | None:
        """The command line that runs `argv` in the view; None if this machine lacks what that takes.

        `alive`: see `LivenessPipe.path`; empty if nobody will wait.
        """
        ...
