"""Commands for the session's settings, commands and MCP servers, and for the terminal's look."""

import asyncio
import time
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from codex_py.app.permissions import Permissions, allowed_permissions
from codex_py.app.session_tools import SessionTools
from codex_py.app.settings import model_choice, selectable_models
from codex_py.app.views.cost import CostReport
from codex_py.app.views.item_text import script_of
from codex_py.command_line.configuration import sandbox_summary
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
from codex_py.protocol.mcp import McpServers, McpServerStatus
from codex_py.protocol.settings import Mode
from codex_py.rollout.details import SessionUsage, UsageRow, read_session_usage
from codex_py.streams.terminal import aligned, printable
from codex_py.streams.times import duration

_OUTPUT_ROWS = 8
"""Rows of a running command's output."""
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
    conversation = context.conversation
    config = context.config
    panels = context.ui.panels
    words = argument.split()
    current = (await conversation.opened()).settings.model
    names = selectable_models(config, context.ui.environment)
    longest = min(max(map(len, names)), _LONGEST_MODEL)

    def row(name: str) -> MenuOption[str]:
        note = printable(model_choice(config, name).about)
        if name == current:
            note = f"(now) {note}"
        return MenuOption(f"{name:{longest}}", name, note=note)

    model = words[0] if words else None
    if model is None:
        at = names.index(current) if current in names else 0
        picker = Picker("Model", [row(name) for name in names], selected=at)
        model = await panels.show(picker)
        if model is None:
            return
    chosen = model_choice(config, model)
    effort = words[1] if len(words) > 1 else None
    warning = chosen.check_effort(effort) if effort else ""
    if not chosen.is_known and model not in names:
        near = nearest(model, names)
        meant = f" Did you mean {near}?" if near else ""
        question = f"Nothing is known here of the model {printable(model)}.{meant}"
        panel = yes_or_no(
            [("bold", question)], "Use it all the same", "No", by_letter=False
        )
        if not await panels.show(panel):
            return
    if effort is None and chosen.efforts:
        efforts = [
            MenuOption("the model's own", ""),
            *(MenuOption(name, name) for name in chosen.efforts),
        ]
        effort = await panels.show(Picker("Reasoning effort", efforts))
        if effort is None:
            return
    # Other settings may have changed meanwhile.
    choices = (await conversation.opened()).settings.choices
    choices = replace(choices, model=chosen.name, reasoning_effort=effort or None)
    if chosen.provider == config.model_provider:
        conversation.change(choices)
    elif conversation.is_working:
        message = (
            f"{model} is a model of another provider: choose it when the turn is over"
        )
        raise CodexError(message, code="turn_running")
    else:
        await conversation.move(chosen.provider, choices)
    if warning:
        context.transcript.notice(printable(warning), "warning")
    context.tell_change(f"Model: {printable(model)} {effort or ''}".rstrip())


async def _permissions(context: CommandContext, _: str) -> None:
    conversation = context.conversation
    # In Plan mode, these are the choices that apply again after it.
    now = (await conversation.opened()).settings.choices
    add_dirs = context.ui.launch.add_dirs
    allowed = allowed_permissions(now, context.config, add_dirs)
    rows: list[MenuOption[Permissions]] = []
    selected = None
    for place, each in enumerate(allowed):
        note = each.note
        if each.are_those_of(now):
            note = f"(now) {note}"
            if selected is None:
                selected = place
        rows.append(MenuOption(each.label, each, note=note))
    picked = await context.ui.panels.show(
        Picker("Permissions", rows, selected=selected or 0)
    )
    if picked is None:
        return
    # The key Up leads from the first row straight to this one, so ask again.
    if picked.sandbox == "danger-full-access" and not picked.are_those_of(now):
        question = yes_or_no(
            _FULL_ACCESS, "Yes, give it full access", "No", by_letter=False
        )
        if not await context.ui.panels.show(question):
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
    mode: Mode = "plan" if argument or conversation.mode == "default" else "default"
    conversation.switch_mode(mode)
    if conversation.is_working:
        context.ui.hints.show(f"{mode.capitalize()} mode, {NEXT_STEP}", for_s=3.0)
    if argument:
        conversation.send(Submission(argument))
    return asyncio.sleep(0)


async def _status(context: CommandContext, _: str) -> None:
    session = await context.conversation.opened()
    settings = session.settings
    usage = session.token_usage
    total = usage.total
    tokens = (
        f"{total.total_tokens:,} ({total.input_tokens:,} in, of which"
        f" {total.cached_input_tokens:,} cached; {total.output_tokens:,} out)"
    )
    rows = [
        ("model", f"{settings.model} {settings.reasoning_effort or ''}"),
        ("provider", settings.provider),
        ("directory", str(settings.cwd)),
        ("approval", str(settings.approval_policy)),
        ("mode", settings.mode),
        ("sandbox", sandbox_summary(settings.sandbox_policy, settings.cwd)),
        ("session", session.thread_id + (f" ({session.name})" if session.name else "")),
        ("tokens", tokens),
        (
            "context",
            f"{usage.context_left_percent}% left of {settings.context_window:,}",
        ),
    ]
    context.transcript.table(rows)


async def _cost(context: CommandContext, _: str) -> None:
    session = await context.conversation.opened()
    total = session.token_usage.total
    model = session.settings.model
    usage = SessionUsage((UsageRow(None, "", model, total),))
    if session.session_file is not None:
        usage = await asyncio.to_thread(read_session_usage, session.session_file)
    report = CostReport(usage, context.config, session.settings.provider)
    context.transcript.notice("\n".join(report.lines()))


async def _skills(context: CommandContext, _: str) -> None:
    found = context.ui.skills
    lines = [f"${skill.name}  {' '.join(skill.description.split())}" for skill in found]
    none = "There are no skills. Each is a folder with a SKILL.md."
    context.transcript.notice("\n".join(lines) or none)


async def _ps(context: CommandContext, _: str) -> None:
    now = time.monotonic()
    shell = context.ui.screen.theme.shell
    running = context.ui.status.commands
    rows = [
        MenuOption(
            printable(" ".join(script_of(command, shell).split())[:500]),
            item_id,
            note=duration(int(now - since)),
        )
        for item_id, (command, since) in running.items()
    ]

    async def last_of(item_id: str) -> str:
        last = context.transcript.running.output_of(item_id).splitlines()[
            -_OUTPUT_ROWS:
        ]
        return (
            "\n".join(f"    {printable(line)}" for line in last)
            or "    (no output yet)"
        )

    if not rows:
        context.transcript.notice("No command is running.")
    elif picked := await context.ui.panels.show(
        Picker("Commands", rows, preview=last_of)
    ):
        name = next(row.label for row in rows if row.value == picked)
        await context.overlays.show(_output_pages(context, picked, f"Output of {name}"))


def _output_pages(context: CommandContext, item_id: str, title: str) -> Pages:
    """Pages with a command's output, updated while it runs and kept after its end."""
    renderer = context.overlays.renderer
    printed = ""

    @lru_cache(maxsize=1)
    def rows(text: str, columns: int) -> Sequence[Fragments]:
        return renderer.fragments(
            output(text or "(no output yet)", head=WHOLE, tail=0), columns
        )

    def ended() -> str:
        said = reversed(context.conversation.monitor.said)
        item = next((item for item in said if item.id == item_id), None)
        if isinstance(item, CommandExecution):
            return item.aggregated_output
        return ""

    def live(columns: int, _most: int) -> Sequence[Fragments]:
        nonlocal printed
        printed = context.transcript.running.output_of(item_id) or ended() or printed
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
    on = context.ui.composer.toggle_vi()
    if on:
        context.ui.hints.show("vi keys are on")
    else:
        context.ui.hints.show("vi keys are off")


async def _mcp(context: CommandContext, argument: str) -> None:
    if argument not in {"", "verbose"}:
        raise CodexError("write /mcp or /mcp verbose", code="usage")
    session = await context.conversation.opened()
    lines: list[str] = []
    servers = session.feature(McpServers)
    if servers is not None:
        for status in servers.statuses():
            lines += _lines(status, verbose=argument == "verbose")
    lines += [
        f"{name}: off"
        for name, c in context.config.mcp_servers.items()
        if not c.enabled
    ]
    if not lines:
        lines = [
            "No MCP servers are configured. Leave, and try codex-py mcp add NAME -- COMMAND."
        ]
    context.transcript.notice("\n".join(lines))


def _lines(status: McpServerStatus, *, verbose: bool) -> Iterator[str]:
    software = f" ({status.software})" if status.software else ""
    yield f"{status.name}: {status.state}{software}"
    if status.error is not None:
        yield from (f"  {line}" for line in status.error.splitlines())
    if status.tools and not verbose:
        yield f"  {', '.join(tool.name for tool in status.tools)}"
    elif status.tools:
        told = [
            (tool.name, tool.description.strip().partition("\n")[0])
            for tool in status.tools
        ]
        yield from (f"  {line}".rstrip() for line in aligned(told))


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
