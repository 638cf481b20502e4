"""Asks questions of MCP servers and of the model, and whether a plan is to be implemented.

An MCP server shows a form, field by field, or an address to visit. The model asks its questions
one by one; the user can go back, and write an own answer.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
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
_OWN = "own"
_BACK = "back"
_NEXT = "next"
_DISMISSED = "dismissed"
"""Picks other than an option, which is picked by its index."""
_MOST_OPTIONS: Final = 50
_LONGEST: Final = 500
"""Characters of an option that are shown."""

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
        if elicitation.url is not None:
            head.append(("", f"\n\nVisit: {printable(elicitation.url)}"))
        try:
            content = await self._form(head, elicitation.schema or {})
            filled = "".join(
                f"\n  {printable(k)}: {printable(str(v))}" for k, v in content.items()
            )
            question: Fragments = [*head, ("", f"\n{filled}" if filled else "")]
            if elicitation.url is None:
                yes = "Yes, send it"
            else:
                yes = "Yes, I have been there"
            if not await self._ask(lambda: yes_or_no(question, yes, "No, decline")):
                raise _Declined
        except _Declined:
            return ElicitationAnswer("decline")
        return ElicitationAnswer("accept", content if elicitation.url is None else None)

    async def _form(self, head: Fragments, schema: Mapping[str, Any]) -> dict[str, Any]:
        content: dict[str, Any] = {}
        properties = object_field(schema, "properties")
        for name in properties:
            if not isinstance(properties[name], dict):
                continue
            known = object_field(properties, name)
            label = printable(str(known.get("title") or name))
            needed = name in _sequence(schema.get("required"))
            about = printable(str(known.get("description") or ""))
            if not needed:
                label += " (optional)"
            if about:
                about = f"\n{about}"
            question: Fragments = [
                *head,
                ("bold", f"\n\n{label}"),
                ("class:quiet", about),
            ]
            value = await self._field(question, known, needed=needed)
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
        default = next(
            (n for n, o in enumerate(options) if o.value == field.get("default")), 0
        )
        return await self._choose(question, options, default)

    async def _several(
        self, question: Fragments, options: Sequence[MenuOption[object]]
    ) -> Any:
        chosen: list[object] = []
        while True:
            rows: list[MenuOption[object]] = []
            for option in options:
                box = "[ ]"
                if option.value in chosen:
                    box = "[x]"
                rows.append(MenuOption(f"{box} {option.label}", option.value))
            picked = await self._choose(
                question, [*rows, MenuOption("Done", _DONE)], len(rows)
            )
            if picked is _DONE:
                return [o.value for o in options if o.value in chosen]
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
        answer = await self._panels.ask(panel, about="An MCP server asks")
        if answer is _DECLINED:
            raise _Declined
        return answer


def _sequence(value: Any) -> list[Any]:
    if isinstance(value, list):
        return cast("list[Any]", value)
    return []


def choices(field: Mapping[str, Any]) -> list[MenuOption[object]] | None:
    """The values that a field may have; None for a field that takes a text."""
    if field.get("type") == "boolean":
        return [MenuOption("Yes", True, "y"), MenuOption("No", False, "n")]
    if field.get("type") == "array":
        field = as_object(field.get("items"))
    listed = objects(field.get("oneOf") or field.get("anyOf"))
    consts = [each for each in listed if "const" in each]
    titled = [
        (str(each.get("title") or each["const"]), each["const"]) for each in consts
    ]
    values = list(map(str, _sequence(field.get("enum"))))
    names = list(map(str, _sequence(field.get("enumNames"))))
    named = zip(names if len(names) == len(values) else values, values, strict=True)
    found = [
        MenuOption[object](printable(label), value) for label, value in titled or named
    ]
    return found or None


def problem(text: str, field: Mapping[str, Any], *, needed: bool) -> str:
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
    kinds: dict[str, type[str | int | float]] = {"integer": int, "number": float}
    return kinds.get(str(field.get("type")), str)(text)


def _out_of_range(value: float, low: Any, high: Any, unit: str) -> str:
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
        about = ""
        if picked == _DISMISSED:
            return ElicitationAnswer("cancel")
        if picked == _BACK:
            at = max(0, at - 1)
            continue
        if isinstance(picked, int):
            answers[question.id] = question.options[picked][0]
        elif picked == _OWN:
            field = fields.setdefault(question.id, field_of())
            text = await panels.ask(
                lambda head=head, f=field: TextField(head, field=f), about=""
            )
            if not text:
                continue
            answers[question.id] = text
        at += 1
    return ElicitationAnswer("accept", dict(answers))


async def _pick(
    panels: Panels,
    head: Fragments,
    question: UserQuestion,
    before: str | None,
    about: str,
) -> int | str:
    labels = [label for label, _ in question.options[:_MOST_OPTIONS]]
    options = [
        MenuOption[int | str](
            printable(label[:_LONGEST]), n, note=printable(note[:_LONGEST])
        )
        for n, (label, note) in enumerate(question.options[:_MOST_OPTIONS])
    ]
    options.append(MenuOption("Another answer", _OWN, "o", "write it yourself"))
    own = len(labels) if before is not None else 0
    return await panels.ask(
        lambda: Choice[int | str](
            head,
            options,
            cancelled=_DISMISSED,
            default=labels.index(before) if before in labels else own,
            others={"left": _BACK, **({} if before is None else {"right": _NEXT})},
            waits=not about,
            hint=_HINT,
        ),
        about=about,
    )


def _head(elicitation: Elicitation, at: int, before: str | None) -> Fragments:
    questions = elicitation.questions
    question = questions[at]
    if elicitation.server == "codex-py":
        who = ""
    else:
        who = f"{elicitation.server} asks"
    if len(questions) > 1:
        place = f"{at + 1} of {len(questions)}"
    else:
        place = ""
    parts = [printable(part) for part in (who, question.header[:40], place) if part]
    title: Fragments = [("class:quiet", " - ".join(parts) + "\n")] if parts else []
    if before is not None:
        answered = f"\nYour answer: {printable(before)}"
    else:
        answered = ""
    return [
        *title,
        ("bold", printable(question.question[: 10 * _LONGEST])),
        ("class:quiet", answered),
    ]


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
        self.ask(self._ask(plan))

    def ask(self, asking: Coroutine[Any, Any, None]) -> None:
        """Ask another question at the end of the turn."""
        self.withdraw()
        self._asking = self._ui.tasks.create_task(asking)

    def withdraw(self) -> None:
        """Close the question, because the conversation continues."""
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def _ask(self, plan: str) -> None:
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
