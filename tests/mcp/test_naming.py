"""Tests `mcp/servers.py`."""

from codex_py.mcp.servers import MAX_NAME_CHARS, folded, wire_names


def test_a_name_is_the_servers_and_the_tools() -> None:
    names = wire_names([("every", "get-sum"), ("a.b", "c d"), ("é", "ü")])
    assert names == {
        ("every", "get-sum"): "mcp__every__get-sum",
        ("a.b", "c d"): "mcp__a_b__c_d",
        ("é", "ü"): "mcp______",
    }


def test_a_long_name_ends_with_a_hash() -> None:
    tools = [("server", "x" * 100 + end) for end in "ab"]
    names = wire_names(tools)
    assert len(set(names.values())) == 2
    for name in names.values():
        assert len(name) == MAX_NAME_CHARS
        assert name.startswith("mcp__server__xxx")


def test_names_that_are_alike_are_told_apart_whatever_the_order() -> None:
    tools = [("a", "b__c"), ("a__b", "c"), ("x", "y.z"), ("x", "y_z"), ("x", "other")]
    names = wire_names(tools)
    assert names == wire_names(reversed(tools))
    assert len(set(names.values())) == len(tools)
    assert names["x", "other"] == "mcp__x__other"
    assert names["x", "y.z"].startswith("mcp__x__y_z_")


def test_spellings_that_models_mix_up_are_one() -> None:
    assert (
        folded("mcp__s__get-sum")
        == folded("mcp__s__get_sum")
        == folded("mcp__s__get.sum")
    )
