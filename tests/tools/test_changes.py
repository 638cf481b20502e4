"""What a tool says of the files that a call will change.

Tests `protocol/dispatch.py` and `tools/past.py`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol.dispatch import ToolUse, changed_paths
from codex_py.protocol.tools import CustomPayload, ToolCall
from codex_py.tools.past import own_tools
from tests.support.tool_context import tool_context

TOOLS = {tool.name: tool for tool in own_tools()}
PATCH = """*** Begin Patch
*** Add File: a
+a
*** Update File: sub/b
*** Move to: /c
-x
+y
*** Delete File: d
*** End Patch"""


def changes(name: str, **arguments: Any) -> Sequence[Path] | None:
    tool = TOOLS[name]
    params = tool.params.model_validate(arguments)
    call = ToolCall(name, "c", CustomPayload(""))
    return changed_paths(
        ToolUse(call, tool, params, tool_context(Path("/repo"), lambda _: None))
    )


def test_a_patch_changes_the_files_that_it_names() -> None:
    paths = changes("apply_patch", input=PATCH)
    assert paths is not None
    assert sorted(map(str, paths)) == ["/c", "/repo/a", "/repo/d", "/repo/sub/b"]


def test_the_changes_of_a_command_or_of_a_patch_without_headings_are_unknown() -> None:
    assert changes("exec_command", cmd="make") is None
    assert changes("shell", command=["touch", "a"]) is None
    assert changes("write_stdin", session_id=1) is None
    assert changes("apply_patch", input="--- a\n+++ a\n") is None


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shell", {"command": ["ls", "-l"]}),
        ("view_image", {"path": "a.png"}),
        ("update_plan", {"plan": []}),
        ("list_mcp_resources", {}),
        ("read_mcp_resource", {"server": "s", "uri": "u"}),
        ("tool_search", {"query": "q"}),
    ],
)
def test_tools_that_only_look_change_nothing(
    name: str, arguments: dict[str, Any]
) -> None:
    assert changes(name, **arguments) == ()
