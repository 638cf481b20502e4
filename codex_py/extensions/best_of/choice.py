"""Chooses the best of the attempts that passed."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Final

from codex_py.api.attempts import Attempts, ExecInvocation
from codex_py.api.commands import CodexError
from codex_py.api.configuration import codex_home
from codex_py.api.files import own_folder
from codex_py.api.models import instruction_text
from codex_py.extensions.best_of.attempt import Attempt

_MAX_SHOWN: Final = 100_000
"""The characters of all changes together that the judge is shown."""
_RANKS: Final = (
    "it has the highest score",
    "fewer of its tests failed",
    "more of its tests passed",
    "it changes something",
    "its diff is the smallest",
    "it took fewer tokens",
    "it is the first",
)
"""The reasons to prefer an attempt, one for each number of `_ranks`."""
_BEFORE_JUDGE: Final = 3
"""The first ranks, score and tests. Attempts that are equal in these are given to the judge."""


def best_first(attempts: Sequence[Attempt]) -> tuple[list[Attempt], int, str]:
    """Sort attempts, the best first.

    Returns the sorted attempts, the number of those that neither score nor tests tell from the
    first, and the reason why the first is the best.
    """
    order = sorted(attempts, key=_ranks)
    best = _ranks(order[0])
    tied = [
        each for each in order if _ranks(each)[:_BEFORE_JUDGE] == best[:_BEFORE_JUDGE]
    ]
    if len(order) == 1:
        return order, len(tied), "it is the only one that passed"
    pairs = zip(best, _ranks(order[1]), _RANKS, strict=True)
    reasons = [why for ours, theirs, why in pairs if ours != theirs]
    return order, len(tied), f"of the {len(order)} that passed, {reasons[0]}"


def _ranks(each: Attempt) -> tuple[float, ...]:
    """Return the sort key of an attempt: the smaller, the better. No two attempts are equal."""
    score = inf if each.score is None else -each.score
    failed = inf if each.failed_tests is None else each.failed_tests
    passed = each.passed_tests or 0
    return (
        score,
        failed,
        -passed,
        not each.diff,
        each.diff_lines or 0,
        each.usage.total_tokens,
        each.attempt,
    )


async def judged(
    engine: Attempts,
    attempts: Sequence[Attempt],
    options: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
) -> tuple[Attempt, str]:
    """Ask the model which of the attempts is the best. Returns that one and the reason.

    Args:
        options: the options of the `exec` that judges.

    Raises:
        CodexError: the answer names no attempt.
    """
    by_number = {each.attempt: each for each in attempts}
    fields = {
        "attempt": {"type": "integer", "enum": [*by_number]},
        "reason": {"type": "string"},
    }
    schema = {
        "type": "object",
        "properties": fields,
        "required": [*fields],
        "additionalProperties": False,
    }
    question = _question(attempts)
    with own_folder(codex_home(environment), "judge") as folder:
        path = folder / "schema.json"
        text = json.dumps(schema)
        await asyncio.to_thread(path.write_text, text, encoding="utf-8")
        own = ["-s", "read-only", "--ephemeral", "--output-schema", str(path)]
        command = ExecInvocation([*options, *own], question, cwd, environment)
        result = await engine.run(command, folder)
    try:
        answer = json.loads(result.last_message or "")
        return by_number[answer["attempt"]], f"the judge says: {answer['reason']}"
    except (ValueError, KeyError, TypeError) as error:
        failure = result.error or {}
        said = f"it said {result.last_message!r}"
        reason = failure.get("message", said)
        raise CodexError(
            f"the judge has chosen none: {reason}", code="judge"
        ) from error


def _question(attempts: Sequence[Attempt]) -> str:
    """Write the prompt for the judge. Each change gets an equal share of `_MAX_SHOWN`."""
    parts = [instruction_text("judge.md"), f"<task>\n{attempts[0].prompt}\n</task>"]
    share = _MAX_SHOWN // len(attempts)
    for each in attempts:
        diff = each.diff.decode(errors="replace")
        parts.append(f'<change attempt="{each.attempt}">\n{diff[:share]}\n</change>')
    return "\n\n".join(parts)
