"""`codex-py review` and `exec review`: one review, findings in a chosen format, an exit code."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace

from codex_py.app.features.reviews import Reviews
from codex_py.app.installed import review_format
from codex_py.app.options import SessionOptions
from codex_py.app.review.findings import ReviewReport
from codex_py.app.review.target import ReviewTarget
from codex_py.app.session import Session, TurnResult
from codex_py.command_line.arguments import PRIORITIES, Arguments
from codex_py.command_line.exec_program import ExecProgram
from codex_py.command_line.prompt_input import exec_stderr, start_reading
from codex_py.command_line.target import SessionTarget
from codex_py.errors import UsageError
from codex_py.frontends.exec.exec_run import ExecRun


def run_review(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Review a change. Returns the exit code."""
    words = [*arguments.words, *arguments.literal_words]
    first = words.index("review") + 1
    instructions = words[first:]
    choices = (arguments.uncommitted, arguments.base, arguments.commit, instructions)
    given = [choice for choice in choices if choice]
    if len(given) != 1 or len(instructions) > 1:
        raise UsageError(
            "review: say what: --uncommitted, --base BRANCH, --commit SHA, or instructions of your own"
        )
    stderr = exec_stderr()
    if instructions:
        prompt = start_reading(
            instructions[0], notice=lambda text: stderr.write_text(f"{text}\n")
        )
    else:
        prompt = Future[str]()
        prompt.set_result(_target(arguments).name)
    program = ExecProgram(arguments, SessionTarget("review"), environment, stderr)
    return ExecRun(program, prompt, _ReviewWork(program.arguments)).run()


def _target(arguments: Arguments) -> ReviewTarget:
    """The change that the options name. It is empty if there are instructions instead."""
    return ReviewTarget(
        arguments.uncommitted, arguments.base, arguments.commit, arguments.title
    )


class _ReviewWork:
    """Reviews a change, and delivers the findings in the chosen format."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._reviews: Reviews | None = None
        self._write: Callable[[ReviewReport], str] | None = None
        if arguments.format is not None and arguments.format != "text":
            self._write = review_format(arguments.format)

    def options(self, options: SessionOptions) -> SessionOptions:
        return replace(options, can_review=True)

    async def run_turn(self, session: Session, text: str | None) -> TurnResult:
        target = _target(self._arguments)
        if not (target.uncommitted or target.base or target.commit):
            target = ReviewTarget(words=text)
        reviews = session.feature(Reviews)
        assert reviews is not None
        self._reviews = reviews
        # `--fail-on p1` names a priority; 0 is the highest one.
        named = [kind for kind in self._arguments.fail_on if kind in PRIORITIES]
        priorities = [int(kind[1]) for kind in named]
        prompt = reviews.begin(target, fail_on=max(priorities, default=None))
        return await session.run_turn(prompt)

    def answer(self, result: TurnResult) -> str | None:
        review = self._reviews and self._reviews.review
        if review is None or self._write is None:
            return result.last_message
        return self._write(review)
