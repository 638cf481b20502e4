"""Declares every key of `requirements.toml`. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from codex_py.config.declared.features import HookGroup
from codex_py.config.declared.names import hook_events
from codex_py.config.declared.permissions import Permissions
from codex_py.config.declared.section import Section, key, rest, table


class RequiredFilesystem(Section):
    """`[permissions.filesystem]`"""

    deny_read: tuple[str, ...] | None = key(
        "Paths and patterns that are denied in every mode and profile, absolute or in `~`."
    )


class RequiredPermissions(Section):
    """`[permissions]`"""

    filesystem: RequiredFilesystem = table()
    others: Mapping[str, Permissions] = rest()


class PatternWord(Section):
    """`[rules.prefix_rules.pattern]`"""

    token: str | None = key("A word of a command.")
    any_of: tuple[str, ...] | None = key(
        "Words, of which a command has one in this place."
    )


class PrefixRule(Section):
    """`[rules.prefix_rules]`"""

    pattern: tuple[PatternWord, ...] | None = key(
        "The words that a command begins with."
    )
    decision: Literal["prompt", "forbidden"] | None = key(
        "The decision about commands that begin with the pattern."
    )
    justification: str | None = key("The reason that the model is told.")


class RequiredRules(Section):
    """`[rules]`"""

    prefix_rules: tuple[PrefixRule, ...] | None = key(
        "Rules about commands, besides those of the user, each with `pattern`, "
        "`decision` and `justification`."
    )


class ServerIdentity(Section):
    """`[mcp_servers.*.identity]`"""

    command: str | None = key(
        "The command that a server of this name must have; all other servers are disabled."
    )
    url: str | None = key(
        "The URL that a server of this name must have; all other servers are disabled."
    )


class RequiredServer(Section):
    """`[mcp_servers.*]`"""

    identity: ServerIdentity = table()


class RequiredHooks(Section):
    """`[hooks]`"""

    events: Mapping[str, tuple[HookGroup, ...]] = rest(
        "Hooks at an event, in the form of `hooks.json`.", names=hook_events
    )
    managed_dir: str | None = key(
        "The folder of the hooks' programs; it has no effect, as in Codex."
    )
    windows_managed_dir: str | None = key(
        "The folder of the hooks' programs; it has no effect, as in Codex."
    )


class RequiredNetwork(Section):
    """`[experimental_network]`"""

    enabled: bool | None = key("Enforce the list of domains.")
    domains: Mapping[str, Literal["allow", "deny"]] = table(
        "Allow or deny hosts to commands, by pattern."
    )
    allow_local_binding: bool | None = key(
        "Let allowed names have private and local addresses."
    )
    managed_allowed_domains_only: bool | None = key(
        "Keep the user from allowing more hosts."
    )


class RequirementKeys(Section):
    """All keys of the file."""

    allowed_sandbox_modes: (
        tuple[Literal["read-only", "workspace-write", "danger-full-access"], ...] | None
    ) = key("The modes that are allowed; `read-only` has to be one.")
    allowed_approval_policies: (
        tuple[Literal["untrusted", "on-failure", "on-request", "never"], ...] | None
    ) = key("The policies that are allowed; the first replaces others.")
    allowed_web_search_modes: (
        tuple[Literal["disabled", "cached", "indexed", "live"], ...] | None
    ) = key("The kinds of web search that are allowed; `disabled` always is.")
    allowed_approvals_reviewers: tuple[str, ...] | None = key(
        "The reviewers of approvals that may be chosen; `auto_review` and `guardian_subagent` are "
        "the same."
    )
    allowed_permission_profiles: Mapping[str, bool] = table(
        "Allow or forbid a profile, by its name. A profile without an entry is forbidden."
    )
    default_permissions: str | None = key(
        "The profile that replaces those that are not allowed."
    )
    permissions: RequiredPermissions = table()
    rules: RequiredRules = table()
    mcp_servers: Mapping[str, RequiredServer] = table()
    features: Mapping[str, bool] = table("Turn a feature on or off.")
    allow_managed_hooks_only: bool | None = key("Run only the hooks of this file.")
    hooks: RequiredHooks = table()
    experimental_network: RequiredNetwork = table()
    additional_developer_instructions: str | None = key(
        "Instructions that every model gets."
    )
    enforce_residency: Literal["us"] | None = key(
        "A header of every request to the model."
    )
    guardian_policy_config: str | None = key(
        "The policy of the reviewer of approvals, in place of the user's."
    )
