"""Every key of the configuration file in one table: its kind, its default, and whether it has an effect.

The keys are those that Codex 0.169 accepts with `--strict-config`. Those that this program does not use are
here too, so that a file written for Codex is accepted. A new key is one line here, or a word in a line of keys that
are alike; `Config` has a field for it if the program reads it.
"""

from collections.abc import Iterator
from typing import Any, Final, get_args

from codex_py.config.tables import (
    FEATURES_WITH_SETTINGS,
    HOOK_EVENTS,
    HOOKS,
    MCP_SERVER,
    MEMORIES,
    MODEL_PROVIDER,
    NETWORK,
    OTEL,
    PERMISSION_PROFILE,
    PRICES,
    REASONING_EFFORT,
    ROLLOUT_BUDGET,
    TUI,
    AnyOf,
    Setting,
    Table,
    alike,
    feature_names,
    unused,
)
from codex_py.protocol.approval import DEFAULT_LIMITS, ApprovalKind, ApprovalPolicy, SandboxMode

_SWITCH_OR_TABLE: Final = AnyOf(("boolean", "table"))

KEYS: Final[Table] = {
    # The model.
    "model": Setting("string", default="gpt-6.1-sol"),
    "model_provider": Setting("string", default="openai", project=False),
    "model_providers": Setting({"*": MODEL_PROVIDER}, project=False),
    "oss_provider": "string",
    "openai_base_url": Setting("string", project=False),
    "model_context_window": "count",
    "model_max_output_tokens": "limit",
    "model_auto_compact_token_limit": "integer",
    "model_auto_compact_token_limit_scope": unused(("total", "body_after_prefix"), "total"),
    "model_post_turn_compact_threshold_percent": unused("count"),
    "model_catalog_json": "path",
    "model_fallbacks": Setting(
        [AnyOf(("string", {"provider": "string", "model": "string"}))], default=[], project=False
    ),
    "model_prices": Setting({"*": PRICES}, project=False),
    "model_reasoning_effort": REASONING_EFFORT,
    "plan_mode_reasoning_effort": REASONING_EFFORT,
    "model_reasoning_summary": ("auto", "concise", "detailed", "none"),
    "model_verbosity": ("low", "medium", "high"),
    **alike("string", "service_tier review_model"),
    "personality": unused(("none", "friendly", "pragmatic"), "none"),
    # What it is told.
    **alike("string", "instructions developer_instructions compact_prompt"),
    **alike("path", "model_instructions_file experimental_compact_prompt_file"),
    "include_permissions_instructions": Setting("boolean", default=True),
    "include_environment_context": Setting("boolean", default=True),
    "include_collaboration_mode_instructions": Setting("boolean", default=True),
    "project_doc_max_bytes": Setting("count", default=32768),
    "project_doc_fallback_filenames": Setting(["string"], default=[]),
    "project_root_markers": Setting(["string"], default=[".git"]),
    # What it may do.
    "approval_policy": AnyOf(
        (tuple(ApprovalPolicy), {"granular": dict.fromkeys(get_args(ApprovalKind), "boolean")})
    ),
    # A project does not say who approves its calls.
    "approvals_reviewer": Setting(("user", "auto_review", "guardian_subagent"), project=False),
    "auto_review": Setting(
        {"policy": "string", "circuit_break_action": unused(("default", "strict"), "default")},
        project=False,
    ),
    "sandbox_mode": get_args(SandboxMode),
    "sandbox_workspace_write": {
        "writable_roots": Setting(["path"], default=[]),
        "network_access": Setting("boolean", default=False),
        "exclude_tmpdir_env_var": Setting("boolean", default=False),
        "exclude_slash_tmp": Setting("boolean", default=False),
    },
    "sandbox_limits": {
        "max_processes": Setting("limit", default=DEFAULT_LIMITS.max_processes),
        "max_open_files": Setting("limit", default=DEFAULT_LIMITS.max_open_files),
        "max_memory_mb": "limit",
    },
    "default_permissions": "string",
    "permissions": {"*": PERMISSION_PROFILE},
    # Ours, not Codex's.
    "protection": Setting(
        {"secrets": ("deny", "allow"), **alike(["string"], "deny allow_domains")}, project=False
    ),
    "projects": Setting({"*": {"trust_level": ("trusted", "untrusted")}}, project=False),
    # Its tools.
    "allow_login_shell": Setting("boolean", default=True),
    "shell_environment_policy": {
        "inherit": Setting(("all", "core", "none"), default="all"),
        "ignore_default_excludes": Setting("boolean", default=True),
        "exclude": Setting(["string"], default=[]),
        "set": Setting({"*": "string"}, default={}),
        "include_only": Setting(["string"], default=[]),
        "experimental_use_profile": Setting("boolean", default=False),
    },
    "background_terminal_max_timeout": Setting("count", default=300_000),
    "experimental_use_unified_exec_tool": "boolean",
    "tool_output_token_limit": "count",
    "tools": {
        "web_search": AnyOf(
            (
                "boolean",
                {
                    "context_size": ("low", "medium", "high"),
                    "allowed_domains": ["string"],
                    "location": alike("string", "country region city timezone"),
                },
            )
        ),
        "update_plan": {"enabled": "boolean"},
        "experimental_request_user_input": {"enabled": "boolean"},
        "client_search_provider": unused(("standalone", "search_mcp")),
    },
    "tool_choice": Setting("string", default="auto"),
    "parallel_tool_calls": "boolean",
    "web_search": Setting(("disabled", "cached", "indexed", "live"), default="cached"),
    "mcp_servers": {"*": MCP_SERVER},
    "mcp_oauth_credentials_store": Setting(("auto", "file", "keyring"), default="auto"),
    "mcp_oauth_callback_port": "count",
    "mcp_oauth_callback_url": "string",
    "skills": {
        "config": ["table"],
        "bundled": {"enabled": "boolean"},
        "include_instructions": Setting("boolean", default=True),
        "max_context_tokens": "count",
    },
    "agents": {
        "enabled": "boolean",
        "max_threads": "limit",
        "max_depth": "count",
        **alike("string", "default_subagent_model default_subagent_reasoning_effort"),
        "interrupt_message": unused("boolean", True),
        "job_max_runtime_seconds": unused("count"),
        "*": {"description": "string", "config_file": "path", "nickname_candidates": ["string"]},
    },
    # What happens around it.
    "notify": Setting(["string"], project=False),
    "hooks": {
        **dict.fromkeys(HOOK_EVENTS, HOOKS),
        "state": {"*": {"trusted_hash": "string", "enabled": "boolean", "*": "any"}},
        # Ours, not Codex's.
        "claude": "boolean",
        "stop_rounds": "count",
        "*": "any",
    },
    # Ours, not Codex's.
    "log_file": Setting("path", project=False),
    "extensions": Setting({"*": "table"}, project=False),
    "patch": {"ambiguous": Setting(("first", "refuse"), default="first")},
    "history": {
        "persistence": Setting(("save-all", "none"), default="save-all"),
        "max_bytes": "count",
        # Ours, not Codex's.
        "redact": Setting("boolean", default=False),
    },
    "hide_agent_reasoning": Setting("boolean", default=False),
    "show_raw_agent_reasoning": unused("boolean", False, default=False),
    "file_opener": unused(("vscode", "vscode-insiders", "windsurf", "cursor", "none"), "none"),
    **alike(
        "boolean",
        "check_for_update_on_startup disable_paste_burst suppress_unstable_features_warning",
    ),
    "features": {
        "*": unused("boolean", False, names=feature_names),
        **dict.fromkeys(sorted(FEATURES_WITH_SETTINGS), unused(_SWITCH_OR_TABLE, False)),
        **alike(
            "boolean",
            "shell_tool view_image goals plugins unified_exec unified_exec_tty steer fast_mode multi_agent undo",
        ),
        "default_mode_request_user_input": "boolean",
        # These protect.
        **alike("boolean", "hooks codex_hooks credential_masking"),
        "network_proxy": AnyOf(("boolean", NETWORK)),
        "rollout_budget": AnyOf(("boolean", ROLLOUT_BUDGET)),
    },
    "tui": TUI,
    "allow_unenforced": Setting(["string"], project=False),
    # Ours, not Codex's.
    "budget": {
        "max_turns": "limit",
        "max_tokens": AnyOf(("limit", "string")),
        "max_cost": "positive",
        "max_time": AnyOf(("positive", "string")),
        "loop_guard": Setting("boolean", default=True),
    },
    "gates": {
        **alike(["string"], "verify forbid_path require_evidence"),
        "verify_tries": "count",
        "verify_timeout": AnyOf(("positive", "string")),
        "require_change": "boolean",
        "max_diff_lines": "count",
        "fail_on": [("denied", "tool", "sandbox")],
    },
    "otel": Setting(OTEL, project=False),
    # Accepted, and mostly of no effect here.
    "allow_symlinked_codex_home": unused("boolean", False),
    "include_apps_instructions": unused("boolean", False),
    **alike(
        unused("string"),
        """experimental_realtime_start_instructions experimental_realtime_webrtc_call_base_url
        experimental_realtime_ws_backend_prompt experimental_realtime_ws_model
        experimental_realtime_ws_startup_context experimental_thread_store_endpoint""",
    ),
    **alike(
        unused("string", project=False),
        "apps_mcp_product_sku chatgpt_base_url experimental_realtime_ws_base_url",
    ),
    **alike(unused("count"), "mcp_optional_startup_grace_ms thread_unload_delay_secs"),
    **alike(unused("path"), "js_repl_node_path log_dir sqlite_home"),
    "js_repl_node_module_dirs": unused(["path"]),
    **alike(
        unused("table"),
        """audio browser_use cloud computer_use experimental_thread_store ghost_snapshot goals
        marketplaces mcp_enterprise_managed_auth orchestrator realtime tool_suggest""",
    ),
    **alike("table", "desktop notice windows"),
    **alike({"enabled": "boolean"}, "analytics feedback"),
    **alike(unused({"*": {"enabled": "boolean", "*": "any"}}), "apps plugins"),
    "responses_api_metadata": unused({"*": "string"}, {}),
    # Only `login` and `logout` look at it; keys of sessions come from variables and `auth.json`.
    "cli_auth_credentials_store": unused(("file", "keyring", "auto", "ephemeral"), "file"),
    "forced_login_method": ("chatgpt", "api"),
    "forced_chatgpt_workspace_id": unused(AnyOf(("string", ["string"]))),
    "memories": unused(MEMORIES),
    "profile": Setting("string", project=False),
    "profiles": Setting("table", project=False),
}


def _defaults(table: Table, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, entry in table.items():
        known = entry if isinstance(entry, Setting) else Setting(entry)
        if known.default is not None:
            yield ".".join((*path, name)), known.default
        if isinstance(known.kind, dict):
            yield from _defaults(known.kind, (*path, name))


DEFAULTS: Final = dict(_defaults(KEYS))
"""By dotted key. A key that is not here is unset by default."""
PROJECT_REFUSED: Final = frozenset(
    name for name, entry in KEYS.items() if isinstance(entry, Setting) and not entry.project
)
"""Keys that a repository does not decide: where requests and keys go, what is started, whom to trust."""
