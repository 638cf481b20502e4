"""`request_user_input`: the model asks the user.

Source of the format and the texts: Codex 0.171.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from codex_py.errors import ToolError
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.event_data import plain_data
from codex_py.protocol.frozen import frozen
from codex_py.protocol.mcp import Elicitation, Elicitor, UserQuestion
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import ToolParams
from codex_py.tools.mcp.item import OWN_SERVER, ShownAsServerCall, mcp_item

_NO_OPTIONS = "request_user_input requires non-empty options for every question"
_OTHER = "_other"
"""The suffix of a question's id in the name of the form's field for the user's own text."""


@frozen(kw_only=True)
class Option(ToolParams):
    label: str
    description: str = ""


@frozen(kw_only=True)
class Question(ToolParams):
    id: str
    header: str = ""
    question: str
    options: tuple[Option, ...] = ()

    @property
    def asked(self) -> UserQuestion:
        """The question for the elicitor."""
        options = [(option.label, option.description) for option in self.options]
        return UserQuestion(self.id, self.header, self.question, tuple(options))


@frozen(kw_only=True)
class RequestUserInputParams(ToolParams):
    questions: tuple[Question, ...]


@dataclass(eq=False)
class RequestUserInput(ShownAsServerCall):
    """Asks the user questions of the model."""

    name = "request_user_input"
    params = RequestUserInputParams
    parallel = False

    elicitor: Elicitor
    asker: str = "codex-py"
    """The `server` of each `Elicitation`."""
    unavailable: Callable[[], str | None] = lambda: None
    """Return the reason why the user cannot be asked now; None if the user can be."""
    abort: Callable[[], None] = lambda: None
    """End the turn. This is called if the user dismisses the questions."""

    async def run(
        self, params: RequestUserInputParams, context: ToolContext
    ) -> ToolOutput:
        """Ask the questions, without a deadline. An unanswered question has no answers in the
        output.

        Raises:
            ToolError: the user dismissed the questions, which ends the turn.
        """
        questions = tuple([each.asked for each in params.questions])
        with mcp_item(OWN_SERVER, self.name, plain_data(params), context) as item:
            problem = self._problem(questions)
            if problem is None:
                text = await self._answers_json(questions)
            else:
                text = problem
            is_error = problem is not None
            content = [{"type": "text", "text": text}]
            item.end({"content": content, "isError": is_error})
            return ToolOutput(text, success=not is_error)

    def _problem(self, questions: Sequence[UserQuestion]) -> str | None:
        """The reason why the questions cannot be asked; None if they can be."""
        reason = self.unavailable()
        if reason is not None:
            return reason
        if not all(each.options for each in questions):
            return _NO_OPTIONS
        return None

    async def _answers_json(self, questions: Sequence[UserQuestion]) -> str:
        answers: Mapping[str, Any] = {}
        if questions:
            answers = await self._answers(questions)
        return json.dumps(
            {"answers": answers}, ensure_ascii=False, separators=(",", ":")
        )

    async def _answers(self, questions: Sequence[UserQuestion]) -> Mapping[str, Any]:
        """The answers by the id of the question; empty if the user declined."""
        message = "\n".join(each.question for each in questions)
        form = Elicitation(
            self.asker, message, _form(questions), questions=tuple(questions)
        )
        answer = await self.elicitor.elicit(form)
        if answer.action == "cancel":
            self.abort()
            raise ToolError("the user dismissed the questions", code="Canceled")
        if answer.action == "decline":
            return {}
        content = answer.content or {}
        answers: dict[str, Any] = {}
        for question in questions:
            chosen = _chosen(question.id, content)
            answers[question.id] = {"answers": chosen}
        return answers


def _form(questions: Sequence[UserQuestion]) -> Mapping[str, Any]:
    """The questions as a form of MCP, with two fields each: one option, and other text.

    MCP has no type of field that allows both.
    """
    fields: dict[str, Any] = {}
    for question in questions:
        description = [question.question]
        for label, about in question.options:
            if about:
                description.append(f"{label}: {about}")
        fields[question.id] = {
            "type": "string",
            "title": question.header or question.id,
            "description": "\n".join(description),
            "enum": [label for label, _ in question.options],
        }
        other_field = {"type": "string", "title": "Other, or a note"}
        fields[question.id + _OTHER] = other_field
    return {"type": "object", "properties": fields}


def _chosen(question_id: str, content: Mapping[str, Any]) -> list[str]:
    """The options that the user chose, then the user's own text."""
    value = content.get(question_id)
    other = content.get(question_id + _OTHER)
    answers: list[Any]
    if value is None:
        answers = []
    elif isinstance(value, list):
        answers = cast("list[Any]", value)
    else:
        answers = [value]
    if other and answers:
        answers = [*answers, f"user_note: {other}"]
    elif other:
        answers = [other]
    return [str(answer) for answer in answers]
