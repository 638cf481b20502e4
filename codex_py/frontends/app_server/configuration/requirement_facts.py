"""Tells the administrator's requirements in the format of Codex."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from codex_py.config.config import Config
from codex_py.config.declared.requirements import RequiredNetwork, RequirementKeys
from codex_py.config.declared.section import raw
from codex_py.frontends.app_server.configuration.config_layers import (
    REVIEWERS,
    policy_name,
)
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.approval import SandboxMode

_EVENTS: Final = (
    "PreModelRequest",
    "PostModelRequest",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "Interrupt",
)
"""The events of hooks that the protocol has."""


def requirement_facts(config: Config) -> Fields | None:
    """Return the requirements; None if the administrator has none."""
    requirements = config.requirements
    if requirements.file.path is None:
        return None
    keys = requirements.keys
    modes = None
    all_modes = get_args(SandboxMode)
    if keys.allowed_sandbox_modes is not None or requirements.modes != all_modes:
        modes = list(requirements.modes)
    return {
        "allowedLoginMethods": ["api", "chatgpt"],
        "additionalDeveloperInstructions": keys.additional_developer_instructions,
        "allowedApprovalPolicies": _policies(requirements.approvals),
        "allowedApprovalsReviewers": _reviewers(keys),
        "allowedSandboxModes": modes,
        "allowedPermissionProfiles": dict(keys.allowed_permission_profiles) or None,
        "defaultPermissions": keys.default_permissions,
        "allowedWebSearchModes": _searches(keys),
        "allowManagedHooksOnly": keys.allow_managed_hooks_only,
        "featureRequirements": dict(keys.features) or None,
        "hooks": _hooks(raw(keys.hooks)),
        "enforceResidency": keys.enforce_residency,
        "network": _network(keys),
    }


def _policies(approvals: Sequence[str]) -> list[str] | None:
    """Return the allowed approval policies; None if all are."""
    return list(dict.fromkeys(map(policy_name, approvals))) or None


def _reviewers(keys: RequirementKeys) -> list[str] | None:
    listed = keys.allowed_approvals_reviewers
    if listed is None:
        return None
    return [name for name in listed if name in REVIEWERS]


def _searches(keys: RequirementKeys) -> list[str] | None:
    """Return the allowed kinds of web search; `disabled` always is one."""
    listed = keys.allowed_web_search_modes
    if listed is None:
        return None
    return list(dict.fromkeys([*listed, "disabled"]))


def _hooks(table: Mapping[str, Any]) -> Fields | None:
    if not table:
        return None
    found: Fields = {
        "managedDir": table.get("managed_dir"),
        "windowsManagedDir": table.get("windows_managed_dir"),
    }
    for event in _EVENTS:
        found[event] = [_group(group) for group in table.get(event, ())]
    return found


def _group(group: Mapping[str, Any]) -> Fields:
    handlers = [_handler(handler) for handler in group.get("hooks", ())]
    return {"matcher": group.get("matcher"), "hooks": handlers}


def _handler(handler: Mapping[str, Any]) -> Fields:
    match handler.get("type"):
        case "command":
            return {
                "type": "command",
                "command": handler.get("command", ""),
                "commandWindows": handler.get("commandWindows"),
                "timeoutSec": handler.get("timeout"),
                "async": handler.get("async", False),
                "statusMessage": handler.get("statusMessage"),
                "additionalContextLimit": handler.get("additionalContextLimit"),
            }
        case "mcp_tool":
            return {
                "type": "mcp_tool",
                "server": handler.get("server", ""),
                "tool": handler.get("tool", ""),
                "input": handler.get("input", {}),
                "timeoutSec": handler.get("timeout"),
                "statusMessage": handler.get("statusMessage"),
            }
        case "agent":
            return {"type": "agent"}
        case _:
            return {"type": "prompt"}


def _network(keys: RequirementKeys) -> Fields | None:
    """Return the list of domains; None if there is none."""
    network: RequiredNetwork = keys.experimental_network
    if not raw(network):
        return None
    domains = dict(network.domains)
    by_access: dict[str, list[str]] = {"allow": [], "deny": []}
    for pattern, access in domains.items():
        by_access[access].append(pattern)
    return {
        "enabled": network.enabled,
        "domains": domains or None,
        "managedAllowedDomainsOnly": network.managed_allowed_domains_only,
        "allowedDomains": by_access["allow"] or None,
        "deniedDomains": by_access["deny"] or None,
        "allowLocalBinding": network.allow_local_binding,
    }
