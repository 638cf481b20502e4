"""Chooses the best of the attempts that passed."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Final

from codex_py.app.best_of.attempt import Attempt
from codex_py.app.exec_process import ExecInvocation, run_exec
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError
from codex_py.filesystem.own_folder import own_folder
from codex_py.instructions import instruction_text
from codex_py.process.guardian import Guardian

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
_BEFORE_JUDGE: Final = 3


def best_first(attempts: Sequence[Attempt]) -> tuple[list[Attempt], int, str]:
    """Sort attempts, the best first.

    Returns the sorted attempts, the number of those that neither score nor tests tell from the
    first, and the reason why the first is the best.
    """

    def ranks(each: Attempt) -> tuple[float, ...]:
        score = inf if each.score is None else -each.score
        if each.failed_tests is None:
            failed = inf
        else:
            failed = each.failed_tests
        size = (
            not each.diff,
            each.diff_lines or 0,
            each.usage.total_tokens,
            each.attempt,
        )
        return (score, failed, -(each.passed_tests or 0), *size)

    order = sorted(attempts, key=ranks)
    best = ranks(order[0])
    ties = sum(ranks(each)[:_BEFORE_JUDGE] == best[:_BEFORE_JUDGE] for each in order)
    if len(order) == 1:
        return order, ties, "it is the only one that passed"
    pairs = zip(best, ranks(order[1]), _RANKS, strict=True)
    why = next(why for ours, theirs, why in pairs if ours != theirs)
    return order, ties, f"of the {len(order)} that passed, {why}"


async def judged(
    attempts: Sequence[Attempt],
    options: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
) -> tuple[Attempt, str]:
    """Ask the model which of the attempts is the best. Returns that one and the reason.

    Raises:
        CodexError: the answer names no attempt.
    """
    by_number = {each.attempt: each for each in attempts}
    fields = {
        "attempt": {"type": "integer", "enum": [*by_number]},
        "reason": {"type": "string"},
    }
    schema = {"type": "object", "properties": fields, "required": [*fields]}
    with (
        closing(Guardian()) as guardian,
        own_folder(codex_home(environment), "judge") as folder,
    ):
        path = folder / "schema.json"
        text = json.dumps({**schema, "additionalProperties": False})
        await asyncio.to_thread(path.write_text, text, encoding="utf-8")
        own = ("-s", "read-only", "--ephemeral", "--output-schema", str(path))
        command = ExecInvocation(
            [*options, *own], _question(attempts), cwd, environment
        )
        result = await run_exec(command, guardian, folder)
    try:
        answer = json.loads(result.last_message or "")
        return by_number[answer["attempt"]], f"the judge says: {answer['reason']}"
    except (ValueError, KeyError, TypeError) as error:
        reason = (result.error or {}).get("message", f"it said {result.last_message!r}")
        raise CodexError(
            f"the judge has chosen none: {reason}", code="judge"
        ) from error


def _question(attempts: Sequence[Attempt]) -> str:
    parts = [instruction_text("judge.md"), f"<task>\n{attempts[0].prompt}\n</task>"]
    for each in attempts:
        shown = each.diff.decode(errors="replace")[: _MAX_SHOWN // len(attempts)]
        parts.append(f'<change attempt="{each.attempt}">\n{shown}\n</change>')
    return "\n\n".join(parts)
