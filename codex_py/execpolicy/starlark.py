"""Reads files of calls with literal arguments, in the part of Starlark that looks like Python.

A file is a list of `name(…)` and `NAME = literal`, with comments. Values are strings, lists and
numbers, names defined above, and `+` between them. Nothing is executed: loops, functions and
methods, which Starlark has too, are refused. Source: the Starlark specification;
what is read here is also valid Python.
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
"""Characters or elements in the result of `+`."""


@dataclass(frozen=True, slots=True)
class Position:
    """Of something in a file; both numbers from 1, the column in characters."""

    source: str
    line: int
    column: int

    def error(self, reason: str) -> ConfigError:
        """An exception about this position, in one line."""
        return ConfigError(
            f"Error loading rules: {self.source}:{self.line}:{self.column}: {reason}"
        )


@dataclass(frozen=True, slots=True)
class Argument:
    value: Any
    """A `str`, `int`, `float`, `bool`, `None` or a list of them."""
    position: Position


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    position: Position
    positional: tuple[Argument, ...]
    named: Mapping[str, Argument]


@dataclass(slots=True)
class _File:
    source: str
    lines: list[str]
    names: dict[str, Any] = field(default_factory=dict[str, Any])

    def position(self, node: ast.expr | ast.stmt | ast.keyword) -> Position:
        line = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else ""
        # `ast` counts bytes of UTF-8.
        before = line.encode()[: node.col_offset].decode(errors="replace")
        return Position(self.source, node.lineno, len(before) + 1)

    def error(self, node: ast.expr | ast.stmt | ast.keyword, reason: str) -> ConfigError:
        return self.position(node).error(reason)

    def argument(self, node: ast.expr) -> Argument:
        return Argument(_value(node, self), self.position(node))


def read_calls(text: str, source: str) -> list[Call]:
    """The calls of a file, in order. `source` is its name in errors.

    Raises:
        ConfigError: the text is no Starlark, or more of it than is read here.
    """
    lines = re.split(r"\r\n|\r|\n", text)
    try:
        with warnings.catch_warnings():
            # An unknown escape keeps its backslash, in Starlark without a warning.
            warnings.simplefilter("ignore")
            module = ast.parse(text)
        return _calls(module, _File(source, lines))
    except SyntaxError as error:
        position = Position(source, error.lineno or 1, max(error.offset or 1, 1))
        raise position.error(f"not valid Starlark: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        # A NUL, or more levels than Python reads.
        raise Position(source, 1, 1).error(f"cannot be read: {error}") from None


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
    positional = tuple(file.argument(argument) for argument in node.args)
    named: dict[str, Argument] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise file.error(keyword, "expected NAME=VALUE; ** is not read here")
        if keyword.arg in named:
            raise file.error(keyword, f"{keyword.arg!r} is given twice")
        named[keyword.arg] = file.argument(keyword.value)
    return Call(cast("ast.Name", node.func).id, file.position(node), positional, named)


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
        # `A = A + A` thirty times makes a billion.
        raise file.error(node, f"longer than {_MAX_LENGTH}")
    return cast("str", left) + right
