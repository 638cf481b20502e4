"""Asks questions of MCP servers and of the model, and whether a plan is to be implemented.

An MCP server shows a form, field by field, or an address to visit. The model asks its questions
one by one; the user can go back, and write an own answer.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from prompt_toolkit.buffer import Buffer

from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.panel import Choice, Panel, TextField, field_of, yes_or_no
from codex_py.frontends.tui.panels import Panels
from codex_py.frontends.tui.terminal_ui import TerminalUI
from codex_py.protocol.json_fields import as_object, object_field, objects
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer, UserQuestion
from codex_py.streams.terminal import printable

T = TypeVar("T")

_FORMATS = {
    "email": re.compile(r"[^@\s]+@[^@\s]+"),
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "date-time": re.compile(
        r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?"
    ),
}

_DECLINED: Final = object()
_DONE: Final = object()

_HINT: Final = "{list.move_left}: back, Esc: stop; other text goes to your prompt"
# An option is picked by its index. These are the other picks of a question.
_OWN = "own"
_BACK = "back"
_NEXT = "next"
_DISMISSED = "dismissed"
_MOST_OPTIONS: Final = 50
_LONGEST: Final = 500
"""Characters of an option that are shown."""
_LONGEST_HEADER: Final = 40
_LONGEST_QUESTION: Final = 5_000

Begin: TypeAlias = Literal["here", "afresh"]

IMPLEMENT: Final = "Implement the plan."
AFRESH: Final = "Implement this plan, which the user has agreed to:\n\n{plan}"


class _Declined(Exception):
    """The user declines all further questions."""


class TerminalElicitor:
    """An `Elicitor` that asks for each field in the composer's place. Esc declines."""

    def __init__(self, panels: Panels) -> None:
        self._panels = panels

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        if elicitation.questions:
            return await ask_user(self._panels, elicitation)
        head: Fragments = [
            ("bold", f"The MCP server {printable(elicitation.server)} asks"),
            ("", f"\n\n{printable(elicitation.message)}"),
        ]
        yes = "Yes, send it"
        if elicitation.url is not None:
            head.append(("", f"\n\nVisit: {printable(elicitation.url)}"))
            yes = "Yes, I have been there"
        try:
            content = await self._form(head, elicitation.schema or {})
            question = [*head, ("", _filled_in(content))]
            panel = partial(yes_or_no, question, yes, "No, decline")
            is_accepted = await self._ask(panel)
            if not is_accepted:
                raise _Declined
        except _Declined:
            return ElicitationAnswer("decline")
        if elicitation.url is not None:
            return ElicitationAnswer("accept", None)
        return ElicitationAnswer("accept", content)

    async def _form(self, head: Fragments, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Ask for all fields of a JSON schema. Returns the values of those that were filled in."""
        content: dict[str, Any] = {}
        properties = object_field(schema, "properties")
        required = _sequence(schema.get("required"))
        for name in properties:
            if not isinstance(properties[name], dict):
                continue
            field = object_field(properties, name)
            needed = name in required
            question = [*head, *_field_question(name, field, needed=needed)]
            value = await self._field(question, field, needed=needed)
            if value is not None:
                content[name] = value
        return content

    async def _field(
        self, question: Fragments, field: Mapping[str, Any], *, needed: bool
    ) -> Any:
        """Ask for the value of a field; None if it is left empty."""
        options = choices(field)
        if options is None:
            default = str(field.get("default", ""))

            def check(text: str) -> str:
                return problem(text, field, needed=needed)

            text = await self._ask(
                lambda: TextField(question, check=check, field=field_of(default))
            )
            if text is None:
                raise _Declined
            if text:
                return parsed(text, field)
            return None
        if field.get("type") == "array":
            return await self._several(question, options)
        if not needed:
            options = [*options, MenuOption[object]("Leave it open", None)]
        values = [option.value for option in options]
        default = 0
        if field.get("default") in values:
            default = values.index(field.get("default"))
        return await self._choose(question, options, default)

    async def _several(
        self, question: Fragments, options: Sequence[MenuOption[object]]
    ) -> list[object]:
        """Let the user tick options. Returns the values of the ticked ones, in their order."""
        chosen: list[object] = []
        while True:
            rows: list[MenuOption[object]] = []
            for option in options:
                box = "[ ]"
                if option.value in chosen:
                    box = "[x]"
                rows.append(MenuOption(f"{box} {option.label}", option.value))
            rows.append(MenuOption("Done", _DONE))
            picked = await self._choose(question, rows, default=len(rows) - 1)
            if picked is _DONE:
                values = [option.value for option in options]
                return [value for value in values if value in chosen]
            if picked in chosen:
                chosen.remove(picked)
            else:
                chosen.append(picked)

    async def _choose(
        self, question: Fragments, options: Sequence[MenuOption[object]], default: int
    ) -> object:
        return await self._ask(
            lambda: Choice[object](
                question, options, cancelled=_DECLINED, default=default
            )
        )

    async def _ask(self, panel: Callable[[], Panel[T]]) -> T:
        """Ask with a panel. Raises `_Declined` if its answer is `_DECLINED`."""
        answer = await self._panels.ask(panel, about="An MCP server asks")
        if answer is _DECLINED:
            raise _Declined
        return answer


def _field_question(
    name: str,
    field: Mapping[str, Any],
    *,
    needed: bool,
) -> Fragments:
    """The title and the description of a field."""
    title = printable(str(field.get("title") or name))
    if not needed:
        title += " (optional)"
    about = printable(str(field.get("description") or ""))
    if about:
        about = f"\n{about}"
    return [("bold", f"\n\n{title}"), ("class:quiet", about)]


def _filled_in(content: Mapping[str, Any]) -> str:
    """The values of a form, one per line, after an empty line; empty without any."""
    lines = [
        f"\n  {printable(name)}: {printable(str(value))}"
        for name, value in content.items()
    ]
    if not lines:
        return ""
    return "\n" + "".join(lines)


def _sequence(value: Any) -> list[Any]:
    """A value of a schema if it is a list, else an empty list."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    return []


def choices(field: Mapping[str, Any]) -> list[MenuOption[object]] | None:
    """The values that a field may have; None for a field that takes a text."""
    if field.get("type") == "boolean":
        return [MenuOption("Yes", True, "y"), MenuOption("No", False, "n")]
    if field.get("type") == "array":
        field = as_object(field.get("items"))
    found: list[MenuOption[object]] = []
    for each in objects(field.get("oneOf") or field.get("anyOf")):
        if "const" in each:
            label = str(each.get("title") or each["const"])
            found.append(MenuOption(printable(label), each["const"]))
    if found:
        return found
    values = list(map(str, _sequence(field.get("enum"))))
    labels = list(map(str, _sequence(field.get("enumNames"))))
    if len(labels) != len(values):
        labels = values
    for label, value in zip(labels, values, strict=True):
        found.append(MenuOption(printable(label), value))
    return found or None


def problem(
    text: str,
    field: Mapping[str, Any],
    *,
    needed: bool,
) -> str:
    """The problem with the text for a field, in words for the user; empty if it is fine."""
    if not text:
        if needed:
            return "this has to be filled in"
        return ""
    kind = field.get("type")
    if kind in {"integer", "number"}:
        try:
            value = parsed(text, field)
        except ValueError:
            if kind == "integer":
                return "a whole number is wanted"
            return "a number is wanted"
        assert isinstance(value, int | float)
        if not isfinite(value):
            return "a number is wanted"
        return _out_of_range(value, field.get("minimum"), field.get("maximum"), "")
    pattern = _FORMATS.get(str(field.get("format")))
    if pattern is not None and not pattern.fullmatch(text):
        return f"this is no {field['format']}"
    return _out_of_range(
        len(text), field.get("minLength"), field.get("maxLength"), " characters"
    )


def parsed(text: str, field: Mapping[str, Any]) -> str | int | float:
    """Convert a text to the type of its field.

    Raises:
        ValueError: the field wants a number, and the text is not one.
    """
    match field.get("type"):
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case _:
            return text


def _out_of_range(
    value: float,
    low: Any,
    high: Any,
    unit: str,
) -> str:
    if isinstance(low, int | float) and value < low:
        return f"at least {low}{unit}"
    if isinstance(high, int | float) and value > high:
        return f"at most {high}{unit}"
    return ""


async def ask_user(panels: Panels, elicitation: Elicitation) -> ElicitationAnswer:
    """Ask all questions. Esc gives the answer `cancel`."""
    questions = elicitation.questions
    answers: dict[str, str] = {}
    fields: dict[str, Buffer] = {}
    at = 0
    about = elicitation.message
    while at < len(questions):
        question = questions[at]
        before = answers.get(question.id)
        head = _head(elicitation, at, before)
        picked = await _pick(panels, head, question, before, about)
        # The next questions continue this one.
        about = ""
        if picked == _DISMISSED:
            return ElicitationAnswer("cancel")
        if picked == _BACK:
            at = max(0, at - 1)
            continue
        if picked == _OWN:
            field = fields.setdefault(question.id, field_of())
            text = await panels.ask(partial(TextField, head, field=field), about="")
            if not text:
                continue
            answers[question.id] = text
        elif isinstance(picked, int):
            label, _ = question.options[picked]
            answers[question.id] = label
        # After `_NEXT`, the answer that the user gave already stays.
        at += 1
    return ElicitationAnswer("accept", dict(answers))


async def _pick(
    panels: Panels,
    head: Fragments,
    question: UserQuestion,
    before: str | None,
    about: str,
) -> int | str:
    """Let the user pick an option, by its index, or one of the other picks.

    Args:
        before: the answer that the user gave already; None if this is asked for the first time.
        about: see `Panels.ask`.
    """
    labels = [label for label, _ in question.options[:_MOST_OPTIONS]]
    options: list[MenuOption[int | str]] = []
    for n, (label, note) in enumerate(question.options[:_MOST_OPTIONS]):
        shown = printable(label[:_LONGEST])
        options.append(MenuOption(shown, n, note=printable(note[:_LONGEST])))
    options.append(MenuOption("Another answer", _OWN, "o", "write it yourself"))
    default = 0
    others: dict[str, int | str] = {"left": _BACK}
    if before is not None:
        others["right"] = _NEXT
        default = labels.index(before) if before in labels else len(labels)
    panel = partial(
        Choice[int | str],
        head,
        options,
        cancelled=_DISMISSED,
        default=default,
        others=others,
        hint=_HINT,
    )
    return await panels.ask(panel, about=about)


def _head(
    elicitation: Elicitation,
    at: int,
    before: str | None,
) -> Fragments:
    """A question with its title, and with the answer that the user gave already, if any."""
    questions = elicitation.questions
    question = questions[at]
    parts: list[str] = []
    if elicitation.server != "codex-py":
        parts.append(f"{elicitation.server} asks")
    if question.header:
        parts.append(question.header[:_LONGEST_HEADER])
    if len(questions) > 1:
        parts.append(f"{at + 1} of {len(questions)}")
    head: Fragments = []
    if parts:
        head.append(("class:quiet", printable(" - ".join(parts)) + "\n"))
    head.append(("bold", printable(question.question[:_LONGEST_QUESTION])))
    if before is not None:
        head.append(("class:quiet", f"\nYour answer: {printable(before)}"))
    return head


class PlanOffer:
    """Offers to implement a plan at the end of a turn.

    `begin` leaves Plan mode, and has the plan implemented in this conversation or in a new one.
    """

    def __init__(
        self, ui: TerminalUI, begin: Callable[[str, Begin], Awaitable[None]]
    ) -> None:
        self._ui = ui
        self._begin = begin
        self._asking: asyncio.Task[None] | None = None

    def make(self, plan: str) -> None:
        """Ask whether to implement a plan."""
        self.ask(self._offer(plan))

    def ask(self, asking: Coroutine[Any, Any, None]) -> None:
        """Run the coroutine of a question at the end of a turn, in place of an earlier question."""
        self.withdraw()
        self._asking = self._ui.tasks.create_task(asking)

    def withdraw(self) -> None:
        """Close the question, because the conversation continues."""
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def _offer(self, plan: str) -> None:
        options: list[MenuOption[Begin | None]] = [
            MenuOption(
                "Yes, implement this plan", "here", "y", "leaves Plan mode", lasts=True
            ),
            MenuOption(
                "Yes, in a new conversation",
                "afresh",
                "f",
                "it knows the plan alone",
                lasts=True,
            ),
            MenuOption(
                "No, stay in Plan mode", None, "n", "say what is to be different"
            ),
        ]
        question = "Implement this plan?"
        answer = await self._ui.panels.ask(
            lambda: Choice([("bold", question)], options, cancelled=None, default=2),
            about=question,
        )
        self._asking = None
        if answer is not None:
            await self._begin(plan, answer)
