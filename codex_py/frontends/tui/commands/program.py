"""Commands that send prompts, control the program, or take text out of it."""

import base64
from collections.abc import Container

from rich.text import Text

from codex_py.app.features.goals import Goals
from codex_py.config.custom_prompts import CustomPrompt
from codex_py.errors import CodexError
from codex_py.frontends.tui.commands.registry import CommandContext, SlashCommand
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.keys import SHORTCUTS
from codex_py.frontends.tui.overlay import Pages, table
from codex_py.frontends.tui.reading import conversation_pages, listening
from codex_py.instructions import instruction_text
from codex_py.protocol import event_items
from codex_py.protocol.plans import without_tags
from codex_py.streams.plain_text import plain

_MAX_CLIPBOARD = 100_000
"""Bytes; terminals accept no more than this, and some less."""


async def _copy(context: CommandContext, argument: str) -> None:
    said = context.conversation.monitor.said
    answers = [
        without_tags(item.text)
        for item in said
        if isinstance(item, event_items.AgentMessage)
    ]
    if not answers:
        raise CodexError("there is no answer to copy yet", code="nothing_to_copy")
    numbers = [str(n) for n in range(1, len(answers) + 1)]
    number = argument or "1"
    if number not in numbers:
        message = f"write /copy N, from 1 (the last) to {len(answers)}"
        raise CodexError(message, code="usage")
    answer = answers[-int(number)]
    data = answer.encode(errors="replace")
    if len(data) > _MAX_CLIPBOARD:
        message = "the answer is too long for the clipboard; /transcript shows it"
        raise CodexError(message, code="too_long")
    # OSC 52 reaches the clipboard of the machine that the user sits at, over ssh and tmux too.
    context.ui.screen.send(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
    context.ui.hints.show("the answer was handed to the terminal's clipboard")


async def _help(context: CommandContext, _: str) -> None:
    commands = context.ui.load_session_half().commands
    rows = [(f"/{each.name} {each.argument}".rstrip(), each.help) for each in commands]
    await context.overlays.show(table("Commands", rows))


async def _transcript(context: CommandContext, _: str) -> None:
    monitor = context.conversation.monitor
    if not monitor.said:
        raise CodexError("nothing has been said yet", code="nothing_said")
    pages, reader = conversation_pages(
        "The conversation",
        monitor.said,
        context.transcript,
        context.overlays.renderer,
        show_reasoning=not context.config.settings.hide_agent_reasoning,
    )
    with listening(monitor.readers, reader):
        await context.overlays.show(pages)


async def _keymap(context: CommandContext, _: str) -> None:
    keymap = context.ui.keymap
    rows: list[tuple[str, str]] = []
    for key, does in SHORTCUTS:
        if keymap.free(key):
            rows.append((keymap.named(key, all=True), does))
    await context.overlays.show(table("Keys", rows))


async def _pasted(context: CommandContext, _: str) -> None:
    composer = context.ui.composer
    pages = Pages("Pasted")
    for text in composer.attachments.pasted(composer.buffer.text):
        pages.add(Text(plain(text)))
    if not pages.sections:
        raise CodexError("no paste in the prompt is folded", code="nothing_pasted")
    await context.overlays.show(pages)


async def _goal(context: CommandContext, argument: str) -> None:
    goals = (await context.conversation.opened()).feature(Goals)
    if goals is None:
        raise CodexError("goals are off; `--enable goals` turns them on", code="goal")
    if argument not in {"", "clear", "pause"}:
        goals.set(argument)
        context.conversation.send(Submission(argument))
        return
    if argument == "clear":
        goals.clear()
    elif argument == "pause" and goals.goal is not None:
        goals.set(status="paused")
    goal = goals.goal
    if goal is None:
        context.transcript.notice("There is no goal.")
    else:
        context.transcript.notice(f"The goal is {goal.status}: {goal.objective}")


async def _quit(context: CommandContext, _: str) -> None:
    context.ui.leaving.leave()


PROGRAM = [
    SlashCommand(
        "copy", "copy the last answer, or the Nth from the end", _copy, argument="[N]"
    ),
    SlashCommand(
        "transcript",
        "look at the whole conversation ({global.open_transcript})",
        _transcript,
    ),
    SlashCommand(
        "goal",
        "work until it is reached",
        _goal,
        argument="[GOAL|pause|clear]",
        feature="goals",
    ),
    SlashCommand("help", "list the commands", _help),
    SlashCommand("keymap", "list the keys ({composer.toggle_shortcuts})", _keymap),
    SlashCommand("pasted", "look at what was pasted into the prompt", _pasted),
    SlashCommand("quit", "leave", _quit, aliases=("exit",)),
]


async def _init(context: CommandContext, _: str) -> None:
    prompt = instruction_text("commands/init.md").strip()
    context.conversation.send(Submission(prompt, shown="/init"))


PROMPTS = [SlashCommand("init", "have AGENTS.md written", _init)]


def custom_command(prompt: CustomPrompt, taken: Container[str]) -> SlashCommand:
    """The command that sends a custom prompt. `taken`: names that already mean something else."""
    aliases: tuple[str, ...] = ()
    short = prompt.short_name
    if short is not None and short not in taken:
        aliases = (short,)
    told = set[str]()

    async def send(context: CommandContext, argument: str) -> None:
        text = prompt.filled(argument)
        for lack in prompt.without_effect:
            if lack not in told:
                told.add(lack)
                context.transcript.notice(
                    f"/{prompt.name}: without effect here: {lack}."
                )
        context.conversation.send(Submission(text, model=prompt.model))

    return SlashCommand(
        prompt.name,
        prompt.description or "a prompt of yours",
        send,
        argument=prompt.argument_hint,
        aliases=aliases,
    )
