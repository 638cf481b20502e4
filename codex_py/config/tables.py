"""The larger tables of the configuration: providers, MCP servers, profiles, hooks, memories, the terminal."""

from typing import Final

from codex_py.config.kinds import AnyOf, Kind

_APPROVAL_MODE: Final[Kind] = ("auto", "prompt", "writes", "approve")
REASONING_EFFORT: Final[Kind] = "string"  # each model has its own; Codex passes any through

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
    "capabilities": "table",
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
    "tools": {"*": {"approval_mode": _APPROVAL_MODE, "output_token_limit": "count"}},
    "startup_readiness": ("connection", "catalog"),
    "tool_input_schema_max_bytes": "count",
    "omit_tools_from": "array",
}

_FILE_ACCESS: Final[Kind] = ("read", "write", "deny", "none")
PERMISSION_PROFILE: Final[dict[str, Kind]] = {
    "description": "string",
    "extends": "string",
    "workspace_roots": "table",
    "filesystem": {
        "glob_scan_max_depth": "count",
        "*": AnyOf((_FILE_ACCESS, {"*": _FILE_ACCESS})),
    },
    "network": {
        "enabled": "boolean",
        "domains": {"*": ("allow", "deny")},
        "unix_sockets": "table",
        "*": "any",
    },
    "*": "any",
}

HOOKS: Final[Kind] = [
    {
        "matcher": "string",
        "hooks": [
            {
                "type": ("command", "mcp_tool", "prompt", "agent"),
                "command": "string",
                "timeout": "number",
                "async": "boolean",
                "*": "any",
            }
        ],
        "*": "any",
    }
]
"""What one event starts."""
HOOK_EVENTS: Final = (
    *("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"),
    *("PermissionRequest", "PreCompact", "PostCompact", "SubagentStart", "SubagentStop"),
    "Interrupt",
)

MEMORIES: Final[dict[str, Kind]] = {
    "consolidation_model": "string",
    "dedicated_tools": "boolean",
    "disable_on_external_context": "boolean",
    "extract_model": "string",
    "generate_memories": "boolean",
    "max_raw_memories_for_consolidation": "count",
    "max_rollout_age_days": "integer",
    "max_rollouts_per_startup": "count",
    "max_unused_days": "integer",
    "min_rate_limit_remaining_percent": "integer",
    "min_rollout_idle_hours": "integer",
    "no_memories_if_mcp_or_web_search": "boolean",
    "use_memories": "boolean",
}

TUI: Final[dict[str, Kind]] = {
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
    "screen_reader_detection_done": "boolean",
    "effects": "table",
    "rendering": "table",
    "show_server_version_notice": "boolean",
    "auto_recap": "boolean",
    "disable_paste_burst": "boolean",
    "question_esc_back": "boolean",
    "fullscreen_transcript": "boolean",
    "collapse_turn_details": "boolean",
    "sidebar_width_percent": "count",
    "mouse_scroll_speed": "count",
    "copy_on_select": ("auto", "always", "never"),
    "copy_on_select_clear_selection": "boolean",
    "right_click_paste": ("auto", "on", "off"),
    "pet_anchor": ("composer", "screen-bottom"),
    "agents_overview_grouping": ("project", "status", "model"),
    "resume_cwd": ("current", "session"),
    "presets": {"*": "table"},
    "default_hosts": {"*": "table"},
}
