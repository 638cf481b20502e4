"""Every key that a configuration file may hold, as a table to read.

The keys are those that Codex 0.169 accepts with `--strict-config`. Those that this program makes no use
of are here as well: a file that is written for Codex is not full of mistakes.
"""

from typing import Any, Final, TypeAlias


class AnyOf(tuple["Kind", ...]):
    """A value may be of any one of these kinds."""

    __slots__ = ()


Kind: TypeAlias = "str | tuple[str, ...] | list[Kind] | dict[str, Kind] | AnyOf"
"""What a value must be.

A string names a plain type, see `PLAIN`; a tuple of strings is a choice; a list of one kind is an array;
a dict is a table, and the name `*` in it stands for any other name.
"""

PLAIN: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "string": ("a string", (str,)),
    "secret": ("a string", (str,)),  # not shown when the configuration is explained
    "path": ("a path", (str,)),  # relative to the folder of the file that sets it
    "boolean": ("a boolean", (bool,)),
    "integer": ("an integer", (int,)),
    "count": ("an integer of 0 or more", (int,)),
    "number": ("a number", (int, float)),
    "table": ("a table", (dict,)),  # free in form
    "any": ("anything", (object,)),
}

_APPROVAL_MODE: Final[Kind] = ("auto", "prompt", "writes", "approve")
_REASONING_EFFORT: Final[Kind] = "string"  # each model has its own; Codex passes any through

MODEL_PROVIDER: Final[dict[str, Kind]] = {
    "name": "string",
    "base_url": "string",
    "env_key": "string",
    "env_key_instructions": "string",
    "experimental_bearer_token": "secret",
    "auth": {
        "command": "string",
        "args": ["string"],
        "cwd": "path",
        "timeout_ms": "count",
        "refresh_interval_ms": "count",
    },
    "aws": "table",
    "wire_api": "string",  # the model package knows its wires
    "query_params": {"*": "string"},
    "http_headers": {"*": "secret"},
    "env_http_headers": {"*": "string"},
    "request_max_retries": "count",
    "stream_max_retries": "count",
    "stream_idle_timeout_ms": "count",
    "websocket_connect_timeout_ms": "count",
    "supports_websockets": "boolean",
    "requires_openai_auth": "boolean",
}

MCP_SERVER: Final[dict[str, Kind]] = {
    "name": "string",
    "command": "string",
    "args": ["string"],
    "env": {"*": "secret"},
    "env_vars": [AnyOf(("string", {"name": "string", "source": "string"}))],
    "cwd": "string",
    "environment_id": "string",
    "url": "string",
    "bearer_token_env_var": "string",
    "http_headers": {"*": "secret"},
    "http_headers_helper": "string",
    "env_http_headers": {"*": "string"},
    "oauth": {"client_id": "string", "*": "any"},
    "oauth_resource": "string",
    "auth": ("oauth", "chatgpt", "ema_auth"),
    "scopes": ["string"],
    "enabled": "boolean",
    "required": "boolean",
    "startup_timeout_sec": "number",
    "startup_timeout_ms": "count",
    "tool_timeout_sec": "number",
    "enabled_tools": ["string"],
    "disabled_tools": ["string"],
    "supports_parallel_tool_calls": "boolean",
    "default_tools_approval_mode": _APPROVAL_MODE,
    "tools": {"*": {"approval_mode": _APPROVAL_MODE}},
}

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
    "model_catalog_json": "path",
    "model_reasoning_effort": _REASONING_EFFORT,
    "plan_mode_reasoning_effort": _REASONING_EFFORT,
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
    "auto_review": {"policy": "string"},
    "sandbox_mode": ("read-only", "workspace-write", "danger-full-access"),
    "sandbox_workspace_write": {
        "writable_roots": ["path"],
        "network_access": "boolean",
        "exclude_tmpdir_env_var": "boolean",
        "exclude_slash_tmp": "boolean",
    },
    "default_permissions": "string",
    "permissions": "table",
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
    },
    "agents": {
        "enabled": "boolean",
        "max_threads": "count",
        "max_depth": "integer",
        "job_max_runtime_seconds": "count",
        "interrupt_message": "boolean",
        "*": {
            "description": "string",
            "config_file": "path",
            "nickname_candidates": ["string"],
        },
    },
    # What happens around it.
    "notify": ["string"],
    "hooks": "table",
    "history": {"persistence": ("save-all", "none"), "max_bytes": "count"},
    "sqlite_home": "path",
    "log_dir": "path",
    "hide_agent_reasoning": "boolean",
    "show_raw_agent_reasoning": "boolean",
    "file_opener": ("vscode", "vscode-insiders", "windsurf", "cursor", "none"),
    "check_for_update_on_startup": "boolean",
    "disable_paste_burst": "boolean",
    "suppress_unstable_features_warning": "boolean",
    "features": "table",
    "tui": {
        "notifications": AnyOf(("boolean", ["string"])),
        "notification_method": ("auto", "osc9", "osc777", "bel"),
        "notification_condition": ("unfocused", "always"),
        "animations": "boolean",
        "show_tooltips": "boolean",
        "alternate_screen": ("auto", "always", "never"),
        "status_line": ["string"],
        "status_line_use_colors": "boolean",
        "terminal_title": ["string"],
        "terminal_resize_reflow_max_rows": "count",
        "theme": "string",
        "pet": "string",
        "vim_mode_default": "boolean",
        "session_picker_view": ("comfortable", "dense"),
        "raw_output_mode": "boolean",
        "keymap": "table",
        "model_availability_nux": "table",
    },
    "allow_unenforced": ["string"],
    "budget": "table",
    # Accepted, and of no effect here.
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
    "apps": "table",
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
    "memories": "table",
    "notice": "table",
    "orchestrator": "table",
    "plugins": "table",
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
    "allow_login_shell": True,
    "shell_environment_policy.inherit": "all",
    "shell_environment_policy.ignore_default_excludes": True,
    "shell_environment_policy.exclude": [],
    "shell_environment_policy.set": {},
    "shell_environment_policy.include_only": [],
    "shell_environment_policy.experimental_use_profile": False,
    "background_terminal_max_timeout": 300_000,
    "web_search": "cached",
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
