"""Reads files in a part of Starlark: calls whose arguments are literals.

A file is a list of `name(…)` and `NAME = literal`, with comments. Values are strings, lists and
numbers, names defined above, and `+` between them. Nothing is executed: loops, functions and
methods are valid in Starlark but refused here. The accepted part is also valid Python, so Python's
parser reads it. Source: the Starlark specification.
"""

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from codex_py.errors import ConfigError

_UNEXPECTED = (
    "expected a rule, such as prefix_rule(pattern=[…]), or NAME = value; "
    "loops, conditions and functions are not read here"
)
_MAX_LENGTH = 100_000
"""The most characters or elements in the result of `+`."""

Value: TypeAlias = "str | int | float | bool | list[Value] | None"


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a file. Line and column count from 1, the column in characters."""

    source: str
    line: int
    column: int

    def error(self, reason: str) -> ConfigError:
        """Make an exception about this position, with a message of one line."""
        return ConfigError(
            f"Error loading rules: {self.source}:{self.line}:{self.column}: {reason}"
        )


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call."""

    name: str
    """Empty for a positional argument, until `Call.arguments` names it."""
    value: Value
    position: Position

    def error(self, reason: str) -> ConfigError:
        """Make an exception about this argument."""
        return self.position.error(f"{self.name}: {reason}")

    def text(self) -> str:
        """The value as a string.

        Raises:
            ConfigError: it is not a string, or blank.
        """
        if not isinstance(self.value, str):
            raise self.error(f"expected a string, not {kind(self.value)}")
        if not self.value.strip():
            raise self.error("must not be empty")
        return self.value

    def elements(self) -> list[Value]:
        """The value as a list.

        Raises:
            ConfigError: it is not a list.
        """
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, not {kind(self.value)}")
        return self.value


@dataclass(frozen=True, slots=True)
class Call:
    """One `name(…)` of a file."""

    name: str
    position: Position
    given: list[Argument]
    """The arguments; those without a name come first."""

    def arguments(
        self, names: Sequence[str], required: Sequence[str]
    ) -> dict[str, Argument]:
        """The arguments by name.

        Args:
            names: all parameters, in the order of positional arguments.
            required: the parameters that must be given.

        Raises:
            ConfigError: one is missing, unknown or given twice.
        """
        found: dict[str, Argument] = {}
        for index, argument in enumerate(self.given):
            if not argument.name and index >= len(names):
                raise argument.position.error(
                    f"{self.name} takes {len(names)} arguments"
                )
            name = argument.name or names[index]
            if name not in names:
                known = ", ".join(names)
                raise argument.position.error(
                    f"{self.name} has no {name!r}; it has {known}"
                )
            if name in found:
                raise argument.position.error(f"{name!r} is given twice")
            found[name] = replace(argument, name=name)
        for name in required:
            if name not in found:
                raise self.position.error(f"{self.name} needs {name}=…")
        return found


@dataclass(slots=True)
class _File:
    """A file while it is read."""

    source: str
    lines: list[str]
    names: dict[str, Value] = field(default_factory=dict[str, Value])
    """The names that are defined so far."""

    def position(self, node: ast.expr | ast.stmt | ast.keyword) -> Position:
        if node.lineno <= len(self.lines):
            line = self.lines[node.lineno - 1]
        else:
            line = ""
        # `ast` counts columns in bytes of UTF-8.
        before = line.encode()[: node.col_offset].decode(errors="replace")
        return Position(self.source, node.lineno, len(before) + 1)

    def error(
        self, node: ast.expr | ast.stmt | ast.keyword, reason: str
    ) -> ConfigError:
        return self.position(node).error(reason)


def read_calls(text: str, source: str) -> list[Call]:
    """Parse the calls of a file, in order. `source` is the file's name in errors.

    Raises:
        ConfigError: the text is not Starlark, or uses more of Starlark than is accepted here.
    """
    lines = re.split(r"\r\n|\r|\n", text)
    try:
        with warnings.catch_warnings():
            # An unknown escape keeps its backslash; Starlark does not warn of it.
            warnings.simplefilter("ignore")
            module = ast.parse(text)
        return _calls(module, _File(source, lines))
    except SyntaxError as error:
        position = Position(source, error.lineno or 1, max(error.offset or 1, 1))
        raise position.error(f"not valid Starlark: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        # The text has a NUL, or more levels than Python parses.
        raise Position(source, 1, 1).error(f"cannot be read: {error}") from None


def _calls(module: ast.Module, file: _File) -> list[Call]:
    calls: list[Call] = []
    for statement in module.body:
        match statement:
            case ast.Expr(ast.Call(ast.Name(name)) as call):
                calls.append(_call(call, name, file))
            case ast.Assign([ast.Name(name)], value):
                file.names[name] = _value(value, file)
            case ast.Expr(ast.Constant(str())) | ast.Pass():
                pass
            case _:
                raise file.error(statement, _UNEXPECTED)
    return calls


def _call(
    node: ast.Call,
    name: str,
    file: _File,
) -> Call:
    given = [_argument("", value, file) for value in node.args]
    for keyword in node.keywords:
        if keyword.arg is None:
            raise file.error(keyword, "expected NAME=VALUE; ** is not read here")
        if any(keyword.arg == other.name for other in given):
            raise file.error(keyword, f"{keyword.arg!r} is given twice")
        given.append(_argument(keyword.arg, keyword.value, file))
    return Call(name, file.position(node), given)


def _argument(name: str, value: ast.expr, file: _File) -> Argument:
    return Argument(name, _value(value, file), file.position(value))


def _value(node: ast.expr, file: _File) -> Value:
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
            first = _value(left, file)
            second = _value(right, file)
            return _joined(first, second, node, file)
        case _:
            raise file.error(
                node, "expected a string or a list of strings, written out"
            )


def _joined(
    left: Value,
    right: Value,
    node: ast.expr,
    file: _File,
) -> Value:
    """The value of `left + right`, which `node` is."""
    if (
        isinstance(left, str | list)
        and isinstance(right, str | list)
        and len(left) + len(right) > _MAX_LENGTH
    ):
        # `A = A + A`, thirty times, makes a billion elements.
        raise file.error(node, f"longer than {_MAX_LENGTH}")
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    raise file.error(node, "`+` joins two strings or two lists")


def kind(value: Value) -> str:
    """The name of the value's type for an error, with its article: `a string`."""
    if value is None:
        return "None"
    kinds: dict[type, str] = {str: "a string", list: "a list", bool: "a truth value"}
    return kinds.get(type(value), "a number")
