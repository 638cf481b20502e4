"""Asks what MCP servers want to know: a form, field by field, or an address to visit."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Final, TypeVar, cast

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.panel import Choice, Entry, Option, Panel, yes_or_no
from codex_py.frontends.tui.panels import Panels
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer

T = TypeVar("T")

_Value = str | int | float | bool | list[str] | None
_FORMATS = {
    "email": re.compile(r"[^@\s]+@[^@\s]+"),
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "date-time": re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?"),
}


_DECLINED: Final = object()
_DONE: Final = object()


class TerminalElicitor:
    """An `Elicitor` that asks for each field in the composer's place. Esc declines."""

    def __init__(self, panels: Panels) -> None:
        self._panels = panels

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        head: Fragments = [
            ("bold", f"The MCP server {printable(elicitation.server)} asks"),
            ("", f"\n\n{printable(elicitation.message)}"),
        ]
        if elicitation.url is not None:
            head.append(("", f"\n\nVisit: {printable(elicitation.url)}"))
        content: dict[str, _Value] = {}
        for name, field in _fields(elicitation.schema):
            label = printable(str(field.get("title") or name))
            needed = name in _strings((elicitation.schema or {}).get("required"))
            note = "" if needed else " (optional)"
            about = printable(str(field.get("description") or ""))
            question: Fragments = [
                *head,
                ("bold", f"\n\n{label}{note}"),
                ("class:quiet", f"\n{about}" if about else ""),
            ]
            value = await self._field(question, field, needed=needed)
            if value is _DECLINED:
                return ElicitationAnswer("decline")
            if value is not None:
                content[name] = cast("_Value", value)
        if not await self._confirmed(head, content, is_form=elicitation.url is None):
            return ElicitationAnswer("decline")
        return ElicitationAnswer("accept", content if elicitation.url is None else None)

    async def _field(
        self, question: Fragments, field: Mapping[str, Any], *, needed: bool
    ) -> object:
        """The value; None if the field is left empty, `_DECLINED` if the user declines."""
        options = _options(field)
        if options is None:
            default = str(field.get("default", ""))

            def check(text: str) -> str:
                return problem(text, field, needed=needed)

            text = await self._ask(lambda: Entry(question, check=check, text=default))
            return _DECLINED if text is None else parsed(text, field) if text else None
        if field.get("type") == "array":
            return await self._several(question, options)
        if not needed:
            options = [*options, Option[object]("Leave it open", None)]
        default = next((n for n, o in enumerate(options) if o.value == field.get("default")), 0)
        return await self._ask(
            lambda: Choice[object](question, options, cancelled=_DECLINED, default=default)
        )

    async def _several(self, question: Fragments, options: Sequence[Option[object]]) -> object:
        chosen: list[object] = []
        while True:
            rows = [
                Option(f"[{'x' if o.value in chosen else ' '}] {o.label}", o.value) for o in options
            ]
            rows.append(Option("Done", _DONE))
            picked = await self._ask(
                lambda rows=rows: Choice(question, rows, cancelled=_DECLINED, default=len(rows) - 1)
            )
            if picked is _DONE:
                return [o.value for o in options if o.value in chosen]
            if picked is _DECLINED:
                return _DECLINED
            if picked in chosen:
                chosen.remove(picked)
            else:
                chosen.append(picked)

    async def _confirmed(
        self, head: Fragments, content: Mapping[str, _Value], *, is_form: bool
    ) -> bool:
        filled = "".join(f"\n  {printable(k)}: {printable(str(v))}" for k, v in content.items())
        yes = "Yes, send it" if is_form else "Yes, I have been there"
        question: Fragments = [*head, ("", f"\n{filled}" if filled else "")]
        return await self._ask(lambda: yes_or_no(question, yes, "No, decline"))

    async def _ask(self, panel: Callable[[], Panel[T]]) -> T:
        return await self._panels.ask(panel, about="An MCP server asks")


def _fields(schema: Mapping[str, Any] | None) -> list[tuple[str, Mapping[str, Any]]]:
    properties = (schema or {}).get("properties")
    if not isinstance(properties, dict):
        return []
    known = cast("dict[str, Any]", properties)
    return [(k, cast("Mapping[str, Any]", v)) for k, v in known.items() if isinstance(v, dict)]


def _strings(value: Any) -> list[str]:
    return [str(part) for part in cast("list[Any]", value)] if isinstance(value, list) else []


def _options(field: Mapping[str, Any]) -> list[Option[object]] | None:
    """The choices; None for a field that takes a text."""
    if field.get("type") == "boolean":
        return [Option("Yes", True, "y"), Option("No", False, "n")]
    items = field.get("items") if field.get("type") == "array" else field
    if not isinstance(items, dict):
        return None
    choices = cast("dict[str, Any]", items)
    titled = choices.get("oneOf") or choices.get("anyOf")
    if isinstance(titled, list):
        known = [
            cast("dict[str, Any]", c) for c in cast("list[Any]", titled) if isinstance(c, dict)
        ]
        return [Option(printable(str(c.get("title") or c["const"])), c["const"]) for c in known]
    names = _strings(choices.get("enumNames"))
    values = _strings(choices.get("enum"))
    if not values:
        return None
    labels = names if len(names) == len(values) else values
    return [Option(printable(label), value) for label, value in zip(labels, values, strict=True)]


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


def parsed(text: str, field: Mapping[str, Any]) -> _Value:
    """
    Raises:
        ValueError: it is no number, and one is wanted.
    """
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
