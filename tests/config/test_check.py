from typing import Any

from codex_py.config.check import Problem, dotted, kind_of, problems, suggestion


def test_values_of_the_right_kind_are_accepted():
    values: dict[str, Any] = {
        "model": "gpt-5.5",
        "approval_policy": {"granular": {"rules": True}},
        "tools": {"web_search": True, "update_plan": {"enabled": True}},
        "mcp_servers": {"a": {"command": "x", "startup_timeout_sec": 3, "env_vars": ["A"]}},
        "features": {"anything": {"goes": 1}},
        "hooks": {"Stop": [{"hooks": []}]},
        "agents": {"max_threads": 2, "reviewer": {"description": "reads"}},
        "tui": {"keymap": {"global": {"copy": "ctrl-c"}}},
    }
    assert problems(values) == []


def test_each_kind_of_mistake_names_its_key_and_what_was_expected():
    values = {
        "model": 5,
        "hide_agent_reasoning": 1,
        "project_doc_max_bytes": -1,
        "tool_output_token_limit": True,
        "sandbox_mode": "readonly",
        "notify": ["a", 2],
        "tools": 3,
        "mcp_servers": {"s": {"env": {"A": 1}}},
        "approval_policy": "often",
        "tui": {"notifications": 2},
    }
    assert problems(values) == [
        Problem(("model",), "must be a string, not `5`"),
        Problem(("hide_agent_reasoning",), "must be a boolean, not `1`"),
        Problem(("project_doc_max_bytes",), "must be an integer of 0 or more, not `-1`"),
        Problem(("tool_output_token_limit",), "must be an integer of 0 or more, not `true`"),
        Problem(
            ("sandbox_mode",),
            "must be one of `read-only`, `workspace-write`, `danger-full-access`, not `readonly`",
        ),
        Problem(("notify", "1"), "must be a string, not `2`"),
        Problem(("tools",), "must be a table, not `3`"),
        Problem(("mcp_servers", "s", "env", "A"), "must be a string, not `1`"),
        Problem(
            ("approval_policy",),
            "must be one of `untrusted`, `on-failure`, `on-request`, `never`, not `often`",
        ),
        Problem(("tui", "notifications"), "must be a boolean or an array, not `2`"),
    ]


def test_a_mistake_in_one_of_several_forms_is_told_precisely():
    assert problems({"approval_policy": {"granular": {"rules": "yes"}}}) == [
        Problem(("approval_policy", "granular", "rules"), "must be a boolean, not `yes`")
    ]


def test_unknown_keys_are_told_apart_from_mistakes():
    assert problems({"modle": 1, "shell_environment_policy": {"filter": 1}}) == [
        Problem(("modle",), "is unknown", unknown=True),
        Problem(("shell_environment_policy", "filter"), "is unknown", unknown=True),
    ]


def test_suggestions_are_close_names_of_the_same_table_or_successors():
    assert suggestion(("modle",)) == "model"
    assert (
        suggestion(("sandbox_workspace_write", "network_acces"))
        == "sandbox_workspace_write.network_access"
    )
    assert suggestion(("mcp_servers", "x", "comand")) == "mcp_servers.x.command"
    assert suggestion(("include_plan_tool",)) == "tools.update_plan.enabled"
    assert suggestion(("tui", "model")) == "model"
    assert suggestion(("zzz",)) is None


def test_kinds_are_found_below_free_names():
    assert kind_of(("mcp_servers", "any", "env", "KEY")) == "secret"
    assert kind_of(("features", "x")) == "any"
    assert kind_of(("tools", "web_search", "context_size")) == ("low", "medium", "high")
    assert kind_of(("model", "x")) is None


def test_dotted_keys_are_quoted_where_needed():
    assert dotted(("projects", '/a "b"', "trust_level")) == r'projects."/a \"b\"".trust_level'
