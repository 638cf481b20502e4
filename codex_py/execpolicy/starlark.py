"""Files of calls with literal arguments, in the part of Starlark that looks like Python.

A file is a list of `name(…)` and `NAME = literal`, with comments. Values are strings, lists and
numbers, names given before, and `+` between them. Nothing is executed: loops, functions and
methods, which Starlark has too, are refused. Source: the Starlark specification, which is
a subset of Python's grammar for what is read here.
"""

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from codex_py.errors import ConfigError

_NO_CALL = (
    "expected a rule, such as prefix_rule(pattern=[…]), or NAME = value; "
    "loops, conditions and functions are not read here"
)
_MAX_LENGTH = 100_000
"""Of what `+` gives: characters, or elements."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands; both numbers from 1, the column in characters."""

    source: str
    line: int
    column: int

    def error(self, reason: str) -> ConfigError:
        """What to raise about this place: one line."""
        return ConfigError(
            f"Error loading rules: {self.source}:{self.line}:{self.column}: {reason}"
        )


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    place: Place
    positional: tuple[Any, ...]
    named: Mapping[str, Any]
    """Values are `str`, `int`, `float`, `bool`, `None` and lists of them."""
    places: Mapping[str | int, Place]
    """Of each argument, by name or position."""


@dataclass(slots=True)
class _File:
    source: str
    lines: list[str]
    names: dict[str, Any] = field(default_factory=dict[str, Any])

    def place(self, node: ast.expr | ast.stmt | ast.keyword) -> Place:
        line = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else ""
        # `ast` counts bytes of UTF-8.
        before = line.encode()[: node.col_offset].decode(errors="replace")
        return Place(self.source, node.lineno, len(before) + 1)

    def error(self, node: ast.expr | ast.stmt | ast.keyword, reason: str) -> ConfigError:
        return self.place(node).error(reason)


def read_calls(text: str, source: str) -> list[Call]:
    """The calls of a file, in order. `source` is its name in errors.

    Raises:
        ConfigError: the text is no Starlark, or more of it than is read here.
    """
    lines = re.split(r"\r\n|\r|\n", text)
    try:
        with warnings.catch_warnings():
            # An unknown escape keeps its backslash, in Starlark without a word.
            warnings.simplefilter("ignore")
            module = ast.parse(text)
        return _calls(module, _File(source, lines))
    except SyntaxError as error:
        place = Place(source, error.lineno or 1, max(error.offset or 1, 1))
        raise place.error(f"not valid Starlark: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        # A NUL, or more levels than Python reads.
        raise Place(source, 1, 1).error(f"cannot be read: {error}") from None


def _calls(module: ast.Module, file: _File) -> list[Call]:
    calls: list[Call] = []
    for statement in module.body:
        match statement:
            case ast.Expr(ast.Call(ast.Name()) as call):
                calls.append(_call(call, file))
            case ast.Assign([ast.Name(name)], value):
                file.names[name] = _value(value, file)
            case ast.Expr(ast.Constant(str())) | ast.Pass():
                pass
            case _:
                raise file.error(statement, _NO_CALL)
    return calls


def _call(node: ast.Call, file: _File) -> Call:
    positional = tuple(_value(argument, file) for argument in node.args)
    places: dict[str | int, Place] = {n: file.place(a) for n, a in enumerate(node.args)}
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise file.error(keyword, "expected NAME=VALUE; ** is not read here")
        if keyword.arg in named:
            raise file.error(keyword, f"{keyword.arg!r} is given twice")
        named[keyword.arg] = _value(keyword.value, file)
        places[keyword.arg] = file.place(keyword.value)
    name = cast("ast.Name", node.func).id
    return Call(name, file.place(node), positional, named, places)


def _value(node: ast.expr, file: _File) -> Any:
    match node:
        case ast.Constant(str() | int() | float() | bool() | None as value):
            return value
        case ast.List(elements):
            return [_value(element, file) for element in elements]
        case ast.Name(name):
            if name not in file.names:
                raise file.error(node, f"the name {name!r} is not defined above")
            return file.names[name]
        case ast.BinOp(left, ast.Add(), right):
            return _joined(_value(left, file), _value(right, file), node, file)
        case _:
            raise file.error(node, "expected a string or a list of strings, written out")


def _joined(left: Any, right: Any, node: ast.expr, file: _File) -> Any:
    if type(left) is not type(right) or not isinstance(left, str | list):
        raise file.error(node, "`+` joins two strings or two lists")
    if len(cast("str", left)) + len(right) > _MAX_LENGTH:
        # `A = A + A` thirty times over is a billion.
        raise file.error(node, f"longer than {_MAX_LENGTH}")
    return cast("str", left) + right
