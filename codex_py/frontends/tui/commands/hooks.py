"""Reviewing hooks: the question at the start of the program, and `/hooks`."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from rich.text import Text

from codex_py.app.features.hooks import HooksFeature
from codex_py.config.hook_files import has_hooks
from codex_py.config.hooks import Hook, Hooks, enable, find_hooks, trust
from codex_py.errors import CodexError
from codex_py.frontends.terminal import on_one_line, printable
from codex_py.frontends.tui.commands.registry import Command, CommandContext
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.panel import Choice, Option
from codex_py.frontends.tui.picker import Picker, Row
from codex_py.frontends.tui.plain import cut

_STATES: Final = {
    "new": "new; it does not run",
    "changed": "changed since you trusted it; it does not run",
    "trusted": "trusted",
    "disabled": "switched off",
}
_NONE: Final = "There are no hooks. They are programs of yours that run at events of a session: write them into {}."
_LATER: Final = "This session began without hooks. They run in the next one: /new begins it."

_MOST_SHOWN: Final = 1000
"""Characters of one field. The terminal wraps it anew each time it draws."""
_MORE: Final = "… (v shows all)"

_Answer: TypeAlias = Literal["review", "trust", "skip"]
_Change: TypeAlias = Callable[[], None] | None
"""Stores an answer; None changes nothing."""


async def settle_hooks(context: CommandContext) -> None:
    """Ask about hooks that are new or changed, before the session begins."""
    if not has_hooks(context.config) or context.surface.launch.bypass_hook_trust:
        return
    hooks = find_hooks(context.config, context.surface.environment)
    try:
        while new := hooks.to_review:
            question = partial(_question, len(new))
            match await context.surface.panels.ask(question, about="Hooks need review"):
                case "review":
                    hooks = await _look_through(context, hooks, lambda found: found.to_review)
                case "trust":
                    await _changed(context, lambda: trust(context.config.home, new))
                    return
                case "skip":
                    return
    except CodexError as error:
        # The session begins all the same; these hooks do not run in it.
        context.transcript.notice(str(error), "error")


def _question(count: int) -> Choice[_Answer]:
    hooks = "1 hook is" if count == 1 else f"{count} hooks are"
    question: Fragments = [
        ("bold", "Hooks need review"),
        ("", f"\n\n{hooks} new or changed. A hook that you trust can run outside the sandbox."),
    ]
    answers: Sequence[Option[_Answer]] = [
        Option("Review hooks", "review"),
        Option("Trust all and continue", "trust"),
        Option("Continue without trusting (hooks will not run)", "skip"),
    ]
    return Choice(question, answers, cancelled="skip")


async def _show_hooks(context: CommandContext, _: str) -> None:
    hooks = await _changed(context, lambda: None)
    if hooks.warnings:
        context.transcript.notice("\n".join(hooks.warnings))
    if not hooks.found:
        context.transcript.notice(_NONE.format(context.config.home / "hooks.json"))
        return
    hooks = await _look_through(context, hooks, lambda found: found.found)
    session = context.conversation.session
    has_trusted = any(hook.state == "trusted" for hook in hooks.found)
    if has_trusted and session is not None and session.feature(HooksFeature) is None:
        context.transcript.notice(_LATER)


async def _look_through(
    context: CommandContext, hooks: Hooks, select: Callable[[Hooks], Sequence[Hook]]
) -> Hooks:
    """Show hooks and let the user decide on each, until none is left or the user leaves. Returns all hooks as they are then."""
    panels, at = context.surface.panels, 0
    while shown := select(hooks):
        rows = [Row(_name(hook), hook, f"{hook.state}  {_target(hook)}") for hook in shown]
        hook = await panels.show(
            Picker("Hooks", rows, preview=_preview, selected=min(at, len(shown) - 1))
        )
        if hook is None:
            break
        at = shown.index(hook)
        change = await panels.show(_decision(context, hook))
        if change is not None:
            hooks = await _changed(context, change)
    return hooks


def _decision(context: CommandContext, hook: Hook) -> Choice[_Change]:
    home, text = context.config.home, _described(hook)
    options: list[Option[_Change]] = [Option("Back", None, "b")]
    if hook.state == "disabled":
        options.insert(0, Option("Switch it on", lambda: enable(home, hook, enabled=True), "o"))
    elif not hook.is_managed:
        options.insert(0, Option("Switch it off", lambda: enable(home, hook, enabled=False), "o"))
    if hook.needs_review:
        options.insert(0, Option("Trust it", lambda: trust(home, [hook]), "t"))
    return Choice(
        [("bold", _name(hook)), ("", f"\n{text}")],
        options,
        cancelled=None,
        # Enter alone trusts nothing.
        default=len(options) - 1,
        # Not a notice, of which only the ends are shown.
        show_all=lambda: context.transcript.print(Text(_described(hook, None))),
    )


async def _changed(context: CommandContext, change: Callable[[], None]) -> Hooks:
    """Change the trust in hooks. The open session and later ones use what is configured then, which is returned."""

    def work() -> Any:
        change()
        return context.surface.launch.reload()

    fresh = await asyncio.to_thread(work)
    names = ("layers", "project_trust", "values", "features", "plugins")
    config = replace(context.config, **{name: getattr(fresh, name) for name in names})
    context.conversation.config = config
    hooks = find_hooks(config, context.surface.environment)
    session = context.conversation.session
    if session is not None and (feature := session.feature(HooksFeature)) is not None:
        feature.hooks = hooks
    return hooks


def _name(hook: Hook) -> str:
    return on_one_line(cut(f"{hook.event} {hook.matcher or ''}", _MOST_SHOWN)).strip()


def _target(hook: Hook) -> str:
    target = hook.command if hook.kind == "command" else f"{hook.server}/{hook.tool}"
    return on_one_line(cut(target, _MOST_SHOWN))


async def _preview(hook: Hook) -> str:
    return _described(hook)


def _described(hook: Hook, most: int | None = _MOST_SHOWN) -> str:
    """All about a hook, in lines for a terminal; the most important ones first. `most`: characters of one."""
    rows = {
        "runs" if hook.kind == "command" else "calls": hook.command or _target(hook),
        "with": json.dumps(hook.arguments, ensure_ascii=False) if hook.arguments else "",
        "for": hook.matcher or "all",
        "from": str(hook.source),
        "state": "set by the administrator" if hook.is_managed else _STATES[hook.state],
        "stops after": f"{hook.timeout_s:g} s" + (", in the background" if hook.is_async else ""),
    }
    return "\n".join(
        printable(f"{name}: {cut(value, most or len(value), _MORE)}")
        for name, value in rows.items()
        if value
    )


HOOKS = [Command("hooks", "review hooks, and switch them on or off", _show_hooks)]
