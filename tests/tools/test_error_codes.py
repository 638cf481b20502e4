"""`docs/error-codes.md` has the codes that the program can give, and no others."""

import ast
import errno
import re
from collections.abc import Iterator
from pathlib import Path

from codex_py.errors import ToolError
from codex_py.mcp.connection import RequestFailed

ROOT = Path(__file__).parent.parent.parent
_WITH_CODE = {"ToolError", "CallRefused", "ToolOutput", "RequestFailed", "coded_text"}


def strings(value: ast.AST, module: ast.Module) -> Iterator[str]:
    """The texts that an expression may have. A name has those of its assignments in the module."""
    for node in ast.walk(value):
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.Name(id=name):
                for each in ast.walk(module):
                    if isinstance(each, ast.Assign) and name in map(ast.unparse, each.targets):
                        yield from (
                            n.value
                            for n in ast.walk(each.value)
                            if isinstance(n, ast.Constant) and isinstance(n.value, str)
                        )
            case _:
                pass


def codes_of(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Constant(value=str(text)):
                yield from re.findall(r"^\[ERROR:(\w+)\] ", text)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=named) if name in _WITH_CODE:
                values = [each.value for each in named if each.arg in {"code", "error_code"}]
                if name == "coded_text":
                    values.append(args[0])
                if name == "RequestFailed":
                    values += args[1:]
                for value in values:
                    yield from strings(value, module)
            case _:
                pass


def test_the_table_of_codes_is_complete_and_has_no_others() -> None:
    given = {ToolError("").code, RequestFailed("").code}
    for path in (ROOT / "codex_py").rglob("*.py"):
        given.update(codes_of(ast.parse(path.read_text(encoding="utf-8"))))
    text = (ROOT / "docs/error-codes.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(given - {*errno.errorcode.values()}) == sorted(listed)
    assert all(len(code) <= 32 and code.isascii() for code in listed)


def test_the_other_codes_that_the_text_names_are_of_the_operating_system() -> None:
    text = (ROOT / "docs/error-codes.md").read_text(encoding="utf-8")
    named = re.findall(r"`(E[A-Z]+)`", text.rpartition("|")[2])
    assert set(named) <= {*errno.errorcode.values()}
