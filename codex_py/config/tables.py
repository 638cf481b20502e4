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
    "price": ("a finite number of 0 or more", (int, float)),
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


def alike(kind: "Kind | Setting", names: str) -> Table:
    """A table of several keys, separated by blanks, that are all of one kind."""
    return dict.fromkeys(names.split(), kind)


_APPROVAL_MODE: Final[Kind] = ("auto", "prompt", "writes", "approve")
REASONING_EFFORT: Final[Kind] = "string"  # each model has its own; Codex passes any through

MODEL_PROVIDER: Final[Table] = {
    **alike("string", "name base_url env_key env_key_instructions"),
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
    "env_http_headers": {"*": "string"},
    **alike("count", "request_max_retries stream_max_retries stream_idle_timeout_ms"),
    "websocket_connect_timeout_ms": unused("count"),
    "supports_websockets": unused("boolean", False),
    "requires_openai_auth": "boolean",
    "capabilities": unused("table", {}),
}

PRICES: Final[Table] = dict.fromkeys(("input", "cached_input", "output"), "price")

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
    **alike("boolean", "enabled required supports_parallel_tool_calls"),
    **alike("duration", "startup_timeout_sec tool_timeout_sec"),
    "startup_timeout_ms": "limit",
    **alike(["string"], "enabled_tools disabled_tools"),
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
    "keymap": unused("table", {}),
    **alike(unused("table"), "effects rendering"),
    **alike(unused({"*": "table"}), "default_hosts presets"),
}

FEATURES: Final = frozenset(
    """
    agent_message_board agent_message_board_mcp analytics_plan_history
    api_key_cyber_access_programs api_key_model_discovery app_server_websocket_compression
    apply_patch_freeform apply_patch_preserve_line_endings apply_patch_streaming_events apps
    apps_early_resource_discovery apps_mcp_path_override artifact async_compaction
    async_compaction_root_only auth_elicitation background_paginated_rollout_migration
    bedrock_setup_wizard browser_annotation_api browser_use browser_use_external
    browser_use_full_cdp_access chronicle cli_daybreak cli_resume_account_check code_mode
    code_mode_buffered_exec code_mode_host code_mode_host_grpc code_mode_host_output_truncation
    code_mode_interrupt code_mode_only code_mode_only_strict_3p_tools code_mode_prewarm
    code_mode_tool_description_first code_mode_tool_search codex_apps_mcp_2026_07_28
    codex_git_commit codex_hooks collab collaboration_modes command_sessions_world_state
    compaction_image_budget computer_use concurrent_reasoning_summaries connectors
    content_item_kinds context_management credential_masking critical_path_timing
    current_time_reminder cwd_relative_turn_diffs daemon_auto_start daybreak_program_propagation
    default_mode_request_user_input defer_mailbox_preemption deferred_executor
    deferred_tool_world_state elevated_windows_sandbox enable_experimental_windows_sandbox
    enable_fanout enable_mcp_apps enable_request_compression exec_permission_approvals
    executed_tool_call_metadata executor_capability_discovery executor_capability_discovery_v2
    experimental_use_unified_exec_tool experimental_windows_sandbox external_agent_memory_import
    external_migration fast_mode gateway_setup_wizard gcp_setup_wizard goals guardian_approval
    guardian_conversation_history_tools guardian_denial_reconsideration
    guardian_enhanced_node_repl_transcripts guardian_ext guardian_include_additional_context
    guardian_native_multi_agent_history guardian_node_repl_transcript_images
    guardian_recorded_items guardian_reuse_parent_compaction guardian_root_handoff_context
    guardian_trust_orchestrator_connectors guardianv2 guardianv2_decisions_comparison guardianv3
    hooks hosted_search_policy image_detail_original image_generation image_generation_animation
    image_resize_notice in_app_browser in_app_chat in_app_dictation in_app_local_automation
    in_app_updates in_app_voice incremental_exec_tools incremental_tools
    incremental_tools_legacy incremental_tools_legacy_gcp instant_interrupt interrupt_on_cancel
    item_ids js_repl js_repl_tools_only local_thread_store_compression
    local_thread_store_shared_compression login_shell_package_path mcp_2026_07_28
    mcp_connection_sharing mcp_lazy_stdio_startup mcp_oauth_refresh_coordination
    mcp_tool_list_changed memories memory_tool mentions_v2 model_catalog_in_context multi_agent
    multi_agent_mode multi_agent_v2 multi_agent_v2_dynamic_tools multi_env_copy_file
    network_proxy non_prefixed_mcp_tool_names nonfatal_clock_read_errors
    omit_app_server_notification_media omit_skill_descriptions output_token_replay personality
    plugin_discovery_prefetch plugin_hooks plugin_sharing plugins powershell_shell_version
    prediction_preserve_parent_tools prefer_mxc prevent_idle_sleep psp realtime_conversation
    reasoning_effort_override recommended_plugins remote_compaction_v2 remote_control
    remote_models remote_plugin request_permissions request_permissions_tool request_rule
    resize_all_images respect_system_proxy responses_websockets responses_websockets_v2
    retain_client_developer_messages retain_client_tool_outputs rollout_budget
    runtime_agent_instances runtime_metrics search_tool secret_auth_storage send_async_message
    send_message_to_user_async shell_snapshot shell_snapshot_v2 shell_tool shell_zsh_fork
    simplified_selection_hints skill_catalog_deltas skill_env_var_dependency_prompt
    skill_mcp_dependency_install skill_search skip_host_skill_discovery sleep_tool sqlite
    stable_environment_tools standalone_web_search steer step_model_switching
    subagent_default_context_limits subagent_thread_environments
    suppress_model_change_announcements system_proxy_fallback telepathy terminal_resize_reflow
    terminal_visualization_instructions token_budget tool_call_mcp_elicitation tool_search
    tool_search_always_defer_mcp_tools tool_suggest transcript_v2 tui_app_server
    tui_extensions_statusline tui_multi_backend tui_workspace ultrafast_mode
    unavailable_dummy_tools unbounded_connection_retries undo unified_exec unified_exec_tty
    unified_exec_zsh_fork unified_image_budget untrusted_as_tool_output use_agent_identity
    use_legacy_landlock use_linux_sandbox_bwrap use_xaa view_image wake_on_agent_messages
    web_search web_search_cached web_search_request windows_sandbox_service
    workspace_dependencies workspace_owner_usage_nudge worktrees write_stdin_approval
    """.split()  # noqa: SIM905 -- as a list, a line for each name
)
"""The names that `[features]` of Codex 0.169 knows, old spellings included: `codex features list` prints most."""
FEATURES_WITH_SETTINGS: Final = frozenset(
    """
    apps_mcp_path_override async_compaction code_mode code_mode_host context_management
    current_time_reminder guardianv2 guardianv3 multi_agent_v2 network_proxy
    non_prefixed_mcp_tool_names rollout_budget runtime_agent_instances sleep_tool token_budget
    """.split()  # noqa: SIM905 -- as a list, a line for each name
)
"""These may be tables as well; all others are true or false."""
