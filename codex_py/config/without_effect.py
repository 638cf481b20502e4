"""Settings that are known and do nothing here. They are told once, in one line, by their names.

Settings that protect are not among them, see `config.unenforced`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from codex_py.config.check import KeyPath, dotted
from codex_py.config.features import FEATURES

_WITHOUT_EFFECT: Final[dict[str, tuple[Any, ...]]] = {
    "agents": (),
    "allow_symlinked_codex_home": (False,),
    "apps": (),
    "apps_mcp_product_sku": (),
    "audio": (),
    "auto_review.circuit_break_action": ("default",),
    "browser_use": (),
    "chatgpt_base_url": (),
    "cli_auth_credentials_store": ("file",),
    "cloud": (),
    "computer_use": (),
    "experimental_realtime_start_instructions": (),
    "experimental_realtime_webrtc_call_base_url": (),
    "experimental_realtime_ws_backend_prompt": (),
    "experimental_realtime_ws_base_url": (),
    "experimental_realtime_ws_model": (),
    "experimental_realtime_ws_startup_context": (),
    "experimental_thread_store": (),
    "experimental_thread_store_endpoint": (),
    "file_opener": ("none",),
    "forced_chatgpt_workspace_id": (),
    "ghost_snapshot": (),
    "goals": (),
    "include_apps_instructions": (False,),
    "include_collaboration_mode_instructions": (False,),
    "js_repl_node_module_dirs": (),
    "js_repl_node_path": (),
    "log_dir": (),
    "marketplaces": (),
    "mcp_enterprise_managed_auth": (),
    "mcp_optional_startup_grace_ms": (),
    "mcp_servers.*.auth": ("oauth",),
    "mcp_servers.*.http_headers_helper": (),
    "mcp_servers.*.omit_tools_from": ([],),
    "mcp_servers.*.startup_readiness": ("catalog",),
    "mcp_servers.*.tool_input_schema_max_bytes": (),
    "mcp_servers.*.tools.*.output_token_limit": (),
    "memories": (),
    "model_auto_compact_token_limit_scope": ("total",),
    "model_post_turn_compact_threshold_percent": (),
    "model_providers.*.auth.refresh_interval_ms": (),
    "model_providers.*.aws": (),
    "model_providers.*.capabilities": ({},),
    "model_providers.*.supports_websockets": (False,),
    "model_providers.*.websocket_connect_timeout_ms": (),
    "orchestrator": (),
    "otel": (),
    "personality": ("none",),
    "plan_mode_reasoning_effort": (),
    "plugins": (),
    "realtime": (),
    "responses_api_metadata": ({},),
    "review_model": (),
    "show_raw_agent_reasoning": (False,),
    "skills.bundled.enabled": (False,),
    "skills.include_instructions": (False,),
    "skills.max_context_tokens": (),
    "sqlite_home": (),
    "thread_unload_delay_secs": (),
    "tool_suggest": (),
    "tools.client_search_provider": (),
    "tools.experimental_request_user_input.enabled": (False,),
    "tui.agents_overview_grouping": (),
    "tui.alternate_screen": ("never", "auto"),
    "tui.animations": (False,),
    "tui.auto_recap": (False,),
    "tui.collapse_turn_details": (False,),
    "tui.copy_on_select": ("never", "auto"),
    "tui.copy_on_select_clear_selection": (),
    "tui.default_hosts": (),
    "tui.disable_paste_burst": (),
    "tui.effects": (),
    "tui.fullscreen_transcript": (False,),
    "tui.keymap": ({},),
    "tui.mouse_scroll_speed": (),
    "tui.pet": (),
    "tui.pet_anchor": (),
    "tui.presets": (),
    "tui.question_esc_back": (),
    "tui.raw_output_mode": (False,),
    "tui.rendering": (),
    "tui.resume_cwd": ("current",),
    "tui.right_click_paste": ("off", "auto"),
    "tui.session_picker_view": (),
    "tui.show_server_version_notice": (False,),
    "tui.show_tooltips": (False,),
    "tui.sidebar_width_percent": (),
    "tui.status_line_use_colors": (),
    "tui.terminal_resize_reflow_max_rows": (),
}
"""By dotted key, where `*` is any name: the values that ask for nothing more than what happens anyway."""

_FEATURES_WITH_EFFECT: Final = {
    *("shell_tool", "view_image", "unified_exec", "unified_exec_tty", "steer", "fast_mode"),
    # These protect.
    *("hooks", "codex_hooks", "network_proxy", "credential_masking", "rollout_budget"),
}


def without_effect(values: Mapping[str, Any]) -> tuple[str, ...]:
    """One sentence about all of these settings that are set; nothing where none is."""
    names = [
        dotted(key)
        for pattern, neutral in _WITHOUT_EFFECT.items()
        for key, value in _matches(values, pattern.split("."))
        if value not in neutral
    ]
    names += [
        f"features.{name}"
        for name, value in values.get("features", {}).items()
        if value is not False and name in FEATURES - _FEATURES_WITH_EFFECT
    ]
    if not names:
        return ()
    these = "This setting has" if len(names) == 1 else "These settings have"
    return (f"{these} no effect in this version: {', '.join(sorted(names))}.",)


def _matches(value: Any, pattern: list[str], key: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    if not pattern:
        yield key, value
    elif isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        first, *rest = pattern
        for name in table if first == "*" else table.keys() & {first}:
            yield from _matches(table[name], rest, (*key, name))
