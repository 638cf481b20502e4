"""A mistake in the arguments of an agent is refused when the agent is made."""

import uuid
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest

from codex_py import Agent, Extension, Thread
from codex_py.errors import ConfigError
from codex_py.testing import FakeModel


@pytest.fixture(autouse=True)
def _in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def stock(part: str) -> int:
    return 7


def feature(_: Thread) -> Extension:
    return Extension()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": 5}, "`model` is a name, such as 'gpt-5.5', or a transport of httpx"),
    ({"cwd": 5}, "`cwd` is the path of a folder, as text or a `Path`, not 5"),
    ({"cwd": None}, "`cwd` is the path of a folder, as text or a `Path`, not None"),
    ({"cwd": b"."}, "`cwd` is the path of a folder, as text or a `Path`, not b'.'"),
    ({"home": 5}, "`home` is the path of a folder, as text or a `Path`, not 5"),
    ({"home": True}, "`home` is the path of a folder, as text or a `Path`, not True"),
    ({"instructions": 5}, "`instructions` is a text, not a value of the type int"),
    ({"instructions": ["a"]}, "`instructions` is a text, not a value of the type list"),
    ({"tools": stock}, "`tools` is a sequence of functions: tools=[function], not"),
    ({"tools": 5}, "`tools` is a sequence of functions: tools=[function], not"),
    ({"tools": "stock"}, "`tools` is a sequence of functions: tools=[function], not"),
    ({"tools": {"stock": stock}}, "`tools` is a sequence of functions"),
    ({"tools": None}, "`tools` is a sequence of functions: tools=[function], not None"),
    ({"tools": [stock, None]}, "`tools` has None, which is no function"),
    ({"extensions": feature}, "`extensions` is a sequence of features"),
    ({"extensions": None}, "`extensions` is a sequence of features"),
    ({"extensions": "feature"}, "`extensions` is a sequence of features"),
    ({"extensions": [5]}, "`extensions` has 5, which is no feature"),
    ({"extensions": [Extension()]}, "which is no feature: a feature is a function"),
    ({"config": 5}, "`config` is a mapping of settings, not 5"),
    ({"config": [("model", "x")]}, "`config` is a mapping of settings"),
    ({"config": {1: 1}}, "`config` has the key 1, but the name of a setting is a text"),
    ({"config": {None: 1}}, "`config` has the key None, but the name of a setting"),
    ({"config": {"mcp_servers": {5: {}}}}, "`config` has the key 5, but"),
    ({"config": {"notify": [{b"a": 1}]}}, "`config` has the key b'a', but"),
    ({"environment": {"A": 1}}, "`environment` has a value of the type int as 'A'"),
    ({"environment": {"A": None}}, "`environment` has None as 'A', but the value"),
    ({"environment": {"A": Path("/bin")}}, "`environment` has a value of the type"),
    ({"environment": {1: "A"}}, "`environment` has the name 1, but the name of a"),
    ({"environment": {b"A": b"1"}}, "`environment` has the name b'A', but the name"),
    (
        {"environment": {"A=B": "1"}},
        "has 'A=B', which cannot be the name of a variable",
    ),
    ({"environment": {"": "1"}}, "has '', which cannot be the name of a variable"),
    ({"environment": {"A": "1\0"}}, "`environment` has a null character in 'A'"),
    ({"environment": ["A=1"]}, "`environment` is a mapping of names to texts, not"),
    ({"environment": "A=1"}, "`environment` is a mapping of names to texts, not"),
    ({"ephemeral": "no"}, "`ephemeral` is True or False, not 'no'"),
    ({"ephemeral": None}, "`ephemeral` is True or False, not None"),
    (
        {"resume": 42},
        "`resume` is the id or the name of a conversation, as text, not 42",
    ),
    ({"resume": True}, "`resume` is the id or the name of a conversation"),
    ({"resume": uuid.UUID(int=5)}, "`resume` is the id or the name of a conversation"),
    ({"approve": 5}, "`approve` must be a function of one argument"),
    ({"output_type": 5}, "`output_type` must be a type that pydantic knows"),
    ({"tools": [5]}, "5"),
]


@pytest.mark.parametrize(("arguments", "told"), WRONG)
def test_an_argument_of_a_wrong_type_is_refused_in_one_sentence(
    arguments: dict[str, Any], told: str
) -> None:
    with pytest.raises(TypeError) as caught:
        Agent(**arguments)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sandbox", [5, "none", ["read-only"], True])
def test_a_sandbox_that_does_not_exist_is_refused(sandbox: Any) -> None:
    with pytest.raises(ConfigError, match="`sandbox_mode`"):
        Agent(sandbox=sandbox)


def test_no_value_of_the_environment_is_shown() -> None:
    wrong: Any = {"KEY": b"s3cret"}
    with pytest.raises(TypeError) as caught:
        Agent(environment=wrong)
    assert "s3cret" not in str(caught.value)


def test_usable_arguments_are_accepted(tmp_path: Path) -> None:
    given: Any = {
        "cwd": tmp_path,
        "home": PurePosixPath(tmp_path / "own"),
        "tools": (each for each in [stock]),
        "extensions": iter([feature]),
        "config": MappingProxyType({"model_reasoning_effort": "high"}),
        "environment": MappingProxyType({"PATH": "/usr/bin:/bin"}),
        "ephemeral": True,
    }
    model = FakeModel("fine")
    with Agent(model, **given) as agent:
        assert agent.run_sync("go").text == "fine"
    assert "stock" in str(model.requests[0].body["tools"])
