"""`output_schema`: an answer that breaks the schema of its turn is sent back once. LIGHT."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from codex_py.errors import CodexError, ExitCode
from codex_py.protocol.extension import Extension, Thread, TurnStart, TurnStop
from codex_py.protocol.output_model import ModelSchema
from codex_py.protocol.prompts import Note

_ONCE_MORE = (
    "Your last message cannot be used: {}\n"
    "Send the whole answer again, as JSON that satisfies the schema, and nothing else."
)


def output_schema(thread: Thread) -> Extension:
    """Check the answer of each turn.

    A second answer that breaks the schema fails the turn with the code `schema`.
    """
    violation: Callable[[str], str | None] | None = None
    """Says how an answer breaks the schema of the running turn; None if it has no schema."""

    @asynccontextmanager
    async def around_turn(turn: TurnStart) -> AsyncGenerator[None]:
        nonlocal violation
        match turn.output_schema:
            case None:
                violation = None
            case ModelSchema() as schema:
                violation = schema.violation
            case schema:
                violation = _schemas().answer_check(schema)
        yield

    async def before_stop(stop: TurnStop) -> Note | None:
        if violation is None:
            return None
        problem = violation(stop.last_message or "")
        if problem is None:
            return None
        if not stop.rounds_left:
            raise CodexError(problem, code="schema", exit_code=ExitCode.SCHEMA)
        thread.warn(f"{problem}; asking once more")
        return Note(_ONCE_MORE.format(problem))

    return Extension(around_turn=around_turn, before_stop=before_stop, max_rounds=1)


def load_schema(path: Path) -> Any:
    """See `app.output_schema.load_schema`."""
    return _schemas().load_schema(path)


def _schemas():
    from codex_py.app import output_schema as schemas  # 55 ms

    return schemas
