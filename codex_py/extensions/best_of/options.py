"""The options of a run with several attempts."""

from collections.abc import Sequence
from typing import Annotated

from codex_py.api.options import (
    SESSIONS,
    Arguments,
    Options,
    UsageError,
    count,
    flag,
    given_options,
    option,
)


class AttemptOptions(Options):
    commands = SESSIONS
    is_repeated = False

    best_of: Annotated[int | None, option("--best-of", type=count)] = None
    jobs: Annotated[int | None, option("--jobs", type=count)] = None
    vary: Annotated[Sequence[str], option("--vary", action="append")] = ()
    score: Annotated[str | None, option("--score")] = None
    junit: Annotated[str | None, option("--junit")] = None
    judge: Annotated[bool, flag("--judge")] = False
    no_apply: Annotated[bool, flag("--no-apply")] = False
    worktrees: Annotated[str | None, option("--worktrees")] = None

    def check(self, arguments: Arguments) -> None:
        if self.best_of is None:
            first, *_ = given_options(self).split(", ")
            raise UsageError(f"{first} has no effect without --best-of")
        is_new = arguments.words[1:2] not in {("resume",), ("fork",)}
        if arguments.command != "exec" or not is_new:
            raise UsageError("--best-of is for new sessions of `codex-py exec`")
        if self.best_of == 0 or self.jobs == 0:
            raise UsageError("--best-of and --jobs take whole numbers from 1")
        if arguments.worktree is not None:
            raise UsageError("--best-of does not go with --worktree")
        for options in arguments.of_extensions:
            if options is not self and not options.is_repeated:
                raise UsageError(f"--best-of does not go with {given_options(options)}")
