"""The expressions of GitHub Actions, `${{ … }}`: as much of them as actions and workflows commonly use.

https://docs.github.com/en/actions/reference/workflows-and-actions/expressions
"""

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d+)?)|'(?P<text>(?:[^']|'')*)'|(?P<name>[A-Za-z_][\w-]*)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[!<>().,\[\]]))"
)
_WORDS = {"true": True, "false": False, "null": None}
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
STATUS = ("success", "failure", "always", "cancelled")


class ExpressionError(Exception):
    pass


def filled(text: Any, context: Mapping[str, Any]) -> Any:
    """A value of a workflow with what its `${{ }}` stand for; of one that is an expression alone, as text too."""
    if isinstance(text, str):
        return re.sub(
            r"\$\{\{(.*?)\}\}",
            lambda found: as_text(value_of(found[1], context)),
            text,
            flags=re.DOTALL,
        )
    return as_text(text)


def holds(condition: Any, context: Mapping[str, Any]) -> bool:
    """The value of an `if`. Without a status function it means `success() && …`."""
    if condition is None:
        condition = "success()"
    expression = re.sub(
        r"^\s*\$\{\{(.*)\}\}\s*$", r"\1", as_text(condition), flags=re.DOTALL
    )
    if not re.search(rf"\b(?:{'|'.join(STATUS)})\s*\(", expression):
        expression = f"success() && ({expression})"
    return bool(value_of(expression, context))


def value_of(expression: str, context: Mapping[str, Any]) -> Any:
    return _Reader(expression, context).value()


def as_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case dict() | list():
            return "Object" if isinstance(value, dict) else "Array"
        case _:
            return str(value)


class _Reader:
    def __init__(self, text: str, context: Mapping[str, Any]) -> None:
        self._context = context
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise ExpressionError(f"{text!r} at {at}")
            kind = found.lastgroup
            assert kind is not None
            self._tokens.append((kind, found[kind]))
            at = found.end()

    def value(self) -> Any:
        value = self._either()
        if self._tokens:
            raise ExpressionError(f"left over: {self._tokens}")
        return value

    def _next(self, *signs: str) -> str | None:
        if (
            self._tokens
            and self._tokens[0][0] == "sign"
            and self._tokens[0][1] in signs
        ):
            return self._tokens.pop(0)[1]
        return None

    def _either(self) -> Any:
        value = self._both()
        while self._next("||"):
            other = self._both()
            value = value or other
        return value

    def _both(self) -> Any:
        value = self._compared()
        while self._next("&&"):
            other = self._compared()
            value = value and other
        return value

    def _compared(self) -> Any:
        value = self._single()
        while sign := self._next("==", "!=", "<=", ">=", "<", ">"):
            one, other = _comparable(value, self._single())
            value = _COMPARED[sign](one, other)
        return value

    def _single(self) -> Any:
        if self._next("!"):
            return not self._single()
        if self._next("("):
            value = self._either()
            self._expect(")")
        else:
            value = self._atom()
        while sign := self._next(".", "["):
            if sign == ".":
                key: Any = self._tokens.pop(0)[1]
            else:
                key = self._either()
                self._expect("]")
            value = _member(value, key)
        return value

    def _atom(self) -> Any:
        kind, text = self._tokens.pop(0)
        match kind:
            case "number":
                return float(text)
            case "text":
                return text.replace("''", "'")
            case "name" if self._next("("):
                arguments: list[Any] = []
                while not self._next(")"):
                    arguments.append(self._either())
                    self._next(",")
                return self._called(text.lower(), arguments)
            case "name" if text in _WORDS:
                return _WORDS[text]
            case "name":
                if text not in self._context:
                    raise ExpressionError(f"no such context: {text}")
                return self._context[text]
            case _:
                raise ExpressionError(f"unexpected {text!r}")

    def _expect(self, sign: str) -> None:
        if not self._next(sign):
            raise ExpressionError(f"{sign} is missing")

    def _called(self, name: str, arguments: Sequence[Any]) -> Any:
        match name, arguments:
            case "success" | "failure" | "always" | "cancelled", []:
                status = self._context["job"]["status"]
                return name == "always" or status == name
            case "tojson", [value]:
                return json.dumps(value, indent=2, ensure_ascii=False)
            case "fromjson", [text]:
                return json.loads(text)
            case "contains", [values, item]:
                if isinstance(values, str):
                    return as_text(item).lower() in values.lower()
                return any(_equal(each, item) for each in values or ())
            case "startswith", [text, part]:
                return as_text(text).lower().startswith(as_text(part).lower())
            case "endswith", [text, part]:
                return as_text(text).lower().endswith(as_text(part).lower())
            case "format", [text, *values]:
                return re.sub(
                    r"\{(\d+)\}", lambda m: as_text(values[int(m[1])]), as_text(text)
                )
            case _:
                raise ExpressionError(
                    f"no such function: {name} with {len(arguments)} arguments"
                )


def _member(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        names = {str(name).lower(): each for name, each in fields.items()}
        return names.get(as_text(key).lower())
    if isinstance(value, list) and isinstance(key, float) and key < len(value):  # pyright: ignore[reportUnknownArgumentType]
        return value[int(key)]  # pyright: ignore[reportUnknownVariableType]
    return None


def _equal(one: Any, other: Any) -> bool:
    one, other = _comparable(one, other)
    return one == other


def _comparable(one: Any, other: Any) -> tuple[Any, Any]:
    """Both as GitHub compares them: texts whatever their case, and values of two types as numbers."""
    if isinstance(one, str) and isinstance(other, str):
        return one.lower(), other.lower()
    if type(one) is type(other):
        return one, other
    return _number(one), _number(other)


def _number(value: Any) -> float:
    try:
        return float(value or 0)
    except (TypeError, ValueError):
        return float("nan")
