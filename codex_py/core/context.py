"""The first messages to the model: permissions, environment, and instructions."""

import os
import pwd
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Final, Protocol

from codex_py.instructions import instruction_text
from codex_py.protocol.approval import (
    ApprovalKind,
    ApprovalPolicy,
    AskForApproval,
    GranularPolicy,
    SandboxPolicy,
    may_ask,
)
from codex_py.protocol.messages import EncodedItem, input_text, message
from codex_py.protocol.protected import PROTECTED_NAMES

_SHELLS: Final = frozenset({"bash", "zsh", "sh", "dash", "ksh", "ash"})
"""Shells that understand what models write. Others, such as fish, are left to the user's terminal."""

_KINDS: Final[dict[ApprovalKind, str]] = {
    "sandbox_approval": "what wants to leave the sandbox, and dangerous commands",
    "rules": "commands for which a rule of the user asks",
    "mcp_elicitations": "what tools of MCP servers need a yes or an answer for",
}
"""How the model is told of each kind of question."""


class ContextSettings(Protocol):
    """The part of the configuration that the first items are made from."""

    @property
    def developer_instructions(self) -> str | None: ...
    @property
    def include_permissions_instructions(self) -> bool: ...
    @property
    def include_environment_context(self) -> bool: ...


def initial_items(
    settings: ContextSettings,
    *,
    permissions: str,
    environment: str,
    agents: str | None,
) -> list[EncodedItem]:
    """The items between the base prompt and the first prompt, in the order of Codex.

    The arguments are the results of `permissions_instructions`, `environment_context` and `agents_md`. Parts
    that the settings turn off and blank parts are left out, and so is a message without parts.
    """
    developer = [
        settings.developer_instructions,
        permissions if settings.include_permissions_instructions else None,
    ]
    user = [agents, environment if settings.include_environment_context else None]
    return [
        message(role, parts)
        for role, texts in (("developer", developer), ("user", user))
        if (parts := [input_text(text) for text in texts if text and text.strip()])
    ]


def environment_context(
    *, cwd: Path, shell: str, sandbox_policy: SandboxPolicy, today: date, timezone: str
) -> str:
    """The `<environment_context>` block, as Codex 0.169 lays it out. `shell` is a name or a path."""
    roots = _roots(cwd, sandbox_policy)
    workspace = "".join(f"<root>{_xml(root)}</root>" for root in roots)
    lines = (
        "<environment_context>",
        f"  <cwd>{_xml(cwd)}</cwd>",
        f"  <shell>{_xml(Path(shell).name)}</shell>",
        f"  <current_date>{today.isoformat()}</current_date>",
        f"  <timezone>{_xml(timezone)}</timezone>",
        f"  <filesystem><workspace_roots>{workspace}</workspace_roots>"
        f"{_permission_profile(roots, sandbox_policy)}</filesystem>",
        "</environment_context>",
    )
    return "\n".join(lines)


def permissions_instructions(
    sandbox_policy: SandboxPolicy, approval_policy: AskForApproval, cwd: Path
) -> str:
    """The `<permissions instructions>` block: what commands may touch, and when to ask."""
    free = sandbox_policy.network_access or sandbox_policy.mode == "danger-full-access"
    network = "enabled" if free else "restricted"
    parts = [
        instruction_text(f"permissions/{sandbox_policy.mode}.md"),
        instruction_text(f"permissions/network-{network}.md"),
    ]
    if sandbox_policy.mode == "workspace-write":
        roots = ", ".join(f"`{root}`" for root in _roots(cwd, sandbox_policy))
        parts.append(f"Writable folders: {roots}.")
    parts.append(instruction_text(f"permissions/{approval_policy}.md"))
    if isinstance(approval_policy, GranularPolicy):
        parts += _granular(approval_policy)
    if approval_policy is not ApprovalPolicy.NEVER:
        if may_ask(approval_policy, "sandbox_approval"):
            parts.append(instruction_text("permissions/escalation.md"))
        parts.append(instruction_text("permissions/rules.md"))
    return "\n".join(("<permissions instructions>", *parts, "</permissions instructions>"))


def _granular(policy: GranularPolicy) -> list[str]:
    lines: list[str] = []
    for allowed, title in (
        (True, "The user is asked about"),
        (False, "Refused without a question is"),
    ):
        kinds = [words for kind, words in _KINDS.items() if may_ask(policy, kind) is allowed]
        if kinds:
            lines.append(f"- {title}: {'; '.join(kinds)}.")
    return lines


def user_shell(environment: Mapping[str, str]) -> str:
    """The absolute path of the shell for the model's commands.

    `$SHELL`, else the user's login shell, else bash, else `/bin/sh`; the first that is compatible
    with the Bourne shell and executable.
    """
    candidates = [environment.get("SHELL", "")]
    with suppress(KeyError):  # a container may run under a user id that has no entry
        candidates.append(pwd.getpwuid(os.getuid()).pw_shell)
    candidates.append("/bin/bash")
    return next((shell for shell in candidates if _is_usable_shell(shell)), "/bin/sh")


def timezone_name(environment: Mapping[str, str]) -> str:
    """The IANA name of the local time zone, `Europe/Paris`; `Etc/UTC` if it is unknown."""
    if zone := environment.get("TZ", "").removeprefix(":"):
        _, found, name = zone.partition("/zoneinfo/")
        return name if found else zone
    try:
        _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    except OSError:
        return "Etc/UTC"
    return name if found else "Etc/UTC"


def _is_usable_shell(shell: str) -> bool:
    path = Path(shell)
    return path.is_absolute() and path.name in _SHELLS and os.access(path, os.X_OK)


def _roots(cwd: Path, policy: SandboxPolicy) -> Sequence[Path]:
    extra = policy.writable_roots if policy.mode == "workspace-write" else ()
    return tuple(dict.fromkeys((cwd, *extra)))


def _permission_profile(roots: Sequence[Path], policy: SandboxPolicy) -> str:
    if policy.mode == "danger-full-access":
        return (
            '<permission_profile type="disabled"><file_system type="unrestricted" />'
            "</permission_profile>"
        )
    entries = [_entry("read", "<special>:root</special>")]
    if policy.mode == "workspace-write":
        entries += [_entry("write", f"<path>{_xml(root)}</path>") for root in roots]
        if not policy.exclude_slash_tmp:
            entries.append(_entry("write", "<special>:slash_tmp</special>"))
        if not policy.exclude_tmpdir_env_var:
            entries.append(_entry("write", "<special>:tmpdir</special>"))
        entries += [
            _entry("read", f"<path>{_xml(root / name)}</path>")
            for name in PROTECTED_NAMES
            for root in roots
        ]
    return (
        '<permission_profile type="managed"><file_system type="restricted">'
        f"{''.join(entries)}</file_system></permission_profile>"
    )


def _entry(access: str, what: str) -> str:
    return f'<entry access="{access}">{what}</entry>'


def _xml(value: object) -> str:
    # The standard library's own escape brings in urllib.request, 30 ms.
    return str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
