"""Commands for the session's settings, commands and MCP servers, and for the terminal's look."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import lru_cache

from codex_py.app.permissions import Permissions, allowed_permissions
from codex_py.app.plan_models import plan_models
from codex_py.app.session_tools import SessionTools
from codex_py.app.settings import (
    ModelChoice,
    PlanModels,
    model_choice,
    selectable_models,
)
from codex_py.app.views.command_script import script_of
from codex_py.app.views.cost import CostReport
from codex_py.command_line.session_report import (
    server_lines,
    skill_lines,
    status_rows,
)
from codex_py.config.edit import set_in_config
from codex_py.errors import CodexError, nearest
from codex_py.frontends.tui.cells.layout import WHOLE, output
from codex_py.frontends.tui.commands.registry import (
    NEXT_STEP,
    CommandContext,
    SlashCommand,
)
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.overlay import Pages
from codex_py.frontends.tui.panel import yes_or_no
from codex_py.frontends.tui.picker import Picker
from codex_py.frontends.tui.theme import terminal_theme
from codex_py.protocol.event_items import CommandExecution
from codex_py.protocol.settings import Mode
from codex_py.rollout.details import SessionUsage, UsageRow, read_session_usage
from codex_py.streams.terminal import printable
from codex_py.streams.times import duration

_OUTPUT_ROWS = 8
"""Rows of a running command's output."""
_LONGEST_COMMAND = 500
"""Characters of a running command in the list."""
_LONGEST_MODEL = 24
"""Columns of a model's name, after which the notes begin."""
_THEMES = ("auto", "dark", "light")
_FULL_ACCESS: Fragments = [
    ("bold", "Let the agent do all that you may, without asking?"),
    (
        "",
        "\n\nIts commands are not confined any more: they can change any of your files",
    ),
    ("", " and use the network."),
]


async def _model(context: CommandContext, argument: str) -> None:
    """Change the model and its effort. The user is asked for those that `argument` lacks."""
    plan = await plan_models(context.config, context.ui.environment)
    names = selectable_models(context.config, context.ui.environment, plan)
    model, effort, *_ = [*argument.split(), "", ""]
    if not model:
        picked = await _picked_model(context, names, plan)
        if picked is None:
            return
        model = picked
    chosen = model_choice(context.config, model, plan)
    warning = ""
    if effort:
        warning = chosen.check_effort(effort)
    is_unknown = not chosen.is_known and model not in names
    if is_unknown and not await _is_meant(context, model, names):
        return
    if chosen.efforts and not effort:
        picked = await _picked_effort(context, chosen)
        if picked is None:
            return
        effort = picked
    await _use_model(context, model, chosen, effort)
    if warning:
        context.transcript.notice(printable(warning), "warning")
    context.tell_change(f"Model: {printable(model)} {effort}".rstrip())


async def _picked_model(
    context: CommandContext, names: Sequence[str], plan: PlanModels
) -> str | None:
    """Let the user pick one of the models; None if they cancel."""
    session = await context.conversation.opened()
    current = session.settings.model
    longest = min(max(map(len, names)), _LONGEST_MODEL)
    rows: list[MenuOption[str]] = []
    selected = 0
    for n, name in enumerate(names):
        note = printable(model_choice(context.config, name, plan).about)
        if name == current:
            note = f"(now) {note}"
            selected = n
        rows.append(MenuOption(f"{name:{longest}}", name, note=note))
    return await context.ui.panels.show(Picker("Model", rows, selected=selected))


async def _is_meant(
    context: CommandContext,
    model: str,
    names: Sequence[str],
) -> bool:
    """Ask whether to use a model of which nothing is known."""
    question = f"Nothing is known here of the model {printable(model)}."
    near = nearest(model, names)
    if near:
        question += f" Did you mean {near}?"
    panel = yes_or_no(
        [("bold", question)], "Use it all the same", "No", by_letter=False
    )
    return await context.ui.panels.show(panel)


async def _picked_effort(context: CommandContext, model: ModelChoice) -> str | None:
    """Let the user pick an effort; empty for the model's own, None if they cancel."""
    rows = [MenuOption(name, name) for name in model.efforts]
    rows.insert(0, MenuOption("the model's own", ""))
    return await context.ui.panels.show(Picker("Reasoning effort", rows))


async def _use_model(
    context: CommandContext, model: str, chosen: ModelChoice, effort: str
) -> None:
    """Change the model, which may need another connection.

    Raises:
        CodexError: the model is one of another provider, and a turn is running.
    """
    conversation = context.conversation
    # Other settings may have changed while the user was asked.
    session = await conversation.opened()
    choices = replace(
        session.settings.choices, model=chosen.name, reasoning_effort=effort or None
    )
    if chosen.provider == context.config.model_provider:
        conversation.change(choices)
    elif conversation.is_working:
        message = (
            f"{model} is a model of another provider: choose it when the turn is over"
        )
        raise CodexError(message, code="turn_running")
    else:
        await conversation.move(chosen.provider, choices)


async def _permissions(context: CommandContext, _: str) -> None:
    conversation = context.conversation
    panels = context.ui.panels
    # In Plan mode, these are the choices that apply again after it.
    now = (await conversation.opened()).settings.choices
    add_dirs = context.ui.launch.add_dirs
    allowed = allowed_permissions(now, context.config, add_dirs)
    rows: list[MenuOption[Permissions]] = []
    current: list[int] = []
    for n, each in enumerate(allowed):
        note = each.note
        if each.are_those_of(now):
            note = f"(now) {note}"
            current.append(n)
        rows.append(MenuOption(each.label, each, note=note))
    selected = current[0] if current else 0
    picked = await panels.show(Picker("Permissions", rows, selected=selected))
    if picked is None:
        return
    # The key Up leads from the first row straight to this one, so ask again.
    if picked.sandbox == "danger-full-access" and not picked.are_those_of(now):
        question = yes_or_no(
            _FULL_ACCESS, "Yes, give it full access", "No", by_letter=False
        )
        if not await panels.show(question):
            return
    # Read them again: the questions may have taken a while.
    now = (await conversation.opened()).settings.choices
    conversation.change(picked.given_to(now, context.config, add_dirs))
    context.tell_change(f"Permissions: {picked.label}")


def _plan(context: CommandContext, argument: str) -> Awaitable[None]:
    """Switch the mode.

    This is not a coroutine: a prompt that is typed right after the command is for the new mode.
    """
    conversation = context.conversation
    if context.ui.outbox.waiting and not argument:
        context.ui.hints.show("/plan has to wait for the prompt that waits")
        return asyncio.sleep(0)
    mode: Mode = "default"
    if argument or conversation.mode == "default":
        mode = "plan"
    conversation.switch_mode(mode)
    if conversation.is_working:
        context.ui.hints.show(f"{mode.capitalize()} mode, {NEXT_STEP}", for_s=3.0)
    if argument:
        conversation.send(Submission(argument))
    return asyncio.sleep(0)


async def _status(context: CommandContext, _: str) -> None:
    session = await context.conversation.opened()
    rows = status_rows(session)
    context.transcript.table(rows)


async def _cost(context: CommandContext, _: str) -> None:
    session = await context.conversation.opened()
    total = session.token_usage.total
    model = session.settings.model
    has_plan = session.token_usage.plan is not None
    usage = SessionUsage((UsageRow(None, "", model, total, has_plan),))
    if session.session_file is not None:
        usage = await asyncio.to_thread(read_session_usage, session.session_file)
    report = CostReport(usage, context.config, session.settings.provider)
    context.transcript.notice("\n".join(report.lines()))


async def _skills(context: CommandContext, _: str) -> None:
    lines = skill_lines(context.ui.skills)
    context.transcript.notice("\n".join(lines))


async def _ps(context: CommandContext, _: str) -> None:
    now = time.monotonic()
    shell = context.ui.screen.theme.shell
    labels: dict[str, str] = {}
    rows: list[MenuOption[str]] = []
    for item_id, (command, since) in context.ui.status.commands.items():
        script = " ".join(script_of(command, shell).split())
        labels[item_id] = printable(script[:_LONGEST_COMMAND])
        age = duration(int(now - since))
        rows.append(MenuOption(labels[item_id], item_id, note=age))
    if not rows:
        context.transcript.notice("No command is running.")
        return

    async def last_lines(item_id: str) -> str:
        lines = context.transcript.running.output_of(item_id).splitlines()
        if not lines:
            return "    (no output yet)"
        return "\n".join(f"    {printable(line)}" for line in lines[-_OUTPUT_ROWS:])

    picker = Picker("Commands", rows, preview=last_lines)
    picked = await context.ui.panels.show(picker)
    if picked is not None:
        title = f"Output of {labels[picked]}"
        await context.overlays.show(_output_pages(context, picked, title))


def _output_pages(
    context: CommandContext,
    item_id: str,
    title: str,
) -> Pages:
    """Pages with a command's output, updated while it runs and kept after its end."""
    renderer = context.overlays.renderer
    printed = ""

    @lru_cache(maxsize=1)
    def rows(text: str, columns: int) -> Sequence[Fragments]:
        cell = output(text or "(no output yet)", head=WHOLE, tail=0)
        return renderer.fragments(cell, columns)

    def ended_output() -> str:
        for item in reversed(context.conversation.monitor.said):
            if item.id == item_id and isinstance(item, CommandExecution):
                return item.aggregated_output
        return ""

    def live(columns: int, _most: int) -> Sequence[Fragments]:
        nonlocal printed
        running_output = context.transcript.running.output_of(item_id)
        # Between its end and its last event, a command has neither.
        printed = running_output or ended_output() or printed
        return rows(printed, columns)

    return Pages(title, live=live, at_end=True)


def _tools(context: CommandContext) -> SessionTools | None:
    session = context.conversation.session
    if session is None:
        return None
    return session.feature(SessionTools)


async def _background(context: CommandContext, _: str) -> None:
    tools = _tools(context)
    if tools is None or not tools.let_commands_go():
        context.ui.hints.show("the agent waits for no command")


async def _stop(context: CommandContext, _: str) -> None:
    tools = _tools(context)
    count = context.shell.stop_all()
    if tools is not None:
        count += tools.stop_commands()
    match count:
        case 0:
            context.transcript.notice("No command is running.")
        case 1:
            context.transcript.notice("Stopped 1 command.")
        case _:
            context.transcript.notice(f"Stopped {count} commands.")


async def _theme(context: CommandContext, argument: str) -> None:
    name = argument or await context.ui.panels.show(
        Picker("Background", [MenuOption(each, each) for each in _THEMES])
    )
    if name is None:
        return
    if name not in _THEMES:
        raise CodexError(f"write /theme {' or /theme '.join(_THEMES)}", code="usage")
    await asyncio.to_thread(set_in_config, context.config.home, ("tui", "theme"), name)
    screen = context.ui.screen
    theme = terminal_theme(
        context.ui.safe_environment,
        name,
        cwd=screen.theme.cwd,
        own=screen.theme.own,
    )
    screen.use_theme(theme)
    if theme.background == "unknown":
        background = "your"
    else:
        background = f"a {theme.background}"
    context.transcript.notice(f"Colours for {background} background.")


async def _vim(context: CommandContext, _: str) -> None:
    is_on = context.ui.composer.toggle_vi()
    if is_on:
        context.ui.hints.show("vi keys are on")
    else:
        context.ui.hints.show("vi keys are off")


async def _mcp(context: CommandContext, argument: str) -> None:
    if argument not in {"", "verbose"}:
        raise CodexError("write /mcp or /mcp verbose", code="usage")
    session = await context.conversation.opened()
    verbose = argument == "verbose"
    lines = server_lines(session, context.config, verbose=verbose)
    if not lines:
        lines = [
            "No MCP servers are configured. Leave, and try codex-py mcp add NAME -- COMMAND."
        ]
    context.transcript.notice("\n".join(lines))


SETTINGS = [
    SlashCommand("model", "choose the model and its effort", _model),
    SlashCommand("permissions", "choose what may be done unasked", _permissions),
    SlashCommand(
        "plan",
        "switch to Plan mode, in which nothing is changed, or back",
        _plan,
        argument="[PROMPT]",
    ),
    SlashCommand("status", "show the settings and what was used", _status),
    SlashCommand("cost", "show what the tokens went to, and what they cost", _cost),
    SlashCommand("skills", "list the skills that a prompt can name", _skills),
    SlashCommand("ps", "look at the commands that run", _ps),
    SlashCommand(
        "background", "put the command that runs into the background", _background
    ),
    SlashCommand("stop", "kill the commands that run", _stop),
    SlashCommand(
        "theme",
        "choose colours for your background",
        _theme,
        argument="[auto|dark|light]",
    ),
    SlashCommand("vim", "turn vi keys on or off", _vim),
    SlashCommand(
        "mcp", "show the MCP servers and their tools", _mcp, argument="[verbose]"
    ),
]
