"""Declares the keys about commands, tools, MCP servers, skills and subagents. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from codex_py.config.declared.kinds import (
    Count,
    Limit,
    Positive,
    Secret,
    Variable,
)
from codex_py.config.declared.section import Section, key, no_effect, rest, table


class ShellEnvironmentPolicy(Section):
    """`[shell_environment_policy]`"""

    inherit: Literal["all", "core", "none"] = key(
        "The variables that commands inherit.", default="all"
    )
    ignore_default_excludes: bool = key(
        "False hides variables with KEY, SECRET or TOKEN in their names.", default=True
    )
    exclude: tuple[str, ...] = key(
        "Patterns of names that commands do not get.", default=()
    )
    set: Mapping[str, Secret] = table("A variable that commands get.", default={})
    include_only: tuple[str, ...] = key(
        "Patterns of names; commands get no others.", default=()
    )
    experimental_use_profile: bool = key("Run the profile of the shell.", default=False)


class Location(Section):
    """`[tools.web_search.location]`"""

    country: str | None = key("The user's country, for searches.")
    region: str | None = key("The user's region.")
    city: str | None = key("The user's city.")
    timezone: str | None = key("The user's time zone.")


class WebSearch(Section):
    """`[tools.web_search]`"""

    context_size: Literal["low", "medium", "high"] | None = key(
        "The amount of text that a search returns."
    )
    allowed_domains: tuple[str, ...] | None = key("The only domains that are searched.")
    location: Location = table()


class UpdatePlan(Section):
    """`[tools.update_plan]`"""

    enabled: bool | None = key("Offer `update_plan`.")


class RequestUserInput(Section):
    """`[tools.experimental_request_user_input]`"""

    enabled: bool | None = key("Offer `request_user_input`.")


class Tools(Section):
    """`[tools]`"""

    web_search: bool | WebSearch | None = key("Offer the search of the web.")
    update_plan: UpdatePlan = table()
    experimental_request_user_input: RequestUserInput = table()
    client_search_provider: Literal["standalone", "search_mcp"] | None = no_effect()


class InheritedVariable(Section):
    """`[mcp_servers.*.env_vars]`"""

    name: str | None = key()
    source: str | None = key()


class McpOAuth(Section):
    """`[mcp_servers.*.oauth]`"""

    client_id: str | None = key("The client id of this program.")
    others: Mapping[str, Any] = rest("Other keys of Codex for the login.")


class McpTool(Section):
    """`[mcp_servers.*.tools.*]`"""

    approval_mode: Literal["auto", "prompt", "writes", "approve"] | None = key(
        "The policy for asking you about calls of one tool."
    )
    output_token_limit: Count | None = no_effect()


class McpServer(Section):
    """`[mcp_servers.*]`"""

    name: str | None = key("The name of the server.")
    command: str | None = key("The program of a server on this machine.")
    args: tuple[str, ...] | None = key("The arguments of the program.")
    env: Mapping[str, Secret] = table("A variable for the program.")
    env_vars: tuple[str | InheritedVariable, ...] | None = key(
        "The NAMES of variables that the program inherits."
    )
    cwd: str | None = key("The working directory of the program.")
    environment_id: str | None = key(
        "The machine of the server. Only servers on this machine (`local`) are started."
    )
    url: str | None = key("The URL of a server that is reached over HTTP.")
    bearer_token_env_var: Variable | None = key(
        "The NAME of the variable with its token."
    )
    http_headers: Mapping[str, Secret] = table("A header of every request to it.")
    http_headers_helper: str | None = no_effect()
    env_http_headers: Mapping[str, Variable] = table(
        "A header of every request to it: the NAME of the variable with its value."
    )
    oauth: McpOAuth = table()
    oauth_resource: str | None = key("The resource that a login is for.")
    auth: Literal["oauth", "chatgpt", "ema_auth"] | None = no_effect("oauth")
    scopes: tuple[str, ...] | None = key("The scopes that a login asks for.")
    enabled: bool | None = key("Use the server.")
    required: bool | None = key("Refuse to start a session without the server.")
    supports_parallel_tool_calls: bool | None = key("Let its tools run side by side.")
    startup_timeout_sec: Positive | None = key(
        "The time limit of its start, in seconds."
    )
    tool_timeout_sec: Positive | None = key("The time limit of a call, in seconds.")
    startup_timeout_ms: Limit | None = key(
        "The time limit of its start, in milliseconds."
    )
    enabled_tools: tuple[str, ...] | None = key(
        "The tools that are offered, and no others."
    )
    disabled_tools: tuple[str, ...] | None = key("Tools that are not offered.")
    default_tools_approval_mode: (
        Literal["auto", "prompt", "writes", "approve"] | None
    ) = key("The policy for asking you about its calls.")
    tools: Mapping[str, McpTool] = table()
    startup_readiness: Literal["connection", "catalog"] | None = no_effect("catalog")
    tool_input_schema_max_bytes: Count | None = no_effect()
    omit_tools_from: tuple[Any, ...] | None = no_effect([])


class BundledSkills(Section):
    """`[skills.bundled]`"""

    enabled: bool | None = key("Use the skills that come with Codex.")


class Skills(Section):
    """`[skills]`"""

    config: tuple[Mapping[str, Any], ...] | None = key("Turns skills on and off.")
    bundled: BundledSkills = table()
    include_instructions: bool = key(
        "Give the model a list of the skills.", default=True
    )
    max_context_tokens: Count | None = key("The size limit of the list, in tokens.")


class AgentRole(Section):
    """`[agents.*]`"""

    description: str | None = key("The purpose of a role.")
    config_file: Path | None = key("A file with the settings of the role.")
    nickname_candidates: tuple[str, ...] | None = key(
        "Names for subagents of the role."
    )


class Agents(Section):
    """`[agents]`"""

    enabled: bool | None = key("Allow the model to start subagents.")
    max_threads: Limit | None = key("The most subagents that work at once.")
    max_depth: Count | None = key("The depth to which subagents may start others.")
    default_subagent_model: str | None = key("The model of subagents.")
    default_subagent_reasoning_effort: str | None = key(
        "The reasoning effort of subagents."
    )
    interrupt_message: bool | None = no_effect(True)
    job_max_runtime_seconds: Count | None = no_effect()
    roles: Mapping[str, AgentRole] = rest()
