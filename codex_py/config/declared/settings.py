"""Declares every key of `config.toml`. LIGHT.

The keys are those that Codex 0.171 accepts with `--strict-config`, and our own. Keys of Codex that
have no effect in this program are declared too, so that a file written for Codex is accepted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from codex_py.config.declared.claimed import ClaimedTable, claimed_key, own_tables
from codex_py.config.declared.features import Budget, Features, Hooks
from codex_py.config.declared.kinds import (
    Count,
    Limit,
)
from codex_py.config.declared.model import ModelFallback, ModelPrice, ModelProvider
from codex_py.config.declared.permissions import (
    GranularApproval,
    Permissions,
    Project,
    Protection,
    SandboxLimits,
    SandboxWorkspaceWrite,
)
from codex_py.config.declared.section import (
    Key,
    Section,
    key,
    key_of,
    names_of,
    no_effect,
    raw,
    rest,
    table,
)
from codex_py.config.declared.tools import (
    Agents,
    McpServer,
    ShellEnvironmentPolicy,
    Skills,
    Tools,
)
from codex_py.config.declared.tui import Tui


class Patch(Section):
    """`[patch]`"""

    ambiguous: Literal["first", "refuse"] = key(
        "Use the first place, or refuse the patch, if its old lines match several places.",
        default="first",
    )


class History(Section):
    """`[history]`"""

    persistence: Literal["save-all", "none"] = key(
        "Keep all prompts for the terminal, or none.", default="save-all"
    )
    max_bytes: Count | None = key(
        "The size limit of the file with the prompts, in bytes."
    )
    redact: bool = key(
        "Mask keys of a known form in session files; a resumed session sends them masked.",
        default=False,
    )


class Acp(Section):
    """`[acp]`"""

    client_terminal: Literal["never", "unsandboxed", "always"] = key(
        "The commands that run in the editor's terminal, without a sandbox: none, those that run "
        "without a sandbox anyway, or also those that you allow to leave it. "
        "Not in a project.",
        default="never",
    )


class Analytics(Section):
    """`[analytics]`"""

    enabled: bool | None = key("No effect: there is no telemetry.")


class Feedback(Section):
    """`[feedback]`"""

    enabled: bool | None = key("No effect: there is no telemetry.")


class App(Section):
    """`[apps.*]`"""

    enabled: bool | None = key()
    others: Mapping[str, Any] = rest()


class AddedPlugin(Section):
    """`[plugins.*]`"""

    enabled: bool | None = key()
    others: Mapping[str, Any] = rest()


class Memories(Section):
    """`[memories]`"""

    consolidation_model: str | None = key()
    extract_model: str | None = key()
    dedicated_tools: bool | None = key()
    disable_on_external_context: bool | None = key()
    generate_memories: bool | None = key()
    no_memories_if_mcp_or_web_search: bool | None = key()
    use_memories: bool | None = key()
    max_raw_memories_for_consolidation: Count | None = key()
    max_rollouts_per_startup: Count | None = key()
    max_rollout_age_days: int | None = key()
    max_unused_days: int | None = key()
    min_rate_limit_remaining_percent: int | None = key()
    min_rollout_idle_hours: int | None = key()


class Settings(Section):
    """All keys of the configuration. Extensions add tables to them; see `declared.claimed`."""

    @classmethod
    def further_key(cls, name: str) -> Key | None:
        return claimed_key(name)

    @classmethod
    def __known_names__(cls) -> Collection[str]:
        return [*super().__known_names__(), *own_tables()]

    @property
    def claimed(self) -> Mapping[str, ClaimedTable]:
        """The tables that extensions have declared, by name."""
        declared = names_of(Settings)
        others = [name for name in raw(self) if name not in declared]
        found = {name: key_of(Settings, name) for name in others}
        return {
            name: key.kind(raw(self)[name])
            for name, key in found.items()
            if key is not None
        }

    # The model.
    model: str = key(
        "The model, such as `gpt-5.5`, or `PROVIDER/MODEL`.", default="gpt-6.1-sol"
    )
    model_provider: str = key(
        "The provider: a name in `model_providers`, or a built-in one.",
        default="openai",
        in_project=False,
    )
    model_providers: Mapping[str, ModelProvider] = table(in_project=False)
    oss_provider: str | None = key(
        "The local server for `--oss`: `ollama`, `lmstudio`, `llamacpp` or `vllm`."
    )
    openai_base_url: str | None = key("The address of OpenAI's API.", in_project=False)
    chatgpt_base_url: str | None = key(
        "The address of ChatGPT, for requests with a plan.", in_project=False
    )
    model_context_window: Count | None = key(
        "The size of the model's context window in tokens, if it is not known."
    )
    model_max_output_tokens: Limit | None = key(
        "The longest output to ask for, in tokens."
    )
    model_auto_compact_token_limit: int | None = key(
        "The number of tokens at which the history is summarized."
    )
    model_auto_compact_token_limit_scope: (
        Literal["total", "body_after_prefix"] | None
    ) = no_effect("total")
    model_post_turn_compact_threshold_percent: Count | None = no_effect()
    model_catalog_json: Path | None = key(
        "A file in the form of Codex that replaces the catalog of OpenAI's models."
    )
    model_fallbacks: tuple[str | ModelFallback, ...] = key(
        "Models that take over if the provider fails, such as "
        '`["deepseek/deepseek-chat"]`.',
        default=(),
        in_project=False,
    )
    model_prices: Mapping[str, ModelPrice] = table(in_project=False)
    model_reasoning_effort: str | None = key(
        "The reasoning effort; each model has its own values, such as `low`, "
        "`medium` and `high`."
    )
    plan_mode_reasoning_effort: str | None = key("The reasoning effort in Plan mode.")
    model_reasoning_summary: Literal["auto", "concise", "detailed", "none"] | None = (
        key("The summary of the model's reasoning.")
    )
    model_verbosity: Literal["low", "medium", "high"] | None = key(
        "The length of answers."
    )
    service_tier: str | None = key("The tier of the provider that requests ask for.")
    review_model: str | None = key(
        "The model of reviews, and of the reviewer of approvals."
    )
    personality: Literal["none", "friendly", "pragmatic"] | None = no_effect("none")
    # What it is told.
    instructions: str | None = key(
        "Instructions for the model, in addition to its own."
    )
    developer_instructions: str | None = key(
        "Instructions for the model, in a separate message."
    )
    compact_prompt: str | None = key("The prompt for summarizing a long conversation.")
    model_instructions_file: Path | None = key(
        "A file that takes the place of the agent's own instructions."
    )
    experimental_compact_prompt_file: Path | None = key("A file with `compact_prompt`.")
    include_permissions_instructions: bool = key(
        "Tell the model what it may do.", default=True
    )
    include_environment_context: bool = key(
        "Tell the model its folder, its shell and the date.", default=True
    )
    include_collaboration_mode_instructions: bool = key(
        "Tell the model of Plan mode.", default=True
    )
    project_doc_max_bytes: Count = key(
        "The size limit of the `AGENTS.md` files for the model, in bytes.",
        default=32768,
    )
    project_doc_fallback_filenames: tuple[str, ...] = key(
        "Files that are read where there is no `AGENTS.md`.", default=()
    )
    project_root_markers: tuple[str, ...] = key(
        "Names of files and folders that mark the root of a project.", default=(".git",)
    )
    # What it may do.
    approval_policy: (
        Literal["untrusted", "on-failure", "on-request", "never"]
        | GranularApproval
        | None
    ) = key(
        "The policy for asking you: `untrusted`, `on-failure`, `on-request`, `never`, or a "
        "table `granular`."
    )
    # A project does not say who approves its calls.
    approvals_reviewer: str | None = key(
        "The reviewer of calls that the policy asks about: `user`, a model (`auto_review`, or "
        "`guardian_subagent`, which is the same), or one of an installed package.",
        in_project=False,
    )
    sandbox_mode: (
        Literal["read-only", "workspace-write", "danger-full-access"] | None
    ) = key("The files that commands and patches may change.")
    sandbox_workspace_write: SandboxWorkspaceWrite = table()
    sandbox_limits: SandboxLimits = table()
    default_permissions: str | None = key(
        "The permission profile: a name in `permissions`, or a built-in one."
    )
    permissions: Mapping[str, Permissions] = table()
    # Ours, not Codex's.
    protection: Protection = table(in_project=False)
    projects: Mapping[str, Project] = table(in_project=False)
    # Its tools.
    allow_login_shell: bool = key(
        "Allow commands to run in a login shell.", default=True
    )
    shell_environment_policy: ShellEnvironmentPolicy = table()
    background_terminal_max_timeout: Count = key(
        "The longest wait of a call for a background command, in milliseconds.",
        default=300000,
    )
    experimental_use_unified_exec_tool: bool | None = key(
        "Offer `exec_command` and `write_stdin`."
    )
    tool_output_token_limit: Count | None = key(
        "The size limit of an output for the model, in tokens."
    )
    tools: Tools = table()
    tool_choice: str = key(
        "The tool that the first response of a turn calls: `auto`, `none`, `required`, "
        "or the name of one.",
        default="auto",
    )
    parallel_tool_calls: bool | None = key(
        "Allow the model to call several tools in one response."
    )
    web_search: Literal["disabled", "cached", "indexed", "live"] = key(
        "The kind of web search.", default="cached"
    )
    mcp_servers: Mapping[str, McpServer] = table()
    mcp_oauth_credentials_store: Literal["auto", "file", "keyring"] = key(
        "The store of logins to MCP servers.", default="auto"
    )
    mcp_oauth_callback_port: Count | None = key(
        "The local port for the redirect of a login."
    )
    mcp_oauth_callback_url: str | None = key("The redirect address of a login.")
    skills: Skills = table()
    agents: Agents = table()
    # What happens around it.
    notify: tuple[str, ...] | None = key(
        "A program, with its arguments, that runs when a turn ends.",
        in_project=False,
    )
    hooks: Hooks = table()
    log_file: Path | None = key(
        "The file for the log of each session, as with `--log`.",
        in_project=False,
    )
    extensions: Mapping[str, Mapping[str, Any]] = table(
        "Turns on the extension of an installed package, which gets the table.",
        in_project=False,
    )
    acp: Acp = table(in_project=False)
    patch: Patch = table()
    history: History = table()
    hide_agent_reasoning: bool = key("Hide the reasoning of the model.", default=False)
    show_raw_agent_reasoning: bool = no_effect(False, default=False)
    file_opener: (
        Literal["vscode", "vscode-insiders", "windsurf", "cursor", "none"] | None
    ) = no_effect("none")
    check_for_update_on_startup: bool | None = key(
        "No effect: this program never looks."
    )
    disable_paste_burst: bool | None = key(
        "Treat very fast input as typed text, not as a paste."
    )
    suppress_unstable_features_warning: bool | None = key(
        "No effect: there is no such warning."
    )
    features: Features = table()
    tui: Tui = table()
    allow_unenforced: tuple[str, ...] | None = key(
        "Protective settings that are not enforced here; a session starts in spite of "
        "them.",
        in_project=False,
    )
    budget: Budget = table()
    # Accepted, and mostly of no effect here.
    allow_symlinked_codex_home: bool | None = no_effect(False)
    include_apps_instructions: bool | None = no_effect(False)
    experimental_realtime_start_instructions: str | None = no_effect()
    experimental_realtime_webrtc_call_base_url: str | None = no_effect()
    experimental_realtime_ws_backend_prompt: str | None = no_effect()
    experimental_realtime_ws_model: str | None = no_effect()
    experimental_realtime_ws_startup_context: str | None = no_effect()
    experimental_thread_store_endpoint: str | None = no_effect()
    apps_mcp_product_sku: str | None = no_effect(in_project=False)
    experimental_realtime_ws_base_url: str | None = no_effect(in_project=False)
    mcp_optional_startup_grace_ms: Count | None = no_effect()
    thread_unload_delay_secs: Count | None = no_effect()
    js_repl_node_path: Path | None = no_effect()
    log_dir: Path | None = no_effect()
    sqlite_home: Path | None = no_effect()
    js_repl_node_module_dirs: tuple[Path, ...] | None = no_effect()
    audio: Mapping[str, Any] | None = no_effect()
    browser_use: Mapping[str, Any] | None = no_effect()
    cloud: Mapping[str, Any] | None = no_effect()
    computer_use: Mapping[str, Any] | None = no_effect()
    experimental_thread_store: Mapping[str, Any] | None = no_effect()
    ghost_snapshot: Mapping[str, Any] | None = no_effect()
    goals: Mapping[str, Any] | None = no_effect()
    marketplaces: Mapping[str, Any] | None = no_effect()
    mcp_enterprise_managed_auth: Mapping[str, Any] | None = no_effect()
    orchestrator: Mapping[str, Any] | None = no_effect()
    realtime: Mapping[str, Any] | None = no_effect()
    tool_suggest: Mapping[str, Any] | None = no_effect()
    desktop: Mapping[str, Any] = table("For Codex's app.")
    notice: Mapping[str, Any] = table("Notices that Codex has shown you.")
    windows: Mapping[str, Any] = table("For Codex on Windows.")
    analytics: Analytics = table()
    feedback: Feedback = table()
    apps: Mapping[str, App] | None = no_effect()
    plugins: Mapping[str, AddedPlugin] | None = no_effect()
    responses_api_metadata: Mapping[str, str] | None = no_effect({})
    # Only `login` and `logout` look at it; keys of sessions come from variables and `auth.json`.
    cli_auth_credentials_store: (
        Literal["file", "keyring", "auto", "ephemeral"] | None
    ) = no_effect("file")
    forced_login_method: Literal["chatgpt", "api"] | None = key(
        "The only kind of login that is allowed.", in_project=False
    )
    forced_chatgpt_workspace_id: str | tuple[str, ...] | None = key(
        "The only ChatGPT workspaces that a login may belong to, by their ids.",
        in_project=False,
    )
    memories: Memories | None = no_effect()
    profile: str | None = key(
        "A name in `profiles`, in the old form of Codex.", in_project=False
    )
    profiles: Mapping[str, Any] = table(
        "Profiles in the old form of Codex, which are not read.", in_project=False
    )
