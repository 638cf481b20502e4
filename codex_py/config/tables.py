"""The types of the table of known keys, and the larger tables in it: providers, MCP servers, hooks, the terminal."""

from typing import Any, Final, NamedTuple, TypeAlias


class AnyOf(tuple["Kind", ...]):
    """A value may be of any one of these kinds."""

    __slots__ = ()


Kind: TypeAlias = "str | tuple[str, ...] | list[Kind] | Table | AnyOf"
"""The kind of a value.

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
    "limit": ("an integer of more than 0", (int,)),
    "number": ("a number", (int, float)),
    "duration": ("a finite number of more than 0", (int, float)),
    "table": ("a table", (dict,)),  # free in form
    "array": ("an array", (list,)),  # likewise
    "any": ("anything", (object,)),
}


class Setting(NamedTuple):
    """A key about which there is more to say than the kind of its value."""

    kind: Kind
    default: Any = None
    project: bool = True
    """A project may set it."""
    harmless: tuple[Any, ...] | None = None
    """For a key without effect in this version: the values that ask for nothing else. None for other keys."""


Table: TypeAlias = "dict[str, Kind | Setting]"


def setting(table: Table, name: str) -> Setting | None:
    """What a table of kinds says about a key; None for an unknown one."""
    entry = table.get(name, table.get("*"))
    return entry if entry is None or isinstance(entry, Setting) else Setting(entry)


def unused(kind: Kind, *harmless: Any, **more: Any) -> Setting:
    """A key without effect in this version; the user is warned unless the value is `harmless`."""
    return Setting(kind, harmless=harmless, **more)


_APPROVAL_MODE: Final[Kind] = ("auto", "prompt", "writes", "approve")
REASONING_EFFORT: Final[Kind] = "string"  # each model has its own; Codex passes any through

MODEL_PROVIDER: Final[Table] = {
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
        "refresh_interval_ms": unused("count"),
    },
    "aws": unused("table"),
    "wire_api": "string",  # the model package knows its wires
    "key_header": "string",
    "profile": {"extra_body": "table", "*": "any"},
    "query_params": {"*": "string"},
    "http_headers": {"*": "secret"},
    "env_http_headers": {"*": "string"},
    "request_max_retries": "count",
    "stream_max_retries": "count",
    "stream_idle_timeout_ms": "count",
    "websocket_connect_timeout_ms": unused("count"),
    "supports_websockets": unused("boolean", False),
    "requires_openai_auth": "boolean",
    "capabilities": unused("table", {}),
}

MCP_SERVER: Final[Table] = {
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
    "http_headers_helper": unused("string"),
    "env_http_headers": {"*": "string"},
    "oauth": {"client_id": "string", "*": "any"},
    "oauth_resource": "string",
    "auth": unused(("oauth", "chatgpt", "ema_auth"), "oauth"),
    "scopes": ["string"],
    "enabled": "boolean",
    "required": "boolean",
    "startup_timeout_sec": "duration",
    "startup_timeout_ms": "limit",
    "tool_timeout_sec": "duration",
    "enabled_tools": ["string"],
    "disabled_tools": ["string"],
    "supports_parallel_tool_calls": "boolean",
    "default_tools_approval_mode": _APPROVAL_MODE,
    "tools": {"*": {"approval_mode": _APPROVAL_MODE, "output_token_limit": unused("count")}},
    "startup_readiness": unused(("connection", "catalog"), "catalog"),
    "tool_input_schema_max_bytes": unused("count"),
    "omit_tools_from": unused("array", []),
}

_FILE_ACCESS: Final[Kind] = ("read", "write", "deny", "none")
PERMISSION_PROFILE: Final[Table] = {
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
"""The hooks of one event."""
HOOK_EVENTS: Final = (
    *("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"),
    *("PermissionRequest", "PreCompact", "PostCompact", "SubagentStart", "SubagentStop"),
    "Interrupt",
)

MEMORIES: Final[Table] = {
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

TUI: Final[Table] = {
    "notifications": AnyOf(("boolean", ["string"])),
    "notification_method": ("auto", "osc9", "osc777", "bel"),
    "notification_condition": ("unfocused", "always"),
    "animations": unused("boolean", False),
    "show_tooltips": unused("boolean", False),
    "alternate_screen": unused(("auto", "always", "never"), "never", "auto"),
    "status_line": ["string"],
    "status_line_use_colors": unused("boolean"),
    "terminal_title": ["string"],
    "terminal_resize_reflow_max_rows": unused("count"),
    "theme": "string",
    "pet": unused("string"),
    "vim_mode_default": "boolean",
    "session_picker_view": unused(("comfortable", "dense")),
    "raw_output_mode": unused("boolean", False),
    "keymap": unused("table", {}),
    "model_availability_nux": "table",
    "screen_reader_detection_done": "boolean",
    "effects": unused("table"),
    "rendering": unused("table"),
    "show_server_version_notice": unused("boolean", False),
    "auto_recap": unused("boolean", False),
    "disable_paste_burst": unused("boolean"),
    "question_esc_back": unused("boolean"),
    "fullscreen_transcript": unused("boolean", False),
    "collapse_turn_details": unused("boolean", False),
    "sidebar_width_percent": unused("count"),
    "mouse_scroll_speed": unused("count"),
    "copy_on_select": unused(("auto", "always", "never"), "never", "auto"),
    "copy_on_select_clear_selection": unused("boolean"),
    "right_click_paste": unused(("auto", "on", "off"), "off", "auto"),
    "pet_anchor": unused(("composer", "screen-bottom")),
    "agents_overview_grouping": unused(("project", "status", "model")),
    "resume_cwd": unused(("current", "session"), "current"),
    "presets": unused({"*": "table"}),
    "default_hosts": unused({"*": "table"}),
}
