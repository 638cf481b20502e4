from typing import Any, cast

import pytest

from codex_py.app.json_rpc import JsonRpc
from codex_py.frontends.mcp_server.client import Client


@pytest.mark.parametrize(
    ("capabilities", "has_forms", "has_urls"),
    [
        (None, False, False),
        ({}, False, False),
        ({"elicitation": None}, False, False),
        ({"elicitation": {}}, True, False),
        ({"elicitation": {"form": {}, "url": None}}, True, False),
        ({"elicitation": {"form": None, "url": {}}}, False, True),
        ({"elicitation": {"form": {}, "url": {}}}, True, True),
    ],
)
def test_a_client_is_asked_in_the_ways_that_it_offers(
    capabilities: dict[str, Any] | None, has_forms: bool, has_urls: bool
) -> None:
    client = Client(cast("JsonRpc", None))
    client.capabilities = capabilities
    assert (client.can_be_asked, client.can_open_urls) == (has_forms, has_urls)
