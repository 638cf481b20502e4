"""Tests `protocol/error_codes.py`: the lists have the codes that the program can give, and no others."""

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import codex_py
from codex_py import (
    Agent,
    ApprovalRequest,
    CodexError,
    Extension,
    Note,
    Thread,
    UserPrompt,
    tool,
)
from codex_py.errors import PromptRefused, StreamError
from codex_py.model.failures import http_failure
from codex_py.protocol.error_codes import CODES, OTHER_CODES
from codex_py.testing import FakeModel, Reply, call, ev_created, ev_incomplete
from tests.tools.test_error_codes import assignments, constants, strings

PACKAGE = Path(codex_py.__file__).parent
LISTED = {code.name: code for group in CODES.values() for code in group}
_MAKERS = {"__init__", "broke_off", "limit_reached", "Meter", "_too_large"}
"""The functions and classes that get the code of a `CodexError` that they make."""


@cache
def modules() -> Mapping[Path, ast.Module]:
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in PACKAGE.rglob("*.py")
    }


def error_classes() -> set[str]:
    """The names of `CodexError` and of all classes below it."""
    found = {"CodexError"}
    while True:
        more = {
            node.name
            for module in modules().values()
            for node in ast.walk(module)
            if isinstance(node, ast.ClassDef)
            and found.intersection(map(ast.unparse, node.bases))
        }
        if more <= found:
            return found
        found |= more


def given(module: ast.Module, makers: set[str]) -> Iterator[str]:
    """The codes that a module gives."""
    assigned = assignments(module)
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name not in makers:
                    continue
                for each in node.keywords:
                    if each.arg == "code":
                        yield from strings(each.value, assigned)
            case ast.ClassDef(name=name) if name in makers:
                for each in node.body:
                    if isinstance(each, ast.Assign | ast.AnnAssign) and each.value:
                        target = ast.unparse(each).partition("=")[0]
                        if target.split(":")[0].strip() == "code":
                            yield from constants(each.value)
            case _:
                pass


def test_the_lists_have_the_codes_of_the_program_and_no_others() -> None:
    makers = error_classes() | _MAKERS
    codes = {StreamError.broke_off("").code}
    for module in modules().values():
        codes.update(given(module, makers))
    codes.update(http_failure(status, {}, b"", "").code for status in range(400, 600))
    assert codes == LISTED.keys() | OTHER_CODES
    assert not LISTED.keys() & OTHER_CODES


@pytest.mark.parametrize("status", [*range(400, 418), 422, 425, 429, *range(500, 530)])
def test_another_attempt_may_succeed_as_the_list_says(status: int) -> None:
    error = http_failure(status, {}, b"", "")
    assert error.retryable == LISTED[error.code].retryable


def test_a_name_of_the_server_comes_before_the_status() -> None:
    named = b'{"error": {"code": "invalid_request", "message": "no"}}'
    typed = b'{"error": {"type": "invalid_request_error", "message": "no"}}'
    bodies = (named, typed, b"")
    codes = [http_failure(400, {}, body, "").code for body in bodies]
    assert codes == ["invalid_request", "bad_request", "bad_request"]


def refusing(_: Thread) -> Extension:
    async def refuse(prompt: UserPrompt) -> list[Note]:
        raise PromptRefused("no")

    return Extension(before_prompt=refuse)


def codeless(_: Thread) -> Extension:
    async def fail(prompt: UserPrompt) -> list[Note]:
        raise CodexError("no")

    return Extension(before_prompt=fail)


@tool(needs_approval=True)
def pay(euros: int) -> str:
    """Pay."""
    return "paid"


def no_decision(request: ApprovalRequest) -> Any:
    return "yes"


CASES: Mapping[str, Callable[[], object]] = {
    "config": lambda: Agent(config={"models": "x"}),
    "usage": lambda: Agent(FakeModel()).run_sync("go", images=["gone.png"]),
    "missing_key": lambda: Agent(environment={}, ephemeral=True).run_sync("go"),
    "bad_key": lambda: Agent(
        environment={"OPENAI_API_KEY": "a\nkey"}, ephemeral=True
    ).run_sync("go"),
    "session": lambda: Agent(FakeModel(), home="home", resume="gone").run_sync("go"),
    "mcp": lambda: Agent(
        FakeModel(),
        config={"mcp_servers": {"x": {"command": "/gone", "required": True}}},
    ).run_sync("go"),
    "prompt_refused": lambda: Agent(FakeModel(), extensions=[refusing]).run_sync("go"),
    "error": lambda: Agent(FakeModel(), extensions=[codeless]).run_sync("go"),
    "bad_request": lambda: Agent(FakeModel(Reply(status=400))).run_sync("go"),
    "authentication": lambda: Agent(FakeModel(Reply(status=401))).run_sync("go"),
    "redirect": lambda: Agent(FakeModel(Reply(status=307))).run_sync("go"),
    "unexpected_status": lambda: Agent(FakeModel(Reply(status=204))).run_sync("go"),
    "rate_limited": lambda: failing_always(429),
    "not_a_stream": lambda: Agent(
        FakeModel(Reply(body=b"<title>Login</title>"))
    ).run_sync("go"),
    "incomplete": lambda: Agent(
        FakeModel([ev_created(), ev_incomplete("max_output_tokens")])
    ).run_sync("go"),
    "schema": lambda: Agent(FakeModel("a", "b")).run_sync("go", output_type=int),
    "approver": lambda: Agent(
        FakeModel(call("pay", euros=1)), tools=[pay], approve=no_decision
    ).run_sync("go"),
    "turn_limit": lambda: Agent(
        FakeModel(*[call("pay", euros=1)] * 2),
        tools=[pay],
        config={"budget": {"max_turns": 1}},
    ).run_sync("go"),
}


def failing_always(status: int) -> object:
    never = {"model_providers": {"mine": MINE}, "model_provider": "mine"}
    model = FakeModel(Reply(status=status))
    return Agent(model, config=never).run_sync("go")


MINE = {
    "name": "Mine",
    "base_url": "http://mine.example",
    "request_max_retries": 0,
    "stream_max_retries": 0,
}


@pytest.mark.parametrize("code", CASES)
def test_an_agent_fails_with_this_code(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CodexError) as caught:
        CASES[code]()
    assert (caught.value.code, caught.value.retryable) == (
        code,
        LISTED[code].retryable,
    )
