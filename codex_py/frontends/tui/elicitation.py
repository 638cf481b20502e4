"""Asks what MCP servers want to know: a form, field by field, or an address to visit. Questions of the model too."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Final, TypeVar, cast

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.panel import Choice, Entry, Option, Panel, yes_or_no
from codex_py.frontends.tui.panels import Panels
from codex_py.frontends.tui.questions import ask_user
from codex_py.protocol.json_fields import as_object, object_field
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer

T = TypeVar("T")

_FORMATS = {
    "email": re.compile(r"[^@\s]+@[^@\s]+"),
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "date-time": re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?"),
}

_DECLINED: Final = object()
_DONE: Final = object()


class _Declined(Exception):
    """The user wants to answer no further question."""


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
            filled = "".join(f"\n  {printable(k)}: {printable(str(v))}" for k, v in content.items())
            question: Fragments = [*head, ("", f"\n{filled}" if filled else "")]
            yes = "Yes, send it" if elicitation.url is None else "Yes, I have been there"
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
            question: Fragments = [
                *head,
                ("bold", f"\n\n{label}{'' if needed else ' (optional)'}"),
                ("class:quiet", f"\n{about}" if about else ""),
            ]
            value = await self._field(question, known, needed=needed)
            if value is not None:
                content[name] = value
        return content

    async def _field(self, question: Fragments, field: Mapping[str, Any], *, needed: bool) -> Any:
        """The value; None if the field is left empty."""
        options = choices(field)
        if options is None:
            default = str(field.get("default", ""))

            def check(text: str) -> str:
                return problem(text, field, needed=needed)

            text = await self._ask(lambda: Entry(question, check=check, text=default))
            if text is None:
                raise _Declined
            return parsed(text, field) if text else None
        if field.get("type") == "array":
            return await self._several(question, options)
        if not needed:
            options = [*options, Option[object]("Leave it open", None)]
        default = next((n for n, o in enumerate(options) if o.value == field.get("default")), 0)
        return await self._choose(question, options, default)

    async def _several(self, question: Fragments, options: Sequence[Option[object]]) -> Any:
        chosen: list[object] = []
        while True:
            rows = [
                Option(f"[{'x' if o.value in chosen else ' '}] {o.label}", o.value) for o in options
            ]
            picked = await self._choose(question, [*rows, Option("Done", _DONE)], len(rows))
            if picked is _DONE:
                return [o.value for o in options if o.value in chosen]
            if picked in chosen:
                chosen.remove(picked)
            else:
                chosen.append(picked)

    async def _choose(
        self, question: Fragments, options: Sequence[Option[object]], default: int
    ) -> object:
        return await self._ask(
            lambda: Choice[object](question, options, cancelled=_DECLINED, default=default)
        )

    async def _ask(self, panel: Callable[[], Panel[T]]) -> T:
        answer = await self._panels.ask(panel, about="An MCP server asks")
        if answer is _DECLINED:
            raise _Declined
        return answer


def _sequence(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def choices(field: Mapping[str, Any]) -> list[Option[object]] | None:
    """What a field may be; None for one that takes a text."""
    if field.get("type") == "boolean":
        return [Option("Yes", True, "y"), Option("No", False, "n")]
    if field.get("type") == "array":
        field = as_object(field.get("items"))
    listed = map(as_object, _sequence(field.get("oneOf") or field.get("anyOf")))
    titled = [
        (str(each.get("title") or each["const"]), each["const"])
        for each in listed
        if "const" in each
    ]
    values = list(map(str, _sequence(field.get("enum"))))
    names = list(map(str, _sequence(field.get("enumNames"))))
    named = zip(names if len(names) == len(values) else values, values, strict=True)
    found = [Option[object](printable(label), value) for label, value in titled or named]
    return found or None


def problem(text: str, field: Mapping[str, Any], *, needed: bool) -> str:
    """Tell the user what is wrong with the text for a field; empty if nothing is."""
    if not text:
        return "this has to be filled in" if needed else ""
    kind = field.get("type")
    if kind in {"integer", "number"}:
        try:
            value = parsed(text, field)
        except ValueError:
            return "a whole number is wanted" if kind == "integer" else "a number is wanted"
        assert isinstance(value, int | float)
        if not isfinite(value):
            return "a number is wanted"
        return _out_of_range(value, field.get("minimum"), field.get("maximum"), "")
    pattern = _FORMATS.get(str(field.get("format")))
    if pattern is not None and not pattern.fullmatch(text):
        return f"this is no {field['format']}"
    return _out_of_range(len(text), field.get("minLength"), field.get("maxLength"), " characters")


def parsed(text: str, field: Mapping[str, Any]) -> str | int | float:
    """A `ValueError` means that it is no number, and one is wanted."""
    match field.get("type"):
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case _:
            return text


def _out_of_range(value: float, low: Any, high: Any, unit: str) -> str:
    if isinstance(low, int | float) and value < low:
        return f"at least {low}{unit}"
    if isinstance(high, int | float) and value > high:
        return f"at most {high}{unit}"
    return ""
