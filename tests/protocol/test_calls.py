from codex_py.protocol.calls import failed_call


def test_a_call_that_failed_names_its_tool_once() -> None:
    for tool, reason, message in (
        ("view_image", "no such file", "view_image failed: no such file"),
        ("write_stdin", "write_stdin failed: closed", "write_stdin failed: closed"),
        ("multi_agent_v1spawn_agent", "no prompt", "spawn_agent failed: no prompt"),
        ("", "no prompt", "a call without a name failed: no prompt"),
    ):
        item = failed_call("1", tool, "c1", "EINVAL", reason)
        assert (item.message, item.tool) == (message, tool)
