"""The types of the table of known keys, and the larger tables in it: providers, MCP servers, hooks, the terminal."""

from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.config.keymap import CONTEXTS, action_names


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
    "variable": ("the NAME of an environment variable, not what it holds", (str,)),
    "path": ("a path", (str,)),  # relative to the folder of the file that sets it
    "boolean": ("a boolean", (bool,)),
    "integer": ("an integer", (int,)),
    "count": ("an integer of 0 or more", (int,)),
    "limit": ("an integer of more than 0", (int,)),
    "number": ("a number", (int, float)),
    "price": ("a finite number of 0 or more", (int, float)),
    "positive": ("a finite number of more than 0", (int, float)),
    "key": ("a key such as `ctrl-t` or `page-down`", (str,)),
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
    names: Callable[[], Collection[str]] | None = None
    """For `*` in a table: the names that it stands for, which are read when the table is used. None: any other name."""


Table: TypeAlias = "dict[str, Kind | Setting]"


def setting(table: Table, name: str) -> Setting | None:
    """What a table of kinds says about a key; None for an unknown one."""
    entry = table.get(name, table.get("*"))
    if not isinstance(entry, Setting):
        return None if entry is None else Setting(entry)
    return entry if entry.names is None or name in entry.names() else None


def unused(kind: Kind, *harmless: Any, **more: Any) -> Setting:
    """A key without effect in this version; the user is warned unless the value is `harmless`."""
    return Setting(kind, harmless=harmless, **more)


def alike(kind: "Kind | Setting", names: str) -> Table:
    """A table of several keys, separated by blanks, that are all of one kind."""
    return dict.fromkeys(names.split(), kind)


_APPROVAL_MODE: Final[Kind] = ("auto", "prompt", "writes", "approve")
REASONING_EFFORT: Final[Kind] = "string"  # each model has its own; Codex passes any through

MODEL_PROVIDER: Final[Table] = {
    **alike("string", "name base_url env_key_instructions"),
    "env_key": "variable",
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
    "profile": {"extra_body": "table", "left_out": ["string"], "*": "any"},
    "query_params": {"*": "string"},
    "http_headers": {"*": "secret"},
    "env_http_headers": {"*": "variable"},
    **alike("count", "request_max_retries stream_max_retries stream_idle_timeout_ms"),
    "websocket_connect_timeout_ms": unused("count"),
    "supports_websockets": unused("boolean", False),
    "requires_openai_auth": "boolean",
    "capabilities": unused("table", {}),
}

PRICES: Final[Table] = alike("price", "input cached_input output") | {"same_as": "string"}

ROLLOUT_BUDGET: Final[Table] = {
    "enabled": "boolean",
    "limit_tokens": "limit",
    "reminder_at_remaining_tokens": ["limit"],
    **alike("price", "prefill_token_weight sampling_token_weight"),
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
    "bearer_token_env_var": "variable",
    "http_headers": {"*": "secret"},
    "http_headers_helper": unused("string"),
    "env_http_headers": {"*": "variable"},
    "oauth": {"client_id": "string", "*": "any"},
    "oauth_resource": "string",
    "auth": unused(("oauth", "chatgpt", "ema_auth"), "oauth"),
    "scopes": ["string"],
    **alike("boolean", "enabled required supports_parallel_tool_calls"),
    **alike("positive", "startup_timeout_sec tool_timeout_sec"),
    "startup_timeout_ms": "limit",
    **alike(["string"], "enabled_tools disabled_tools"),
    "default_tools_approval_mode": _APPROVAL_MODE,
    "tools": {"*": {"approval_mode": _APPROVAL_MODE, "output_token_limit": unused("count")}},
    "startup_readiness": unused(("connection", "catalog"), "catalog"),
    "tool_input_schema_max_bytes": unused("count"),
    "omit_tools_from": unused("array", []),
}

NETWORK: Final[Table] = {
    "enabled": "boolean",
    "mode": ("full", "limited"),
    "allow_local_binding": "boolean",
    "domains": {"*": ("allow", "deny")},
    "*": unused("any"),
}
_FILE_ACCESS: Final[Kind] = ("read", "write", "deny", "none")
PERMISSION_PROFILE: Final[Table] = {
    "description": "string",
    "extends": "string",
    "workspace_roots": {"*": "boolean"},
    "filesystem": {
        "glob_scan_max_depth": "limit",
        "*": AnyOf((_FILE_ACCESS, {"*": _FILE_ACCESS})),
    },
    "network": NETWORK,
    "*": "any",
}

_EXPORTER: Final[Kind] = AnyOf(
    (
        ("none", "statsig"),
        {
            "otlp-http": {
                "endpoint": "string",
                "protocol": ("binary", "json"),
                "headers": {"*": "secret"},
                "tls": alike("path", "ca-certificate client-certificate client-private-key"),
            },
            "*": "any",
        },
    )
)
OTEL: Final[Table] = {
    "environment": "string",
    **alike("boolean", "log_user_prompt log_tool_output"),
    **alike(_EXPORTER, "exporter trace_exporter metrics_exporter"),
    "*": unused("any"),
}

HOOKS: Final[Kind] = [
    {
        "matcher": "string",
        "hooks": [
            {
                **alike("string", "type command statusMessage server tool"),
                **alike("count", "timeout additionalContextLimit"),
                "async": "boolean",
                "input": "table",
                "*": "any",
            }
        ],
        "*": "any",
    }
]
"""The hooks of one event."""
HOOK_EVENTS: Final = (
    *("PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact", "PostCompact"),
    *("SessionStart", "SessionEnd", "UserPromptSubmit", "SubagentStart", "SubagentStop"),
    *("Stop", "Interrupt"),
)
"""In the order in which Codex counts the hooks of a file."""

MEMORIES: Final[Table] = {
    **alike("string", "consolidation_model extract_model"),
    **alike("boolean", "dedicated_tools disable_on_external_context generate_memories"),
    **alike("boolean", "no_memories_if_mcp_or_web_search use_memories"),
    **alike("count", "max_raw_memories_for_consolidation max_rollouts_per_startup"),
    **alike("integer", "max_rollout_age_days max_unused_days"),
    **alike("integer", "min_rate_limit_remaining_percent min_rollout_idle_hours"),
}


def _actions(context: str) -> Table:
    return {"*": Setting(AnyOf(("key", ["key"])), names=partial(action_names, context))}


TUI: Final[Table] = {
    "notifications": AnyOf(("boolean", ["string"])),
    "notification_method": ("auto", "osc9", "osc777", "bel"),
    "notification_condition": ("unfocused", "always"),
    **alike(["string"], "status_line terminal_title"),
    "theme": "string",
    "model_availability_nux": "table",
    **alike("boolean", "vim_mode_default screen_reader_detection_done"),
    **alike(
        unused("boolean", False),
        """animations auto_recap collapse_turn_details fullscreen_transcript raw_output_mode
        show_server_version_notice show_tooltips""",
    ),
    **alike(
        unused("boolean"),
        """copy_on_select_clear_selection disable_paste_burst question_esc_back
        status_line_use_colors""",
    ),
    **alike(
        unused(("auto", "always", "never"), "never", "auto"), "alternate_screen copy_on_select"
    ),
    "right_click_paste": unused(("auto", "on", "off"), "off", "auto"),
    "pet": unused("string"),
    "pet_anchor": unused(("composer", "screen-bottom")),
    "session_picker_view": unused(("comfortable", "dense")),
    "agents_overview_grouping": unused(("project", "status", "model")),
    "resume_cwd": unused(("current", "session"), "current"),
    **alike(
        unused("count"), "mouse_scroll_speed sidebar_width_percent terminal_resize_reflow_max_rows"
    ),
    "keymap": {
        **{each: _actions(each) for each in CONTEXTS},
        "global": {"leader": "key", **_actions("global")},
    },
    **alike(unused("table"), "effects rendering"),
    **alike(unused({"*": "table"}), "default_hosts presets"),
}


@cache
def feature_names() -> frozenset[str]:
    """The names that `[features]` of Codex 0.171 knows, old spellings included."""
    return frozenset(line.split()[0] for line in feature_lines())


def feature_lines() -> list[str]:
    """The rows that `codex features list` of Codex 0.171 prints: name, stage and default, at least two blanks apart.

    An old spelling is a line without more. `undo`, which Codex has removed, is as it is here.
    """
    listed = Path(__file__).with_name("codex_features.txt")
    return listed.read_text(encoding="utf-8").splitlines()


FEATURES_WITH_SETTINGS: Final = frozenset(
    """
    apps_mcp_path_override async_compaction code_mode code_mode_host context_management
    current_time_reminder guardianv2 guardianv3 multi_agent_v2 network_proxy
    non_prefixed_mcp_tool_names rollout_budget runtime_agent_instances sleep_tool token_budget
    """.split()  # noqa: SIM905 -- as a list, a line for each name
)
"""These may be tables as well; all others are true or false."""
