from typing import Any, get_args

import pytest

from codex_py.config.check import (
    Problem,
    dotted,
    kind_of,
    may_protect,
    problems,
    remedy,
    suggestion,
)
from codex_py.config.declared.kinds import Secret


def test_values_of_the_right_kind_are_accepted():
    values: dict[str, Any] = {
        "model": "gpt-5.5",
        "approval_policy": {"granular": {"rules": True}},
        "tools": {"web_search": True, "update_plan": {"enabled": True}},
        "mcp_servers": {
            "a": {"command": "x", "startup_timeout_sec": 3, "env_vars": ["A"]}
        },
        "features": {"multi_agent": False, "network_proxy": {"enabled": True}},
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
        Problem(
            ("project_doc_max_bytes",), "must be an integer of 0 or more, not `-1`"
        ),
        Problem(
            ("tool_output_token_limit",), "must be an integer of 0 or more, not `true`"
        ),
        Problem(
            ("sandbox_mode",),
            'must be one of `read-only`, `workspace-write`, `danger-full-access`, not `"readonly"`',
        ),
        Problem(("notify", "1"), "must be a string, not `2`"),
        Problem(("tools",), "must be a table, not `3`"),
        Problem(("mcp_servers", "s", "env", "A"), "must be a string"),
        Problem(
            ("approval_policy",),
            'must be one of `untrusted`, `on-failure`, `on-request`, `never` or a table, not `"often"`',
        ),
        Problem(("tui", "notifications"), "must be a boolean or an array, not `2`"),
    ]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("max_thread", 3, "is unknown; did you mean `agents.max_threads`?"),
        ("max_dept", 3, "is unknown; did you mean `agents.max_depth`?"),
        (
            "model",
            "m",
            "is unknown; `model` belongs above the first [table] of the file",
        ),
        ("reviewer", 3, "must be a table, not `3`"),
    ],
)
def test_a_misspelt_key_is_not_taken_for_a_name_of_the_users_own(
    name: str, value: object, text: str
):
    expected = [Problem(("agents", name), text)]
    assert problems({"agents": {name: value}}) == expected


def test_a_mistake_in_one_of_several_forms_is_told_precisely():
    assert problems({"approval_policy": {"granular": {"rules": "yes"}}}) == [
        Problem(
            ("approval_policy", "granular", "rules"), 'must be a boolean, not `"yes"`'
        )
    ]
    assert problems({"features": {"network_proxy": "boolean"}}) == [
        Problem(
            ("features", "network_proxy"),
            'must be a boolean or a table, not `"boolean"`',
        )
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


@pytest.mark.parametrize("name", ["temperature", "editor", "color", "timeout", "top_p"])
def test_an_unknown_key_that_only_shares_letters_gets_no_suggestion(name: str):
    assert suggestion((name,)) is None


@pytest.mark.parametrize(
    "name",
    [
        "sandbox",
        "approval",
        "approvals",
        "approval_mode",
        "max_cost",
        "secrets",
        "deny",
    ],
)
def test_another_name_for_a_protection_is_not_ignored(name: str):
    assert may_protect((name,))


@pytest.mark.parametrize("name", ["theme", "notifications", "temperature", "default"])
def test_a_key_that_protects_nothing_is_ignored(name: str):
    assert not may_protect((name,))


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "api_key", "anthropic_api_key"])
def test_a_key_of_a_provider_is_no_setting(name: str):
    assert remedy((name,)) == (
        "keys do not belong into this file: run `codex-py login --with-api-key`, or set a"
        " variable such as OPENAI_API_KEY"
    )


def test_a_key_of_a_named_table_is_told_to_need_the_name():
    assert problems({"mcp_servers": {"command": "npx"}}) == [
        Problem(
            ("mcp_servers", "command"),
            'must be a table, not `"npx"`; it belongs into a table with a name, such as'
            " `[mcp_servers.NAME]`",
        )
    ]


def test_kinds_are_found_below_free_names():
    assert kind_of(("mcp_servers", "any", "env", "KEY")) is Secret
    assert kind_of(("features", "goals")) is bool
    assert kind_of(("features", "x")) is None
    size = kind_of(("tools", "web_search", "context_size"))
    assert get_args(size) == ("low", "medium", "high")
    assert kind_of(("model", "x")) is None


def test_dotted_keys_are_quoted_where_needed():
    assert (
        dotted(("projects", '/a "b"', "trust_level"))
        == r'projects."/a \"b\"".trust_level'
    )


@pytest.mark.parametrize(
    "values",
    [
        {"hooks": {"PreToolUse": 1}},
        {"hooks": {"PreToolUse": [1]}},
        {"hooks": {"PreToolUse": [{"matcher": 1}]}},
        {"hooks": {"PreToolUse": [{"hooks": [{"timeout": 1.5}]}]}},
        {"hooks": {"state": 1}},
        {"permissions": {"x": 1}},
        {"permissions": {"x": {"filesystem": {"/a": "nope"}}}},
        {"permissions": {"x": {"network": {"domains": {"a": "nope"}}}}},
        {"plugins": {"x": 1}},
        {"plugins": {"x": {"enabled": 1}}},
        {"apps": {"x": {"enabled": 1}}},
        {"memories": {"use_memories": 1}},
        {"features": {"hooks": 1}},
        {"features": {"hooks": {"x": 1}}},
        {"features": {"rollout_budget": 1}},
    ],
)
def test_types_are_checked_inside_the_tables_of_codex(values: dict[str, Any]):
    """Each is an error in Codex 0.169 too."""
    assert [problem.unknown for problem in problems(values)] == [False]


@pytest.mark.parametrize(
    "values",
    [
        {"hooks": {"Later": 1}},
        {"permissions": {"x": {"later": 1}}},
        {"plugins": {"x": {"later": 1}}},
        {
            "agents": {
                "default_subagent_model": "m",
                "default_subagent_reasoning_effort": "high",
            }
        },
        {"mcp_servers": {"x": {"tools": {"t": {"output_token_limit": 5}}}}},
        {"tui": {"copy_on_select": "auto", "presets": {}, "sidebar_width_percent": 20}},
        {"skills": {"max_context_tokens": 5}, "cloud": {}, "goals": {}},
    ],
)
def test_keys_that_codex_takes_are_known(values: dict[str, Any]):
    assert problems(values) == []


def test_an_unknown_feature_is_an_unknown_key_with_a_suggestion():
    assert problems({"features": {"goal": True}}) == [
        Problem(("features", "goal"), "is unknown", unknown=True)
    ]
    assert suggestion(("features", "goal")) == "features.goals"


@pytest.mark.parametrize(
    "name", ["MOCK_KEY", "my_team_llm_gateway_key_2024", "_a1", ""]
)
def test_the_name_of_a_variable_may_be_any(name: str) -> None:
    assert problems({"model_providers": {"m": {"env_key": name}}}) == []


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-secretsecretsecret",
        "gsk_Ab12Cd34Ef56Gh78Ij90Kl12",
        "0f3c9a7be1d24c55a9e8b7c6d5e4f3a2",
        "f03c9a7be1d24c55a9e8b7c6d5e4f3a2",
        "Bearer x",
        "$KEY",
    ],
)
@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("model_providers", "env_key"),
        ("mcp_servers", "bearer_token_env_var"),
        ("mcp_servers", "env_http_headers"),
    ],
)
def test_a_text_that_is_no_name_of_a_variable_is_not_shown(
    table: str, name: str, key: str
) -> None:
    value = {"x-key": key} if name == "env_http_headers" else key
    (problem,) = problems({table: {"m": {name: value}}})
    assert problem.text == "must be the NAME of an environment variable, not its value"


@pytest.mark.parametrize(
    ("key", "near"),
    [
        (("model_providers", "m", "api_key"), "model_providers.m.env_key"),
        (("model_providers", "m", "apikey"), "model_providers.m.env_key"),
        (("model_prices", "gpt-5", "5"), 'model_prices."gpt-5.5"'),
        (("stream_idle_timeout_ms",), "model_providers.NAME.stream_idle_timeout_ms"),
        (("model_providers", "m", "url"), "model_providers.m.base_url"),
        (("model_providers", "m", "api_base"), "model_providers.m.base_url"),
        (("mcp_servers", "a", "cmd"), "mcp_servers.a.command"),
        (("theme",), "tui.theme"),
        (("notifications",), "tui.notifications"),
        (("max_cost",), "budget.max_cost"),
        (("secrets",), "protection.secrets"),
        (("network_access",), "sandbox_workspace_write.network_access"),
        (("mcp",), "mcp_servers"),
        (("approval",), "approval_policy"),
    ],
)
def test_keys_that_belong_elsewhere_are_suggested(
    key: tuple[str, ...], near: str
) -> None:
    assert suggestion(key) == near


def test_no_session_has_no_threads_for_subagents() -> None:
    (problem,) = problems({"agents": {"max_threads": 0}})
    assert problem.key == ("agents", "max_threads")
