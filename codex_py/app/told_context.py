"""Describes the environment and the permissions to the model, laid out as in Codex 0.169. LIGHT."""

import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from codex_py.instructions import instruction_text
from codex_py.protocol import approval
from codex_py.protocol.protected import PROTECTED_NAMES

_KINDS: Final[dict[approval.ApprovalKind, str]] = {
    "sandbox_approval": "what wants to leave the sandbox, and dangerous commands",
    "rules": "commands for which a rule of the user asks",
    "mcp_elicitations": "what tools of MCP servers need a yes or an answer for",
}
"""The description of each kind of question for the model."""
_MAX_DOMAINS: Final = 50


def environment_context(
    *,
    cwd: Path,
    shell: str,
    sandbox_policy: approval.SandboxPolicy,
    today: date,
    timezone: str,
) -> str:
    """Return the `<environment_context>` block, in the layout of Codex 0.169.

    `shell`: a name or a path.
    """
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
    sandbox_policy: approval.SandboxPolicy,
    approval_policy: approval.AskForApproval,
    cwd: Path,
) -> str:
    """Return the `<permissions instructions>` block.

    It says what commands may touch, and when to ask.
    """
    parts = [instruction_text(f"permissions/{sandbox_policy.mode}.md")]
    parts += _network(sandbox_policy)
    if sandbox_policy.mode == "workspace-write":
        roots = ", ".join(f"`{root}`" for root in _roots(cwd, sandbox_policy))
        parts.append(f"Writable folders: {roots}.")
    if sandbox_policy.files.denies:
        parts.append(instruction_text("permissions/denied-reads.md"))
        # The patterns begin with the denied paths.
        patterns = sandbox_policy.files.patterns
        path_count = len(sandbox_policy.files.denied)
        parts += [f"- path `{path}`" for path in patterns[:path_count]]
        parts += [f"- glob `{glob}`" for glob in patterns[path_count:]]
    parts.append(instruction_text(f"permissions/{approval_policy}.md"))
    if isinstance(approval_policy, approval.GranularPolicy):
        parts += _granular(approval_policy)
    if approval_policy is not approval.ApprovalPolicy.NEVER:
        if approval.may_ask(approval_policy, "sandbox_approval"):
            parts.append(instruction_text("permissions/escalation.md"))
        parts.append(instruction_text("permissions/rules.md"))
    return "\n".join(
        ("<permissions instructions>", *parts, "</permissions instructions>")
    )


def _network(policy: approval.SandboxPolicy) -> list[str]:
    """Lines that say which hosts commands can reach."""
    if not policy.network_access and policy.mode != "danger-full-access":
        return [instruction_text("permissions/network-restricted.md")]
    domains = policy.domains
    if domains is None:
        return [instruction_text("permissions/network-enabled.md")]
    return [
        instruction_text("permissions/network-listed.md"),
        f"Allowed hosts: {_listed(domains.allow)}.",
        f"Denied hosts: {_listed(domains.deny)}.",
    ]


def _listed(patterns: Sequence[str]) -> str:
    shown = [f"`{pattern}`" for pattern in patterns[:_MAX_DOMAINS]]
    if len(patterns) > _MAX_DOMAINS:
        shown.append("…")
    return ", ".join(shown) or "none"


def _granular(policy: approval.GranularPolicy) -> list[str]:
    """Lines that say which kinds of questions the user is asked."""
    asked: list[str] = []
    refused: list[str] = []
    for kind, words in _KINDS.items():
        if approval.may_ask(policy, kind):
            asked.append(words)
        else:
            refused.append(words)
    lines: list[str] = []
    if asked:
        lines.append(f"- The user is asked about: {'; '.join(asked)}.")
    if refused:
        lines.append(f"- Refused without a question is: {'; '.join(refused)}.")
    return lines


def timezone_name(environment: Mapping[str, str]) -> str:
    """Return the IANA name of the local time zone, such as `Europe/Paris`; `Etc/UTC` if unknown."""
    zone = environment.get("TZ", "").removeprefix(":")
    if zone:
        _, found, name = zone.partition("/zoneinfo/")
        if found:
            return name
        return zone
    _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    if found:
        return name
    return "Etc/UTC"


def _roots(cwd: Path, policy: approval.SandboxPolicy) -> Sequence[Path]:
    """The folders of the workspace, the working directory first."""
    roots = [cwd]
    if policy.mode == "workspace-write":
        roots += policy.writable_roots
    return tuple(dict.fromkeys(roots))


def _permission_profile(
    roots: Sequence[Path],
    policy: approval.SandboxPolicy,
) -> str:
    """The `<permission_profile>` element: what commands may read and write."""
    files = policy.files
    is_free = policy.mode == "danger-full-access"
    if is_free and not files.denies:
        return (
            '<permission_profile type="disabled"><file_system type="unrestricted" />'
            "</permission_profile>"
        )
    entries = [_entry("write" if is_free else "read", "<special>:root</special>")]
    if policy.mode == "workspace-write":
        entries += _workspace_entries(roots, policy)
    for path, access in files.entries:
        entries.append(_entry(access, f"<path>{_xml(path)}</path>"))
    for folder, glob in files.globs:
        entries.append(_entry("deny", f"<glob>{_xml(f'{folder}/{glob}')}</glob>"))
    depth = ""
    if files.scan_depth:
        depth = f' glob_scan_max_depth="{files.scan_depth}"'
    return (
        f'<permission_profile type="managed"><file_system type="restricted"{depth}>'
        f"{''.join(entries)}</file_system></permission_profile>"
    )


def _workspace_entries(
    roots: Sequence[Path], policy: approval.SandboxPolicy
) -> list[str]:
    """The folders that commands may write to, and what is protected in them."""
    entries = [_entry("write", f"<path>{_xml(root)}</path>") for root in roots]
    if not policy.exclude_slash_tmp:
        entries.append(_entry("write", "<special>:slash_tmp</special>"))
    if not policy.exclude_tmpdir_env_var:
        entries.append(_entry("write", "<special>:tmpdir</special>"))
    for name in PROTECTED_NAMES:
        paths = [root / name for root in roots]
        entries += [_entry("read", f"<path>{_xml(path)}</path>") for path in paths]
    return entries


def _entry(access: str, what: str) -> str:
    # No approval of the user lifts a denial.
    fixed = ' escalatable="false"' if access == "deny" else ""
    return f'<entry access="{access}"{fixed}>{what}</entry>'


def _xml(value: object) -> str:
    # The standard library's own escape function imports urllib.request, 30 ms.
    text = str(value).replace("&", "&amp;")
    return text.replace("<", "&lt;").replace(">", "&gt;")
