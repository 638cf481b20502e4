"""Declares the keys about hooks, features, and the limits of a run. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from codex_py.config.declared.kinds import (
    Count,
    Limit,
    Positive,
    Price,
)
from codex_py.config.declared.names import feature_names, hook_events
from codex_py.config.declared.section import Section, key, no_effect, rest, table


class Hook(Section):
    """`[hooks.EVENT.hooks]`"""

    type: str | None = key()
    command: str | None = key()
    status_message: str | None = key(name="statusMessage")
    server: str | None = key()
    tool: str | None = key()
    timeout: Count | None = key()
    additional_context_limit: Count | None = key(name="additionalContextLimit")
    async_: bool | None = key(name="async")
    input: Mapping[str, Any] = table()
    others: Mapping[str, Any] = rest()


class HookGroup(Section):
    """`[hooks.EVENT]`"""

    matcher: str | None = key()
    hooks: tuple[Hook, ...] | None = key()
    others: Mapping[str, Any] = rest()


class HookState(Section):
    """`[hooks.state.*]`"""

    trusted_hash: str | None = key("The hash of the hook that you trusted.")
    enabled: bool | None = key("Run the hook.")
    others: Mapping[str, Any] = rest("Other keys of Codex.")


class Hooks(Section):
    """`[hooks]`"""

    events: Mapping[str, tuple[HookGroup, ...]] = rest(
        "Hooks at an event, in the form of `hooks.json`.", names=hook_events
    )
    state: Mapping[str, HookState] = table()
    # Ours, not those of Codex, are `claude` and `stop_rounds`.
    claude: bool | None = key("Run the hooks of Claude Code's `settings.json` too.")
    stop_rounds: Count | None = key(
        "The number of times that `Stop` hooks may continue a turn (20)."
    )
    others: Mapping[str, Any] = rest("Other events, which are not known here.")


class NetworkProxy(Section):
    """`[features.network_proxy]`"""

    enabled: bool | None = key("Enforce the list.")
    mode: Literal["full", "limited"] | None = key("As `permissions.*.network.mode`.")
    allow_local_binding: bool | None = key(
        "As `permissions.*.network.allow_local_binding`."
    )
    domains: Mapping[str, Literal["allow", "deny"]] = table(
        "As `permissions.*.network.domains.*`, whose patterns it adds to."
    )
    others: Mapping[str, Any] = rest(harmless=())


class RolloutBudget(Section):
    """`[features.rollout_budget]`"""

    enabled: bool | None = key("Enforce the limit.")
    limit_tokens: Limit | None = key("The limit, in tokens.")
    reminder_at_remaining_tokens: tuple[Limit, ...] | None = key(
        "The numbers of remaining tokens at which the model is told of the limit."
    )
    prefill_token_weight: Price | None = key("The weight of a token of input.")
    sampling_token_weight: Price | None = key("The weight of a token of output.")


class Features(Section):
    """`[features]`"""

    others: Mapping[str, bool] = rest(names=feature_names, harmless=(False,))
    apps_mcp_path_override: bool | Mapping[str, Any] | None = no_effect(False)
    async_compaction: bool | Mapping[str, Any] | None = no_effect(False)
    code_mode: bool | Mapping[str, Any] | None = no_effect(False)
    code_mode_host: bool | Mapping[str, Any] | None = no_effect(False)
    context_management: bool | Mapping[str, Any] | None = no_effect(False)
    current_time_reminder: bool | Mapping[str, Any] | None = no_effect(False)
    guardianv2: bool | Mapping[str, Any] | None = no_effect(False)
    guardianv3: bool | Mapping[str, Any] | None = no_effect(False)
    multi_agent_v2: bool | Mapping[str, Any] | None = no_effect(False)
    network_proxy: bool | NetworkProxy | None = key(
        "A list of domains: true, or the keys of `permissions.*.network`, for every "
        "profile and for `sandbox_workspace_write`."
    )
    non_prefixed_mcp_tool_names: bool | Mapping[str, Any] | None = no_effect(False)
    rollout_budget: bool | RolloutBudget | None = key(
        "The limit of Codex on the tokens of a session; a table, or false."
    )
    runtime_agent_instances: bool | Mapping[str, Any] | None = no_effect(False)
    sleep_tool: bool | Mapping[str, Any] | None = no_effect(False)
    token_budget: bool | Mapping[str, Any] | None = no_effect(False)
    shell_tool: bool | None = key("Offer a shell.")
    view_image: bool | None = key("Offer `view_image`.")
    goals: bool | None = key("Offer the tools of goals, and `/goal`.")
    plugins: bool | None = key("Use the plugins that were added.")
    unified_exec: bool | None = key("Offer `exec_command` and `write_stdin`.")
    unified_exec_tty: bool | None = key("Allow commands to have a terminal.")
    steer: bool | None = key("Allow prompts to be added to a running turn.")
    fast_mode: bool | None = key("Allow the choice of the fast tier.")
    multi_agent: bool | None = key("Allow the model to start subagents.")
    undo: bool | None = key("Keep the files that commands change, for `codex-py undo`.")
    default_mode_request_user_input: bool | None = key(
        "Offer `request_user_input` outside of Plan mode."
    )
    # Settings that protect the user.
    hooks: bool | None = key("Run hooks.")
    codex_hooks: bool | None = key("The old name of `features.hooks`.")
    credential_masking: bool | None = key("Codex's masking of keys; see compatibility.")


class Budget(Section):
    """`[budget]`"""

    # Ours, not Codex's.
    max_turns: Limit | None = key("The most responses of a run.")
    max_tokens: Limit | str | None = key('The most tokens of a run, such as `"200k"`.')
    max_cost: Positive | None = key("The most dollars that a run may cost.")
    max_time: Positive | str | None = key(
        'The time limit of a run: seconds, or such as `"30m"`.'
    )
    loop_guard: bool = key(
        "End a turn when the model makes the same call ten times in a row.",
        default=True,
    )
