"""Lets the user review hooks: the question at the start of the program, and `/hooks`."""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from rich.text import Text

from codex_py.app.features.hooks.feature import HooksFeature
from codex_py.config.hook_places import has_hooks
from codex_py.config.hooks import Hook, Hooks, enable, find_hooks, trust
from codex_py.errors import CodexError
from codex_py.frontends.tui.cells.layout import one_line
from codex_py.frontends.tui.commands.registry import CommandContext, SlashCommand
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.overlay import Pages
from codex_py.frontends.tui.panel import SHOWS_ALL, Choice, Postponed
from codex_py.frontends.tui.picker import Picker
from codex_py.streams.plain_text import cut
from codex_py.streams.terminal import printable

_STATES: Final = {
    "new": "new; it does not run",
    "changed": "changed since you trusted it; it does not run",
    "trusted": "trusted",
    "disabled": "switched off",
}
_NEW: Final = "Hooks need review"
_NONE: Final = "There are no hooks. They are programs of yours that run at events of a session: write them into {}."
_LATER: Final = (
    "This session began without hooks. They run in the next one: /new begins it."
)
"""The notice for a session that has none of the hooks that are trusted now."""

_MOST_SHOWN: Final = 1000
"""Characters of one field. The terminal wraps it again each time it draws."""

_Change: TypeAlias = Callable[[], None] | None
"""A function that stores the user's answer; None changes nothing."""


async def settle_hooks(context: CommandContext) -> None:
    """Ask about hooks that are new or changed, before the session begins."""
    if not has_hooks(context.config) or context.ui.launch.bypass_hook_trust:
        return
    hooks = find_hooks(context.config, context.ui.environment)
    try:
        while hooks.to_review:
            question = partial(_question, len(hooks.to_review))
            answer = await context.ui.panels.ask(question, about=_NEW)
            if answer == "trust":
                change = partial(trust, context.config.home, hooks.to_review)
                await asyncio.to_thread(change)
                await _reread(context)
            if answer != "review":
                return
            with suppress(Postponed):
                await _look_through(context, hooks, only_new=True)
            hooks = find_hooks(context.config, context.ui.environment)
    except CodexError as error:
        # The session begins all the same; these hooks do not run in it.
        context.transcript.notice(str(error), "error")


def _question(count: int) -> Choice[str]:
    hooks = "1 hook is" if count == 1 else f"{count} hooks are"
    text = f"\n\n{hooks} new or changed. A hook that you trust can run outside the sandbox."
    answers = [
        MenuOption("Review hooks", "review"),
        MenuOption("Trust all and continue", "trust", lasts=True),
        MenuOption("Continue without trusting (hooks will not run)", "skip"),
    ]
    return Choice([("bold", _NEW), ("", text)], answers, cancelled="skip")


async def _show_hooks(context: CommandContext, _: str) -> None:
    hooks = await _reread(context)
    if hooks.warnings:
        context.transcript.notice("\n".join(hooks.warnings))
    if not hooks.found:
        context.transcript.notice(_NONE.format(context.config.home / "hooks.json"))
        return
    hooks = await _look_through(context, hooks)
    session = context.conversation.session
    has_trusted = any(hook.state == "trusted" for hook in hooks.found)
    if has_trusted and session is not None and session.feature(HooksFeature) is None:
        context.transcript.notice(_LATER)


async def _look_through(
    context: CommandContext, hooks: Hooks, *, only_new: bool = False
) -> Hooks:
    """Let the user decide on each hook, until none is left or the user leaves.

    Returns all hooks with their states after that.
    """
    panels = context.ui.panels
    at = 0
    while True:
        if only_new:
            shown = hooks.to_review
        else:
            shown = hooks.found
        if not shown:
            return hooks
        rows = [_row(hook) for hook in shown]
        at = min(at, len(shown) - 1)
        picker = Picker("Hooks", rows, preview=_preview, selected=at)
        hook = await panels.show(picker)
        if hook is None:
            return hooks
        at = shown.index(hook)
        change = await panels.show(_decision(context, hook))
        if change is not None:
            await asyncio.to_thread(change)
            hooks = await _reread(context)


def _row(hook: Hook) -> MenuOption[Hook]:
    target = one_line(hook.target, _MOST_SHOWN)
    return MenuOption(_name(hook), hook, note=f"{hook.state}  {target}")


def _decision(context: CommandContext, hook: Hook) -> Choice[_Change]:
    home = context.config.home
    options: list[MenuOption[_Change]] = []
    if hook.needs_review:
        options.append(MenuOption("Trust it", partial(trust, home, [hook]), "t"))
    if not hook.is_managed:
        is_off = hook.state == "disabled"
        label = "Switch it on" if is_off else "Switch it off"
        switch = partial(enable, home, hook, enabled=is_off)
        options.append(MenuOption(label, switch, "o"))
    options.append(MenuOption("Back", None, "b"))
    whole = Pages(_name(hook))
    whole.add(Text(_described(hook, sys.maxsize)))
    more = context.ui.keymap.named(f"…{SHOWS_ALL}")
    return Choice(
        [("bold", _name(hook)), ("", f"\n{_described(hook, more=more)}")],
        options,
        cancelled=None,
        # Enter alone trusts nothing.
        default=len(options) - 1,
        show_all=lambda: context.overlays.open(whole),
    )


async def _reread(context: CommandContext) -> Hooks:
    """Read the configured hooks again.

    The open session and later ones use the hooks that are returned.
    """
    fresh = await asyncio.to_thread(context.ui.launch.reload)
    config = replace(
        context.config,
        layers=fresh.layers,
        project_trust=fresh.project_trust,
        settings=fresh.settings,
        features=fresh.features,
        plugins=fresh.plugins,
    )
    context.conversation.config = config
    hooks = find_hooks(config, context.ui.environment)
    session = context.conversation.session
    if session is not None:
        feature = session.feature(HooksFeature)
        if feature is not None:
            feature.hooks = hooks
    return hooks


def _name(hook: Hook) -> str:
    return one_line(f"{hook.event} {hook.matcher or ''}", _MOST_SHOWN)


async def _preview(hook: Hook) -> str:
    return _described(hook)


def _described(
    hook: Hook,
    most: int = _MOST_SHOWN,
    more: str = "…",
) -> str:
    """A description of a hook, in lines for a terminal, the most important ones first.

    `most`: characters of each value; `more` ends a longer one.
    """
    rows: dict[str, str] = {}
    if hook.kind == "command":
        rows["runs"] = hook.target
    else:
        rows["calls"] = hook.target
    if hook.arguments:
        rows["with"] = json.dumps(hook.arguments, ensure_ascii=False)
    rows["for"] = hook.matcher or "all"
    rows["from"] = str(hook.source)
    if hook.is_managed:
        rows["state"] = "set by the administrator"
    else:
        rows["state"] = _STATES[hook.state]
    limit = f"{hook.timeout_s:g} s"
    if hook.is_async:
        limit += ", in the background"
    rows["stops after"] = limit
    lines = [f"{name}: {cut(text, most, more)}" for name, text in rows.items() if text]
    return printable("\n".join(lines))


HOOKS = [SlashCommand("hooks", "review hooks, and switch them on or off", _show_hooks)]
