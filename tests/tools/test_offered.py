"""Also tests `protocol/tools.py` and `tools/builtin.py`."""

import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from codex_py.model.responses.wire import tool_entry
from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.dispatch import Tool
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.tools import FunctionSpec
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.tools.builtin import builtin_tools
from codex_py.tools.offered import ShellTool, tool_specs
from codex_py.tools.plan import UpdatePlan
from codex_py.tools.shell.orchestrator import Orchestrator
from scripts import tool_schemas

SNAPSHOT = Path(__file__).with_name("tool_specs.json")


def tools() -> dict[str, Tool[Any]]:
    every = builtin_tools(
        ProcessSessions(),
        UpdatePlan(),
        Orchestrator(PlatformSandbox({})),
        home=None,
        shell="/bin/sh",
        structured_shell=False,
        image_rule=ImageRule(),
        max_poll_ms=1,
    )
    return {name: make() for name, make in every.items()}


def functions() -> dict[str, dict[str, Any]]:
    shells: list[ShellTool] = ["unified_exec", "shell_command", "shell"]
    return {
        spec.name: dict(spec.parameters)
        for shell in shells
        for spec in tool_specs(shell=shell, freeform_patch=False)
        if isinstance(spec, FunctionSpec)
    }


@pytest.mark.parametrize("name", sorted(functions()))
def test_the_offered_schema_is_what_the_tool_takes(name: str) -> None:
    offered = functions()[name]
    model = tools()[name].params
    required = {each.name for each in fields(model) if each.default is MISSING}
    # `prefix_rule` is offered with the rules that make use of it; other keys are ignored.
    assert set(offered["properties"]) - {"prefix_rule"} <= {
        each.name for each in fields(model)
    }
    assert set(offered["required"]) == required


def test_the_schemas_are_those_of_the_parameter_models() -> None:
    """If this fails, run `scripts/generate-tool-schemas`."""
    assert tool_schemas.SCHEMAS.read_text(encoding="utf-8") == tool_schemas.text()


def test_the_tools_of_the_default_model_are_sent_as_in_the_snapshot() -> None:
    """Every word here is read by a model: a change should be seen. Delete the file to renew it."""
    specs = tool_specs(
        shell="unified_exec",
        freeform_patch=True,
        web_search={"external_web_access": False},
    )
    text = json.dumps([tool_entry(spec) for spec in specs], indent=1) + "\n"
    if not SNAPSHOT.exists():
        SNAPSHOT.write_text(text, encoding="utf-8")
        pytest.fail("the snapshot was missing and has been written")
    assert text == SNAPSHOT.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("shell", "names"),
    [
        ("unified_exec", ["exec_command", "write_stdin"]),
        ("shell_command", ["shell_command"]),
        ("shell", ["shell"]),
        ("local_shell", ["local_shell"]),
        ("disabled", []),
    ],
)
def test_each_family_of_models_gets_the_shell_it_knows(
    shell: ShellTool, names: list[str]
) -> None:
    offered = [spec.name for spec in tool_specs(shell=shell, freeform_patch=True)]
    assert offered == [*names, "update_plan", "apply_patch", "view_image"]
