"""The context of a thread: permissions, environment and instructions, first and whenever they changed.

Of a continued thread, whole blocks are sent again, as Codex does, so that only the last block of each kind counts.
LIGHT.
"""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from codex_py.instructions import instruction_text
from codex_py.protocol import approval
from codex_py.protocol.messages import EncodedItem, decode_json, input_text, message
from codex_py.protocol.prompts import context_texts, message_texts
from codex_py.protocol.protected import PROTECTED_NAMES

_KINDS: Final[dict[approval.ApprovalKind, str]] = {
    "sandbox_approval": "what wants to leave the sandbox, and dangerous commands",
    "rules": "commands for which a rule of the user asks",
    "mcp_elicitations": "what tools of MCP servers need a yes or an answer for",
}
"""How the model is told of each kind of question."""

_AGENTS: Final = "# AGENTS.md instructions"
_BLOCKS: Final = ("<permissions instructions>", _AGENTS, "<environment_context>")
"""How the text of each block begins."""

_OPENING: Final = "<INSTRUCTIONS>\n"
_REPLACES: Final = (
    "These AGENTS.md instructions replace all previously provided AGENTS.md instructions.\n\n"
)
_NO_AGENTS: Final = (
    f"{_AGENTS}\n\n{_OPENING}The previously provided AGENTS.md instructions no longer apply.\n"
    "</INSTRUCTIONS>"
)


def initial_items(developer: Sequence[str | None], user: Sequence[str | None]) -> list[EncodedItem]:
    """The items between the base prompt and the first prompt: a message of each role, made of these parts.

    Parts that are None or blank are left out, and so is a message without parts.
    """
    return [
        message(role, parts)
        for role, texts in (("developer", developer), ("user", user))
        if (parts := [input_text(text) for text in texts if text and text.strip()])
    ]


def context_update(
    history: Sequence[EncodedItem], current: Sequence[EncodedItem]
) -> list[EncodedItem]:
    """The messages that bring a model up to date.

    Args:
        history: of the thread.
        current: the first items of a new thread, see `initial_items`. Parts of other kinds, such as the
            user's own instructions, are not updated.
    """
    before = _latest_blocks(history)
    texts = [
        (item["role"], part["text"])
        for item in map(json.loads, current)
        for part in item["content"]
    ]
    if _AGENTS in before and not any(text.startswith(_AGENTS) for _, text in texts):
        texts.insert(0, ("user", _NO_AGENTS))
    update: list[EncodedItem] = []
    for role in ("developer", "user"):
        parts = [
            input_text(_worded(text, kind, before))
            for its_role, text in texts
            if its_role == role and (kind := _kind(text)) and text != before.get(kind)
        ]
        if parts:
            update.append(message(role, parts))
    return update


def is_context_message(item: EncodedItem) -> bool:
    """True for a message of `initial_items` or `context_update`; a later one replaces it."""
    data = decode_json(item)
    return data.get("role") in {"developer", "user"} and any(
        map(_kind, message_texts(data.get("content")))
    )


def model_switch() -> EncodedItem:
    """The message that tells a model that another one wrote the earlier turns."""
    text = f"<model_switch>\n{instruction_text('model_switch.md')}\n</model_switch>"
    return message("developer", [input_text(text)])


def environment_context(
    *, cwd: Path, shell: str, sandbox_policy: approval.SandboxPolicy, today: date, timezone: str
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
    sandbox_policy: approval.SandboxPolicy, approval_policy: approval.AskForApproval, cwd: Path
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
    if isinstance(approval_policy, approval.GranularPolicy):
        parts += _granular(approval_policy)
    if approval_policy is not approval.ApprovalPolicy.NEVER:
        if approval.may_ask(approval_policy, "sandbox_approval"):
            parts.append(instruction_text("permissions/escalation.md"))
        parts.append(instruction_text("permissions/rules.md"))
    return "\n".join(("<permissions instructions>", *parts, "</permissions instructions>"))


def _granular(policy: approval.GranularPolicy) -> list[str]:
    lines: list[str] = []
    titles = {True: "The user is asked about", False: "Refused without a question is"}
    for allowed, title in titles.items():
        if kinds := [
            words for kind, words in _KINDS.items() if approval.may_ask(policy, kind) is allowed
        ]:
            lines.append(f"- {title}: {'; '.join(kinds)}.")
    return lines


def timezone_name(environment: Mapping[str, str]) -> str:
    """The IANA name of the local time zone, `Europe/Paris`; `Etc/UTC` if it is unknown."""
    if zone := environment.get("TZ", "").removeprefix(":"):
        _, found, name = zone.partition("/zoneinfo/")
        return name if found else zone
    _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    return name if found else "Etc/UTC"


def _roots(cwd: Path, policy: approval.SandboxPolicy) -> Sequence[Path]:
    extra = policy.writable_roots if policy.mode == "workspace-write" else ()
    return tuple(dict.fromkeys((cwd, *extra)))


def _permission_profile(roots: Sequence[Path], policy: approval.SandboxPolicy) -> str:
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


def _latest_blocks(items: Sequence[EncodedItem]) -> dict[str, str]:
    latest = {kind: next(context_texts(kind, items), None) for kind in _BLOCKS}
    return {kind: text.replace(_REPLACES, "", 1) for kind, text in latest.items() if text}


def _kind(text: str) -> str | None:
    return next((kind for kind in _BLOCKS if text.startswith(kind)), None)


def _worded(text: str, kind: str, before: dict[str, str]) -> str:
    if kind != _AGENTS or _AGENTS not in before or text == _NO_AGENTS:
        return text
    return text.replace(_OPENING, _OPENING + _REPLACES, 1)
