"""Tells a model that writes its calls as text what is wrong with a block that could not be read. LIGHT."""

from collections.abc import Sequence

from codex_py.errors import CodexError
from codex_py.model.text.format import FORMAT_REMINDER, read_message
from codex_py.protocol.events import AgentMessage, Event, ItemCompleted
from codex_py.protocol.extension import Extension, Thread, TurnStop
from codex_py.protocol.prompts import Note

_MAX_STRIKES = 3


def text_tools(thread: Thread) -> Extension:
    """Three messages in a row with a mistake end the turn."""
    problem: str | None = None
    strikes = 0

    def sink(event: Event) -> None:
        nonlocal problem, strikes
        match event:
            case ItemCompleted(AgentMessage(text=text)):
                specs = {spec.name: spec for spec in thread.settings.tools}
                problem = read_message(text, specs).problem
                strikes = 0 if problem is None else strikes + 1
            case _:
                pass

    def notes() -> list[Note]:
        nonlocal problem, strikes
        wrong, problem = problem, None
        if wrong is None:
            return []
        if strikes >= _MAX_STRIKES:
            strikes = 0
            raise CodexError(
                f"the model wrote its tool calls wrongly {_MAX_STRIKES} times in a row: {wrong}",
                code="tool_format",
            )
        return [
            Note(f"{wrong[0].upper()}{wrong[1:]}, so it was not run. {FORMAT_REMINDER}", "user")
        ]

    async def before_request() -> Sequence[Note]:
        return notes()

    async def before_stop(_: TurnStop) -> Note | None:
        return next(iter(notes()), None)

    return Extension(sink=sink, before_request=before_request, before_stop=before_stop)
