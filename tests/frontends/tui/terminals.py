"""The interactive program against a scripted model."""

import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from tests.support.packages import PROGRAM
from tests.support.program import Workplace, environment
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

IDLE = "gpt-5.5"
"""Stands in the status line, which is there as soon as something can be typed."""


_NOTHING: Mapping[str, Any] = {}


class Start(Protocol):
    def __call__(
        self,
        server: ScriptedServer,
        *args: str,
        columns: int = 80,
        rows: int = 24,
        trusted: bool = True,
        provider: Mapping[str, Any] = _NOTHING,
        **env: str,
    ) -> PtyProgram:
        """Start `codex-py ARGS` in the place's folder, with the server as its provider.

        `provider` has further keys of that; without any, nothing is tried again.
        """
        ...


@contextmanager
def starting(place: Workplace, folder: Path | None = None) -> Generator[Start]:
    """Start programs, which end with the context. `folder`: another one on `sys.path`, the first."""
    words = ()
    if folder is not None:
        words = (sys.executable, "-P", "-c", PROGRAM, str(folder))
    with ExitStack() as stack:

        def start(
            server: ScriptedServer,
            *args: str,
            columns: int = 80,
            rows: int = 24,
            trusted: bool = True,
            provider: Mapping[str, Any] = _NOTHING,
            **env: str,
        ) -> PtyProgram:
            place.configure(server, **provider)
            if trusted:
                with (place.home / "config.toml").open("a", encoding="utf-8") as config:
                    config.write(f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n')
            variables = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **env}
            program = PtyProgram(
                [*words, *args],
                place.cwd,
                environment(place.home, variables),
                columns=columns,
                rows=rows,
                codex_py=not words,
            )
            return stack.enter_context(program)

        yield start


def leave(program: PtyProgram) -> None:
    """Leave with Ctrl-D when no turn runs.

    While one runs it asks again, and a turn goes on after its answer is shown: what it changed is copied for `/undo`.
    """
    program.wait_until(
        lambda: not program.title.startswith("\u2022"), what="the turn's end"
    )
    program.press("c-d")
    assert program.wait() == 0
