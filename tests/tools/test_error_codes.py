"""`docs/error-codes.md` has the codes that the program can give, and no others, for calls of tools."""

import ast
import errno
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from codex_py.errors import ToolError
from codex_py.protocol.mcp import RequestFailed

ROOT = Path(__file__).parent.parent.parent
_WITH_CODE = {"ToolError", "CallRefused", "ToolOutput", "RequestFailed", "coded_text"}


def constants(value: ast.AST) -> Iterator[str]:
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def strings(
    value: ast.AST, assigned: Mapping[str, Sequence[ast.expr]]
) -> Iterator[str]:
    """The texts that an expression may have. A name has those of its assignments in the module."""
    yield from constants(value)
    for node in ast.walk(value):
        if isinstance(node, ast.Name):
            for each in assigned.get(node.id, ()):
                yield from constants(each)


def assignments(module: ast.Module) -> Mapping[str, Sequence[ast.expr]]:
    """The values that a module gives to each name."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                assigned.setdefault(ast.unparse(target), []).append(node.value)
    return assigned


def codes_of(module: ast.Module) -> Iterator[str]:
    assigned = assignments(module)
    for node in ast.walk(module):
        match node:
            case ast.Constant(value=str(text)):
                yield from re.findall(r"^\[ERROR:(\w+)\] ", text)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=named) if (
                name in _WITH_CODE
            ):
                values = [
                    each.value for each in named if each.arg in {"code", "error_code"}
                ]
                if name == "coded_text":
                    values.append(args[0])
                if name == "RequestFailed":
                    values += args[1:]
                for value in values:
                    yield from strings(value, assigned)
            case _:
                pass


def section_of_tool_calls() -> str:
    text = (ROOT / "docs/error-codes.md").read_text(encoding="utf-8")
    return text.partition("## Codes of a turn")[0]


def test_the_table_of_codes_is_complete_and_has_no_others() -> None:
    given = {ToolError("").code, RequestFailed("").code}
    for path in (ROOT / "codex_py").rglob("*.py"):
        given.update(codes_of(ast.parse(path.read_text(encoding="utf-8"))))
    text = section_of_tool_calls()
    listed = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(given - {*errno.errorcode.values()}) == sorted(listed)
    assert all(len(code) <= 32 and code.isascii() for code in listed)


def test_the_other_codes_that_the_text_names_are_of_the_operating_system() -> None:
    named = re.findall(r"`(E[A-Z]+)`", section_of_tool_calls().rpartition("|")[2])
    assert named
    assert set(named) <= {*errno.errorcode.values()}
