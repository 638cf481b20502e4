"""The public names are described, and the examples of their docstrings are run."""

import doctest
import importlib
import inspect
from typing import Any

import pytest

import codex_py
from codex_py import testing

WITH_EXAMPLES = {
    *("Agent", "Agent.run", "EventStream", "FakeModel", "Result", "event_json", "tool"),
}
MODULES = (
    *("app.agent.agent", "app.agent.result", "app.agent.stream"),
    *("protocol.event_data", "testing.fake_model", "tools.python.function"),
)


def examples() -> list[doctest.DocTest]:
    found = [
        test
        for name in MODULES
        for test in doctest.DocTestFinder().find(
            importlib.import_module(f"codex_py.{name}")
        )
        if test.examples
    ]
    return sorted(found, key=lambda test: test.name)


def name_of(test: doctest.DocTest) -> str:
    return test.name.removeprefix(
        next(
            f"codex_py.{m}." for m in MODULES if test.name.startswith(f"codex_py.{m}.")
        )
    )


@pytest.mark.parametrize("example", examples(), ids=name_of)
def test_the_examples_of_docstrings_run(
    example: doctest.DocTest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    runner = doctest.DebugRunner()
    # The namespace of a user, not that of the module.
    example.globs = {"__name__": "__main__"}
    assert runner.run(example).attempted > 0


def test_the_names_that_most_programs_use_have_an_example() -> None:
    assert {name_of(test) for test in examples()} == WITH_EXAMPLES


def test_every_public_name_is_described() -> None:
    public = [getattr(codex_py, name) for name in codex_py.__all__]
    public += [getattr(testing, name) for name in testing.__all__]
    described = [
        value for value in public if inspect.isclass(value) or inspect.isfunction(value)
    ]
    # `@frozen` puts its name there.
    assert [
        value for value in described if value.__doc__ in {None, value.__name__}
    ] == []
    methods = [
        method
        for kind in (codex_py.Agent, codex_py.EventStream, testing.ScriptedServer)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    ]
    assert [method.__qualname__ for method in methods if not method.__doc__] == []
