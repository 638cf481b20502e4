"""The interactive program against a scripted model."""

import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from codex_py.testing import ScriptedServer
from tests.support.program import Workplace, environment
from tests.support.pty_program import PtyProgram

IDLE = "gpt-5.5"
"""Stands in the status line, which is there as soon as something can be typed."""


class Start(Protocol):
    def __call__(
        self,
        server: ScriptedServer,
        *args: str,
        columns: int = 80,
        rows: int = 24,
        trusted: bool = True,
        **env: str,
    ) -> PtyProgram:
        """Start `codex-py ARGS` in the place's folder, with the server as its provider."""
        ...


@contextmanager
def starting(place: Workplace) -> Generator[Start]:
    with ExitStack() as stack:

        def start(
            server: ScriptedServer,
            *args: str,
            columns: int = 80,
            rows: int = 24,
            trusted: bool = True,
            **env: str,
        ) -> PtyProgram:
            place.configure(server)
            if trusted:
                with (place.home / "config.toml").open("a", encoding="utf-8") as config:
                    config.write(f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n')
            variables = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **env}
            program = PtyProgram(
                [sys.executable, "-m", "codex_py", *args],
                place.cwd,
                environment(place.home, variables),
                columns=columns,
                rows=rows,
            )
            return stack.enter_context(program)

        yield start
