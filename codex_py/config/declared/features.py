"""Declares the keys about hooks, features, the limits of a run, and what is exported. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from codex_py.config.declared.kinds import (
    Count,
    Limit,
    Positive,
    Price,
    Secret,
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

    trusted_hash: str | None = key("The hook, as you trusted it.")
    enabled: bool | None = key("The hook is used.")
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
        "How often `Stop` hooks may keep the agent going in a turn (20)."
    )
    others: Mapping[str, Any] = rest("Other events, which are not known here.")


class NetworkProxy(Section):
    """`[features.network_proxy]`"""

    enabled: bool | None = key("The list holds.")
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

    enabled: bool | None = key("The limit holds.")
    limit_tokens: Limit | None = key("The tokens that a session may use.")
    reminder_at_remaining_tokens: tuple[Limit, ...] | None = key(
        "The model is told when so many are left."
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
    unified_exec_tty: bool | None = key("Commands may have a terminal.")
    steer: bool | None = key("Prompts may be added to a running turn.")
    fast_mode: bool | None = key("The fast tier may be chosen.")
    multi_agent: bool | None = key("The model may start subagents.")
    undo: bool | None = key("Keep what commands change, for `codex-py undo`.")
    default_mode_request_user_input: bool | None = key(
        "Offer `request_user_input` outside of Plan mode."
    )
    # These protect.
    hooks: bool | None = key("Run hooks.")
    codex_hooks: bool | None = key("The old name of `features.hooks`.")
    credential_masking: bool | None = key("Codex's masking of keys; see compatibility.")


class Budget(Section):
    """`[budget]`"""

    # Ours, not Codex's: `budget` and `gates`.
    max_turns: Limit | None = key("The responses of a run.")
    max_tokens: Limit | str | None = key('Its tokens, such as `"200k"`.')
    max_cost: Positive | None = key("Its dollars.")
    max_time: Positive | str | None = key('Its time, in seconds, or such as `"30m"`.')
    loop_guard: bool = key(
        "A turn ends when the model makes the same call ten times in a row.",
        default=True,
    )


class Gates(Section):
    """`[gates]`"""

    verify: tuple[str, ...] | None = key(
        "Commands that must succeed before a turn ends."
    )
    forbid_path: tuple[str, ...] | None = key("Patterns of paths that must not change.")
    require_evidence: tuple[str, ...] | None = key(
        "Patterns of commands that must have succeeded after the last change."
    )
    verify_tries: Count | None = key("How often a failure goes back to the model (2).")
    verify_timeout: Positive | str | None = key(
        'How long each command may take, in seconds, or such as `"10m"`.'
    )
    require_change: bool | None = key("Something must change.")
    max_diff_lines: Count | None = key("How many lines may change.")
    fail_on: tuple[Literal["denied", "tool", "sandbox"], ...] | None = key(
        "Events that make a run fail."
    )


class Tls(Section):
    """`[otel.exporter.otlp-http.tls]`"""

    ca_certificate: Path | None = key(
        "Who may have signed the certificate of the collector.", name="ca-certificate"
    )
    client_certificate: Path | None = key(
        "The certificate that is shown to it.", name="client-certificate"
    )
    client_private_key: Path | None = key(
        "The key of that certificate.", name="client-private-key"
    )


class EventOtlp(Section):
    """`[otel.exporter.otlp-http]`"""

    endpoint: str | None = key("The address for events, used as it stands.")
    protocol: Literal["binary", "json"] | None = key("How events are encoded.")
    headers: Mapping[str, Secret] = table("Headers of the requests.")
    tls: Tls = table()


class EventExporter(Section):
    """`[otel.exporter]`"""

    otlp_http: EventOtlp = table(name="otlp-http")
    others: Mapping[str, Any] = rest("Other exporters, which are refused.")


class SpanOtlp(Section):
    """`[otel.trace_exporter.otlp-http]`"""

    endpoint: str | None = key("The address for spans, used as it stands.")
    protocol: Literal["binary", "json"] | None = key("How spans are encoded.")
    headers: Mapping[str, Secret] = table("Headers of the requests.")
    tls: Tls = table()


class SpanExporter(Section):
    """`[otel.trace_exporter]`"""

    otlp_http: SpanOtlp = table(name="otlp-http")
    others: Mapping[str, Any] = rest("Other exporters, which are refused.")


class MetricOtlp(Section):
    """`[otel.metrics_exporter.otlp-http]`"""

    endpoint: str | None = key("The address for metrics, used as it stands.")
    protocol: Literal["binary", "json"] | None = key("How metrics are encoded.")
    headers: Mapping[str, Secret] = table("Headers of the requests.")
    tls: Tls = table()


class MetricExporter(Section):
    """`[otel.metrics_exporter]`"""

    otlp_http: MetricOtlp = table(name="otlp-http")
    others: Mapping[str, Any] = rest("Other exporters, which are refused.")


class Otel(Section):
    """`[otel]`"""

    environment: str | None = key(
        "The attribute `env` of all that is exported (`dev`)."
    )
    log_user_prompt: bool | None = key("Events have the text of prompts.")
    log_tool_output: bool | None = key(
        "Events have the arguments and outputs of calls."
    )
    exporter: Literal["none", "statsig"] | EventExporter | None = key(
        "Where events are exported to."
    )
    trace_exporter: Literal["none", "statsig"] | SpanExporter | None = key(
        "Where spans are exported to."
    )
    metrics_exporter: Literal["none", "statsig"] | MetricExporter | None = key(
        "Where metrics are exported to."
    )
    others: Mapping[str, Any] = rest(harmless=())
