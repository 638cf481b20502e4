"""Commands for what the session runs with, and for how the terminal looks."""

from dataclasses import replace
from typing import TYPE_CHECKING

from codex_py.errors import CodexError
from codex_py.frontends.human import sandbox_summary
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.commands.registry import Command
from codex_py.frontends.tui.picker import Picker, Row, rows_with
from codex_py.protocol.approval import ApprovalPolicy, SandboxMode
from codex_py.turn_settings import known_models

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

_EFFORTS = ("minimal", "low", "medium", "high", "xhigh")

_PERMISSIONS: list[tuple[str, str, ApprovalPolicy, SandboxMode]] = [
    (
        "Ask for approval",
        "works in this folder; asks to leave it or to use the network",
        ApprovalPolicy.ON_REQUEST,
        "workspace-write",
    ),
    (
        "Never ask",
        "works in this folder and can not leave it",
        ApprovalPolicy.NEVER,
        "workspace-write",
    ),
    ("Read only", "reads; asks to change anything", ApprovalPolicy.ON_REQUEST, "read-only"),
    ("Full access", "may do all that you may, unasked", ApprovalPolicy.NEVER, "danger-full-access"),
]


async def _model(terminal: "Terminal", argument: str) -> None:
    session = terminal.conversation.session
    if session is None:
        raise CodexError("there is no conversation yet", code="no_session")
    model, _, effort = argument.partition(" ")
    if not model:
        names = known_models(terminal.config)
        current = session.settings.model
        rows = [Row(name, name, "current" if name == current else "") for name in names]
        picked = await terminal.show(
            Picker(
                "Model",
                rows_with(rows),
                changed=terminal.screen.changed,
                selected=names.index(current) if current in names else 0,
            )
        )
        if picked is None:
            return
        model = picked
    if not effort:
        efforts = [Row("the model's own", ""), *(Row(name, name) for name in _EFFORTS)]
        chosen = await terminal.show(
            Picker("Reasoning effort", rows_with(efforts), changed=terminal.screen.changed)
        )
        if chosen is None:
            return
        effort = chosen
    choices = replace(
        session.settings.choices, model=model, reasoning_effort=effort.strip() or None
    )
    terminal.change(choices)
    terminal.transcript.notice(f"Model: {printable(model)} {effort}".rstrip())


async def _permissions(terminal: "Terminal", _: str) -> None:
    session = terminal.conversation.session
    if session is None:
        raise CodexError("there is no conversation yet", code="no_session")
    now = session.settings
    rows = [Row(label, (policy, mode), note) for label, note, policy, mode in _PERMISSIONS]
    current = (now.approval_policy, now.sandbox_policy.mode)
    selected = next((n for n, row in enumerate(rows) if row.value == current), 0)
    picked = await terminal.show(
        Picker("Permissions", rows_with(rows), changed=terminal.screen.changed, selected=selected)
    )
    if picked is None:
        return
    policy, mode = picked
    terminal.change(
        replace(
            now.choices,
            approval_policy=policy,
            sandbox_policy=replace(terminal.config, sandbox_mode=mode).sandbox_policy(),
        )
    )
    label = next(row.label for row in rows if row.value == picked)
    terminal.transcript.notice(f"Permissions: {label}")


async def _status(terminal: "Terminal", _: str) -> None:
    session = terminal.conversation.session
    if session is None:
        raise CodexError("there is no conversation yet", code="no_session")
    settings, usage = session.settings, session.token_usage
    total = usage.total
    facts = {
        "model": f"{settings.model} {settings.reasoning_effort or ''}".rstrip(),
        "provider": settings.provider,
        "directory": str(settings.cwd),
        "approval": str(settings.approval_policy),
        "sandbox": sandbox_summary(settings.sandbox_policy, settings.cwd),
        "session": session.thread_id + (f" ({session.name})" if session.name else ""),
        "tokens": f"{total.total_tokens:,} ({total.input_tokens:,} in, of which"
        f" {total.cached_input_tokens:,} cached; {total.output_tokens:,} out)",
        "context": f"{usage.context_left_percent}% left of {settings.context_window:,}",
    }
    width = max(map(len, facts))
    terminal.transcript.notice("\n".join(f"{k:{width}}  {v}" for k, v in facts.items()))


async def _vim(terminal: "Terminal", _: str) -> None:
    on = terminal.composer.toggle_vi()
    terminal.hint(f"vi keys are {'on' if on else 'off'}")


SETTINGS = [
    Command("model", "choose the model and its effort", _model, while_working=False),
    Command("permissions", "choose what may be done unasked", _permissions, while_working=False),
    Command("status", "show the settings and what was used", _status),
    Command("vim", "turn vi keys on or off", _vim),
]
