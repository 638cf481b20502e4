"""Reads the target of a session from the words of its command line: a prompt, an earlier thread,
or both."""

import os
from collections.abc import Sequence

from codex_py.command_line.arguments import OF_REVIEW, PRIORITIES, Arguments
from codex_py.errors import UsageError
from codex_py.protocol.frozen import frozen

_OF_EXEC = (
    "output_schema",
    "output_last_message",
    "json",
    "agent_events",
    "usage_events",
    "answers",
    "fail_on",
    "ephemeral",
)
"""Options of `exec` that the terminal does not have. It refuses them rather than ignore them."""


@frozen
class SessionTarget:
    """The start of a session: a prompt, an earlier thread, or both."""

    prompt: str | None = None
    """The prompt; `-` for standard input."""
    resume: str | None = None
    """The id or name of a thread."""
    resume_last: bool = False
    resume_all: bool = False
    """True: with `resume_last` and `pick`, sessions of any folder count."""
    pick: bool = False
    """True: let the user choose a thread."""
    fork: bool = False
    """True: continue a copy of the thread."""


def exec_target(arguments: Arguments) -> SessionTarget:
    """Read the words after `exec`: `[PROMPT]`, or `resume` or `fork` with `[SESSION] [PROMPT]`.

    Raises:
        UsageError: the words are too many or too few, or name a command that is not supported.
    """
    target = _target(arguments.words[1:], arguments, "`exec resume` and `exec fork`")
    if target.pick:
        command = "fork" if target.fork else "resume"
        raise UsageError(f"say which session to {command}: its id, its name, or --last")
    return target


def terminal_target(arguments: Arguments) -> SessionTarget:
    """Read `[PROMPT]`, `resume [SESSION] [PROMPT]` or `fork [SESSION] [PROMPT]`.

    Raises:
        UsageError: the words are too many, or an option belongs to `exec` alone.
    """
    for name in _OF_EXEC:
        if getattr(arguments, name):
            raise UsageError(f"--{name.replace('_', '-')} needs `codex-py exec`")
    return _target(arguments.words, arguments, "`resume` and `fork`")


def _target(
    words: Sequence[str],
    arguments: Arguments,
    resuming: str,
) -> SessionTarget:
    """Read the target from `words` and the words after `--`.

    Args:
        resuming: the commands that have `--last`, for messages.
    """
    _refuse_review_options(arguments)
    rest = [*words, *arguments.literal_words]
    if words[:1] not in {("resume",), ("fork",)}:
        if arguments.last or arguments.all:
            raise UsageError(f"--last and --all belong to {resuming}")
        return SessionTarget(_only_word(rest))
    command = rest.pop(0)
    fork = command == "fork"
    everywhere = arguments.all
    if arguments.last:
        prompt = _only_word(rest)
        return SessionTarget(prompt, resume_last=True, resume_all=everywhere, fork=fork)
    if not rest:
        return SessionTarget(pick=True, resume_all=everywhere, fork=fork)
    thread = rest.pop(0)
    return SessionTarget(_only_word(rest), resume=thread, fork=fork)


def _refuse_review_options(arguments: Arguments) -> None:
    for name in OF_REVIEW:
        if getattr(arguments, name):
            raise UsageError(f"--{name} belongs to `codex-py review`")
    for kind in arguments.fail_on:
        if kind in PRIORITIES:
            raise UsageError(f"--fail-on {kind} belongs to `codex-py review`")


def require_images(arguments: Arguments, target: SessionTarget) -> None:
    """Check the files of `-i` by their first bytes.

    An image that is damaged behind them is found only when it is sent.

    Raises:
        UsageError: a file does not exist, is a folder, cannot be read, or is not of a kind that
            models read. If `-i` may have taken the prompt for a file, the message says so.
    """
    if not arguments.images:
        return
    from codex_py.images.kinds import file_problem  # 1 ms

    may_have_taken_prompt = len(arguments.image) > 1 and target.prompt is None
    for path in arguments.images:
        # Both are False for an impossible name.
        is_folder = os.path.isdir(path)
        if os.path.exists(path) and not is_folder:
            continue
        problem = f"there is no image {str(path)!r}"
        if may_have_taken_prompt:
            problem += ": -i takes every word up to the next option; put the prompt before it, or behind --"
        raise UsageError(problem)
    for path in arguments.images:
        problem = file_problem(path)
        if problem is not None:
            raise UsageError(f"-i/--image: {str(path)!r} cannot be sent: {problem}")


def _only_word(words: Sequence[str]) -> str | None:
    """The only word, or None if there is none. Raises a `UsageError` if there are several."""
    if len(words) > 1:
        raise UsageError(
            f"unexpected argument {words[1]!r}; put quotes around the prompt"
        )
    if words:
        return words[0]
    return None
