"""Also tests `tools/python/arguments.py` and `tools/threads.py`."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from codex_py import tool
from codex_py.protocol.tools import FunctionSpec
from codex_py.tools.python.arguments import arguments_schema


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    title: str = ""


class Options(TypedDict):
    deep: bool


class Query(BaseModel):
    words: list[str]


def defined(source: str, name: str) -> Callable[..., Any]:
    """A function as no type checker would have it."""
    names: dict[str, Any] = {}
    exec(f"from __future__ import annotations\n{source}", names)
    return names[name]


def spec(function: Callable[..., Any]) -> FunctionSpec:
    return tool(function).spec


def test_a_function_is_described_by_its_types_and_its_docstring() -> None:
    def weather(
        city: str,
        days: int = 3,
        *,
        unit: Literal["C", "F"] = "C",
        near: Annotated[list[str] | None, "Other cities."] = None,
        colour: Colour = Colour.RED,
    ) -> str:
        """Forecast the weather.

        Needs no key.

        Args:
            city (str): Where,
                in any language.
            days: How far ahead: at most 7.

        Returns:
            A sentence.
        """
        return ""

    assert spec(weather) == FunctionSpec(
        "weather",
        "Forecast the weather.\n\nNeeds no key.\n\nReturns:\n    A sentence.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where, in any language."},
                "days": {
                    "type": "integer",
                    "default": 3,
                    "description": "How far ahead: at most 7.",
                },
                "unit": {"enum": ["C", "F"], "type": "string", "default": "C"},
                "near": {
                    "anyOf": [
                        {"type": "array", "items": {"type": "string"}},
                        {"type": "null"},
                    ],
                    "description": "Other cities.",
                    "default": None,
                },
                "colour": {"enum": ["red", "blue"], "type": "string", "default": "red"},
            },
            "required": ["city"],
        },
    )


def test_sphinx_fields_describe_parameters_too() -> None:
    def add(a: int, b: int) -> int:
        """Add.

        :param a: One.
        :param int b: Two.
        """
        return a + b

    assert spec(add).description == "Add."
    assert [
        value["description"] for value in spec(add).parameters["properties"].values()
    ] == [
        "One.",
        "Two.",
    ]


def everything(
    a: str,
    b: dict[str, int | None],
    c: list[list[float]],
    d: Any,
    e: Literal[1],
    f: Literal["x", 2],
    g: dict[str, Any],
    i: bool = True,
    j: int | None = None,
) -> None:
    pass


@pytest.mark.parametrize(
    "function", [everything, defined("def f(a, b: dict = {}, c: list = []): ...", "f")]
)
def test_plain_types_are_described_as_pydantic_describes_them(
    function: Callable[..., Any],
) -> None:
    plain = tool(function)
    described = arguments_schema("f", plain.parameters.values(), {})
    assert described.pop("type") == "object"
    assert plain.spec.parameters == {"type": "object", **described}


def test_types_of_the_program_are_described_by_pydantic() -> None:
    def find(
        query: Query, at: Point, options: Options, size: Annotated[int, Field(ge=1)]
    ) -> None:
        """:param at: Where."""

    described = spec(find).parameters
    assert described["required"] == ["query", "at", "options", "size"]
    assert described["properties"]["size"] == {"minimum": 1, "type": "integer"}
    assert described["$defs"]["Point"]["properties"]["title"] == {
        "default": "",
        "type": "string",
    }


def test_a_default_that_is_no_json_is_left_out() -> None:
    def find(words: str, at: Any = object()) -> None: ...  # noqa: B008

    assert spec(find).parameters["properties"] == {
        "words": {"type": "string"},
        "at": {},
    }


def test_a_partial_is_described_by_its_function() -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    described = spec(tool(name="add_one")(partial(add, b=1)))
    assert described.description == "Add."
    assert described.parameters["required"] == ["a"]


def test_options_of_the_decorator_hold_and_the_function_can_still_be_called() -> None:
    @tool(name="double-it", description="Doubles.", needs_approval=True, parallel=True)
    def double(n: int) -> int:
        """Never seen."""
        return 2 * n

    @tool
    def half(n: int) -> int:
        return n // 2

    assert (double(4), half(4)) == (8, 2)
    assert (double.spec.name, double.spec.description) == ("double-it", "Doubles.")
    assert (double.needs_approval, double.parallel) == (True, True)
    assert (half.spec.name, half.needs_approval, half.parallel) == (
        "half",
        False,
        False,
    )
    assert tool(half) is half


def star(*names: str) -> None: ...


def positional(a: int, /) -> None: ...


class Opaque:
    pass


def opaque(a: Opaque) -> None: ...


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (3, "a tool is a function, not 3"),
        (lambda: None, "a tool needs a name"),
        (star, r"cannot give the parameter \*names: str of star by its name"),
        (positional, "cannot give the parameter a: int of positional by its name"),
        (
            defined("def strange(a: Nowhere): ...", "strange"),
            "the parameters of strange cannot be read: name 'Nowhere' is not defined",
        ),
        (opaque, "the parameters of opaque cannot be described to a model"),
    ],
)
def test_a_function_that_a_model_cannot_call_is_refused(
    function: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(TypeError, match=reason):
        tool(function)


def test_plain_functions_are_described_without_pydantic() -> None:
    code = (
        "import sys; from codex_py import tool\n"
        "@tool\n"
        "def f(a: int, b: list[str] | None = None) -> str: ...\n"
        "print('pydantic' in sys.modules, f.spec.name)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False f\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": 5}, "`name` of a tool is a text, not 5"),
        ({"name": b"x"}, "`name` of a tool is a text, not b'x'"),
        ({"description": 5}, "`description` of a tool is a text, not 5"),
        (
            {"needs_approval": "no"},
            "`needs_approval` of a tool is True or False, not 'no'",
        ),
        (
            {"needs_approval": None},
            "`needs_approval` of a tool is True or False, not None",
        ),
        ({"parallel": 1}, "`parallel` of a tool is True or False, not 1"),
    ],
)
def test_an_option_of_another_type_is_refused_when_it_is_given(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(TypeError) as caught:
        tool(**options)
    assert str(caught.value) == told
