"""`--record` and `--replay`: keeps the exchange with the model on a tape, or answers from one."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from codex_py.api.options import (
    Arguments,
    Options,
    SessionOptions,
    UsageError,
    option,
    terminal_target,
)
from codex_py.extensions.tape.transports import RecordingTransport, ReplayTransport


class RecordOptions(Options):
    commands = ("exec", "review")
    is_repeated = False

    record: Annotated[str, option("--record")] = ""

    def session(self, options: SessionOptions) -> SessionOptions:
        wrap = partial(RecordingTransport, path=Path(self.record).absolute())
        return replace(options, wrap_transport=wrap)


class ReplayOptions(Options):
    commands = ("exec", "review", "terminal")
    is_repeated = False
    is_unattended = True

    replay: Annotated[str, option("--replay")] = ""
    is_watched: bool = False
    """True if somebody sees the deltas: only the terminal shows them."""

    def check(self, arguments: Arguments) -> None:
        if any(isinstance(each, RecordOptions) for each in arguments.of_extensions):
            raise UsageError(
                "--record and --replay exclude each other: a replay asks no model"
            )
        is_terminal = arguments.command == "terminal"
        if is_terminal and terminal_target(arguments).prompt is None:
            raise UsageError("--replay needs the prompt that was recorded")

    def run(self, arguments: Arguments, environment: Mapping[str, str]) -> int | None:
        # The terminals of CI have no reader.
        self.is_watched = arguments.command == "terminal" and not environment.get("CI")

    def session(self, options: SessionOptions) -> SessionOptions:
        tape = Path(self.replay).absolute()
        transport = ReplayTransport(tape, paced=self.is_watched)
        return replace(options, transport=transport)
