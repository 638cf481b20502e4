"""Commands for what the session runs with, and for how the terminal looks."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_py.app.settings import known_models
from codex_py.config.edit import edit_config, edited_values, first_that_fits
from codex_py.config.files import parse_toml
from codex_py.errors import CodexError, ConfigError
from codex_py.frontends.exec.human import sandbox_summary
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.cells.command import script_of
from codex_py.frontends.tui.commands.registry import Command
from codex_py.frontends.tui.picker import Picker, Row, rows_with
from codex_py.frontends.tui.status import duration
from codex_py.frontends.tui.theme import terminal_theme
from codex_py.protocol.approval import ApprovalPolicy, SandboxMode

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

_THEMES = ("auto", "dark", "light")
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
    session = await terminal.opening.session()
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
    session = await terminal.opening.session()
    now = session.settings
    current = (now.approval_policy, now.sandbox_policy.mode)
    rows = [
        Row(label, (policy, mode), f"(now) {note}" if (policy, mode) == current else note)
        for label, note, policy, mode in _PERMISSIONS
    ]
    selected = next((n for n, row in enumerate(rows) if row.value == current), 0)
    picked = await terminal.show(
        Picker("Permissions", rows_with(rows), changed=terminal.screen.changed, selected=selected)
    )
    if picked is None:
        return
    policy, mode = picked
    config = replace(terminal.config, sandbox_mode=mode)
    terminal.change(
        replace(
            now.choices,
            approval_policy=policy,
            sandbox_policy=config.sandbox_policy(terminal.opening.add_dirs),
        )
    )
    label = next(row.label for row in rows if row.value == picked)
    terminal.transcript.notice(f"Permissions: {label}")


async def _status(terminal: "Terminal", _: str) -> None:
    session = await terminal.opening.session()
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


async def _cost(terminal: "Terminal", _: str) -> None:
    session = await terminal.opening.session()
    total = session.token_usage.total
    terminal.transcript.notice(
        f"{total.total_tokens:,} tokens so far: {total.input_tokens:,} in, of which"
        f" {total.cached_input_tokens:,} from the cache, and {total.output_tokens:,} out.\n"
        f"What they cost is not known here: {printable(session.settings.provider)} does not tell its prices."
    )


async def _skills(terminal: "Terminal", _: str) -> None:
    found = terminal.composer.skills.found
    if not found:
        terminal.transcript.notice("There are no skills. Each is a folder with a SKILL.md.")
        return
    terminal.transcript.notice(
        "\n".join(f"${skill.name}  {' '.join(skill.description.split())}" for skill in found)
    )


async def _ps(terminal: "Terminal", _: str) -> None:
    now = time.monotonic()
    lines = [
        f"{duration(int(now - since)):>8}  {' '.join(script_of(command, terminal.theme.shell).split())[:500]}"
        for command, since in terminal.status.commands.values()
    ]
    terminal.transcript.notice("\n".join(lines) or "No command is running.")


async def _stop(terminal: "Terminal", _: str) -> None:
    session = terminal.conversation.session
    count = int(terminal.shell.stop()) + (0 if session is None else session.stop_commands())
    done = f"Stopped {count} command{'' if count == 1 else 's'}."
    terminal.transcript.notice(done if count else "No command is running.")


async def _theme(terminal: "Terminal", argument: str) -> None:
    name = argument or await terminal.show(
        Picker(
            "Background",
            rows_with([Row(each, each) for each in _THEMES]),
            changed=terminal.screen.changed,
        )
    )
    if name is None:
        return
    if name not in _THEMES:
        raise CodexError(f"write /theme {' or /theme '.join(_THEMES)}", code="usage")
    await asyncio.to_thread(_save_theme, terminal.config.home, name)
    terminal.use_theme(terminal_theme(terminal.environment, name, cwd=terminal.theme.cwd))
    terminal.transcript.notice(f"Colours for a {terminal.theme.background} background.")


def _save_theme(home: Path, name: str) -> None:
    def change(text: str, path: Path) -> str:
        def put(document: Any) -> None:
            document.setdefault("tui", {})["theme"] = name

        aim = parse_toml(text, path)
        put(aim)
        changed = first_that_fits(text, path, aim, [lambda text: edited_values(text, put)])
        if changed is None:
            raise ConfigError(f"{path}: write `theme` into the table `tui` yourself")
        return changed

    edit_config(home, change)


async def _vim(terminal: "Terminal", _: str) -> None:
    on = terminal.composer.toggle_vi()
    terminal.hint(f"vi keys are {'on' if on else 'off'}")


SETTINGS = [
    Command("model", "choose the model and its effort", _model, while_working=False),
    Command("permissions", "choose what may be done unasked", _permissions, while_working=False),
    Command("status", "show the settings and what was used", _status),
    Command("cost", "show what was used", _cost),
    Command("skills", "list the skills that a prompt can name", _skills),
    Command("ps", "list the commands that run", _ps),
    Command("stop", "kill the commands that run", _stop, while_working=False),
    Command("theme", "choose colours for your background", _theme, argument="[auto|dark|light]"),
    Command("vim", "turn vi keys on or off", _vim),
]
