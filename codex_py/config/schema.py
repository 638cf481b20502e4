"""Every key that a configuration file may hold, as a table to read.

The keys are those that Codex 0.169 accepts with `--strict-config`. Those that this program makes no use
of are here as well: a file that is written for Codex is not full of mistakes.
"""

from typing import Any, Final

from codex_py.config.features import FEATURES, FEATURES_WITH_SETTINGS
from codex_py.config.kinds import AnyOf, Kind
from codex_py.config.tables import (
    HOOK_EVENTS,
    HOOKS,
    MCP_SERVER,
    MEMORIES,
    MODEL_PROVIDER,
    PERMISSION_PROFILE,
    REASONING_EFFORT,
    TUI,
)
from codex_py.protocol.limits import DEFAULT_LIMITS

SCHEMA: Final[dict[str, Kind]] = {
    # The model.
    "model": "string",
    "review_model": "string",
    "model_provider": "string",
    "model_providers": {"*": MODEL_PROVIDER},
    "oss_provider": "string",
    "openai_base_url": "string",
    "chatgpt_base_url": "string",
    "model_context_window": "count",
    "model_auto_compact_token_limit": "integer",
    "model_auto_compact_token_limit_scope": ("total", "body_after_prefix"),
    "model_post_turn_compact_threshold_percent": "count",
    "model_catalog_json": "path",
    "model_reasoning_effort": REASONING_EFFORT,
    "plan_mode_reasoning_effort": REASONING_EFFORT,
    "model_reasoning_summary": ("auto", "concise", "detailed", "none"),
    "model_verbosity": ("low", "medium", "high"),
    "service_tier": "string",
    "personality": ("none", "friendly", "pragmatic"),
    # What it is told.
    "instructions": "string",
    "model_instructions_file": "path",
    "developer_instructions": "string",
    "compact_prompt": "string",
    "experimental_compact_prompt_file": "path",
    "include_permissions_instructions": "boolean",
    "include_environment_context": "boolean",
    "include_apps_instructions": "boolean",
    "include_collaboration_mode_instructions": "boolean",
    "project_doc_max_bytes": "count",
    "project_doc_fallback_filenames": ["string"],
    "project_root_markers": ["string"],
    # What it may do.
    "approval_policy": AnyOf(
        (
            ("untrusted", "on-failure", "on-request", "never"),
            {
                "granular": {
                    "sandbox_approval": "boolean",
                    "rules": "boolean",
                    "mcp_elicitations": "boolean",
                    "request_permissions": "boolean",
                    "skill_approval": "boolean",
                }
            },
        )
    ),
    "approvals_reviewer": ("user", "auto_review", "guardian_subagent"),
    "auto_review": {"policy": "string", "circuit_break_action": ("default", "strict")},
    "sandbox_mode": ("read-only", "workspace-write", "danger-full-access"),
    "sandbox_workspace_write": {
        "writable_roots": ["path"],
        "network_access": "boolean",
        "exclude_tmpdir_env_var": "boolean",
        "exclude_slash_tmp": "boolean",
    },
    "sandbox_limits": {
        "max_processes": "count",
        "max_open_files": "count",
        "max_memory_mb": "count",
    },
    "default_permissions": "string",
    "permissions": {"*": PERMISSION_PROFILE},
    "projects": {"*": {"trust_level": ("trusted", "untrusted")}},
    # Its tools.
    "allow_login_shell": "boolean",
    "shell_environment_policy": {
        "inherit": ("all", "core", "none"),
        "ignore_default_excludes": "boolean",
        "exclude": ["string"],
        "set": {"*": "string"},
        "include_only": ["string"],
        "experimental_use_profile": "boolean",
    },
    "background_terminal_max_timeout": "count",
    "experimental_use_unified_exec_tool": "boolean",
    "tool_output_token_limit": "count",
    "tools": {
        "web_search": AnyOf(
            (
                "boolean",
                {
                    "context_size": ("low", "medium", "high"),
                    "allowed_domains": ["string"],
                    "location": {
                        "country": "string",
                        "region": "string",
                        "city": "string",
                        "timezone": "string",
                    },
                },
            )
        ),
        "update_plan": {"enabled": "boolean"},
        "experimental_request_user_input": {"enabled": "boolean"},
        "client_search_provider": ("standalone", "search_mcp"),
    },
    "web_search": ("disabled", "cached", "indexed", "live"),
    "mcp_servers": {"*": MCP_SERVER},
    "mcp_oauth_credentials_store": ("auto", "file", "keyring"),
    "mcp_oauth_callback_port": "count",
    "mcp_oauth_callback_url": "string",
    "skills": {
        "config": ["table"],
        "bundled": {"enabled": "boolean"},
        "include_instructions": "boolean",
        "max_context_tokens": "count",
    },
    "agents": {
        "enabled": "boolean",
        "max_threads": "count",
        "max_depth": "integer",
        "job_max_runtime_seconds": "count",
        "interrupt_message": "boolean",
        "default_subagent_model": "string",
        "default_subagent_reasoning_effort": "string",
        "*": {
            "description": "string",
            "config_file": "path",
            "nickname_candidates": ["string"],
        },
    },
    # What happens around it.
    "notify": ["string"],
    "hooks": {**dict.fromkeys(HOOK_EVENTS, HOOKS), "state": "table", "*": "any"},
    # Ours, not Codex's.
    "patch": {"ambiguous": ("first", "refuse")},
    "history": {"persistence": ("save-all", "none"), "max_bytes": "count"},
    "sqlite_home": "path",
    "log_dir": "path",
    "hide_agent_reasoning": "boolean",
    "show_raw_agent_reasoning": "boolean",
    "file_opener": ("vscode", "vscode-insiders", "windsurf", "cursor", "none"),
    "check_for_update_on_startup": "boolean",
    "disable_paste_burst": "boolean",
    "suppress_unstable_features_warning": "boolean",
    "features": {
        **dict.fromkeys(FEATURES, "boolean"),
        **dict.fromkeys(FEATURES_WITH_SETTINGS, AnyOf(("boolean", "table"))),
    },
    "tui": TUI,
    "allow_unenforced": ["string"],
    "budget": "table",
    # Accepted, and mostly of no effect here.
    "allow_symlinked_codex_home": "boolean",
    "browser_use": "table",
    "cloud": "table",
    "computer_use": "table",
    "experimental_realtime_webrtc_call_base_url": "string",
    "experimental_thread_store_endpoint": "string",
    "goals": "table",
    "js_repl_node_module_dirs": ["path"],
    "js_repl_node_path": "path",
    "mcp_enterprise_managed_auth": "table",
    "mcp_optional_startup_grace_ms": "count",
    "responses_api_metadata": {"*": "string"},
    "thread_unload_delay_secs": "count",
    "cli_auth_credentials_store": ("file", "keyring", "auto", "ephemeral"),
    "forced_login_method": ("chatgpt", "api"),
    "forced_chatgpt_workspace_id": AnyOf(("string", ["string"])),
    "analytics": {"enabled": "boolean"},
    "feedback": {"enabled": "boolean"},
    "otel": {
        "environment": "string",
        "log_user_prompt": "boolean",
        "exporter": "any",
        "trace_exporter": "any",
        "metrics_exporter": "any",
        "*": "any",
    },
    "apps": {"*": {"enabled": "boolean", "*": "any"}},
    "apps_mcp_product_sku": "string",
    "audio": "table",
    "desktop": "table",
    "experimental_realtime_start_instructions": "string",
    "experimental_realtime_ws_backend_prompt": "string",
    "experimental_realtime_ws_base_url": "string",
    "experimental_realtime_ws_model": "string",
    "experimental_realtime_ws_startup_context": "string",
    "experimental_thread_store": "table",
    "ghost_snapshot": "table",
    "marketplaces": "table",
    "memories": MEMORIES,
    "notice": "table",
    "orchestrator": "table",
    "plugins": {"*": {"enabled": "boolean", "*": "any"}},
    "profile": "string",
    "profiles": "table",
    "realtime": "table",
    "tool_suggest": "table",
    "windows": "table",
}

DEFAULTS: Final[dict[str, Any]] = {
    "model": "gpt-6.1-sol",
    "model_provider": "openai",
    "include_permissions_instructions": True,
    "include_environment_context": True,
    "project_doc_max_bytes": 32768,
    "project_doc_fallback_filenames": [],
    "project_root_markers": [".git"],
    "sandbox_workspace_write.writable_roots": [],
    "sandbox_workspace_write.network_access": False,
    "sandbox_workspace_write.exclude_tmpdir_env_var": False,
    "sandbox_workspace_write.exclude_slash_tmp": False,
    "sandbox_limits.max_processes": DEFAULT_LIMITS.max_processes,
    "sandbox_limits.max_open_files": DEFAULT_LIMITS.max_open_files,
    "allow_login_shell": True,
    "shell_environment_policy.inherit": "all",
    "shell_environment_policy.ignore_default_excludes": True,
    "shell_environment_policy.exclude": [],
    "shell_environment_policy.set": {},
    "shell_environment_policy.include_only": [],
    "shell_environment_policy.experimental_use_profile": False,
    "background_terminal_max_timeout": 300_000,
    "web_search": "cached",
    "patch.ambiguous": "first",
    "history.persistence": "save-all",
    "hide_agent_reasoning": False,
    "show_raw_agent_reasoning": False,
}
"""By dotted key. A key that is not here is unset by default."""

PROJECT_REFUSED: Final = frozenset(
    {
        "allow_unenforced",
        "apps_mcp_product_sku",
        "chatgpt_base_url",
        "experimental_realtime_ws_base_url",
        "model_provider",
        "model_providers",
        "notify",
        "openai_base_url",
        "otel",
        "profile",
        "profiles",
        "projects",
    }
)
"""Keys that a repository does not decide: where requests and keys go, what is started, whom to trust."""
