import asyncio
import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from codex_py.mcp.tools import ServerTool
from codex_py.tools.mcp.catalogue import McpCatalogue, server_tool_spec
from codex_py.tools.mcp.own import ToolSearch, ToolSearchParams, own_mcp_tools
from codex_py.tools.offered import own_spec
from tests.support.mcp import started
from tests.support.tool_context import tool_context

RESOURCES = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"]


def names(catalogue: McpCatalogue) -> list[str]:
    return [spec.name for spec in catalogue.specs()]


def test_few_tools_are_all_offered_in_the_same_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with started(tmp_path, "grows", "fails") as it:
            catalogue = McpCatalogue(it.servers)
            before = [f"mcp__fails__{name}" for name in ("echo", "fails")]
            after = [f"mcp__grows__{name}" for name in ("echo", "grows", "new")]
            assert names(catalogue) == [*RESOURCES, *before, *after[:2]]
            assert catalogue.specs() == catalogue.specs()
            await it.call("grows", "grows")
            await it.servers.settled()
            assert names(catalogue) == [*RESOURCES, *before, *after]

    asyncio.run(main())


def test_of_many_tools_those_are_offered_that_were_searched_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with started(tmp_path, "many", "fails") as it:
            catalogue = McpCatalogue(it.servers)
            search = ToolSearch(catalogue)
            assert names(catalogue) == [*RESOURCES, "tool_search"]

            async def found(query: str, limit: int = 8) -> list[dict[str, Any]]:
                params = ToolSearchParams(query=query, limit=limit)
                output = await search.run(
                    params, tool_context(tmp_path, lambda _: None)
                )
                return json.loads(output.text)["tools"]

            assert await found("the number4711 thing", 1) == [
                {
                    "name": "mcp__many__tool-4711",
                    "description": "does the thing with the number4711",
                    "parameters": {"type": "object", "properties": {}},
                }
            ]
            assert (await found("echo, fails", 1))[0]["name"] == "mcp__fails__echo"
            assert await found("nothing like it, mcp!") == []
            assert len(await found("tools", 1000)) == 50
            offered = names(catalogue)
            assert offered[:6] == [
                *RESOURCES,
                "tool_search",
                "mcp__many__tool-4711",
                "mcp__fails__echo",
            ]
            await found("number4711", 1)
            assert names(catalogue) == offered

    asyncio.run(main())


def test_a_description_without_end_is_cut_with_a_notice() -> None:
    spec = server_tool_spec("t", ServerTool("t", "x" * (1 << 20)))
    assert spec.description == "x" * 8000 + "… [1040576 more characters left out]"


def test_a_schema_goes_as_it_came() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "null"}]}},
        "$defs": {},
    }
    spec = server_tool_spec("t", ServerTool("t", "d", schema))
    assert (spec.name, spec.description, spec.parameters) == ("t", "d", schema)
    empty = server_tool_spec("t", ServerTool("t", "d", {"$schema": "s"})).parameters
    assert empty == {"type": "object", "$schema": "s", "properties": {}}


def test_a_schema_without_end_is_left_out_with_a_notice() -> None:
    schema = {"type": "object", "properties": {"a": {"description": "x" * 70_000}}}
    spec = server_tool_spec("t", ServerTool("t", "d", schema))
    assert spec.parameters == {"type": "object", "properties": {}}
    assert spec.description.endswith("too long and was left out.]")


@pytest.mark.parametrize("name", [*RESOURCES, "tool_search"])
def test_the_offered_schemas_are_what_our_own_tools_take(
    tmp_path: Path, name: str
) -> None:
    async def main() -> None:
        async with started(tmp_path) as it:
            own = own_mcp_tools(it.servers, McpCatalogue(it.servers))
            model = next(tool.params for tool in own if tool.name == name)
            parameters = own_spec(name).parameters
            found = {each.name: each for each in fields(model)}
            assert set(parameters["properties"]) == set(found)
            required = {name for name, each in found.items() if each.default is MISSING}
            assert set(parameters["required"]) == required

    asyncio.run(main())
