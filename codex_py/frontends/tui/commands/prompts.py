"""Commands that are prompts: ready-made ones, and those of files."""

from collections.abc import Container

from codex_py.config.custom_prompts import CustomPrompt
from codex_py.frontends.tui.commands.registry import Command, CommandContext
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.panel import Choice, Option
from codex_py.instructions import instruction_text

_UNCOMMITTED = (
    "all that is not committed: what is staged, what is not, and files that are not tracked"
)


async def _init(context: CommandContext, _: str) -> None:
    context.conversation.send(Submission(instruction_text("commands/init.md").strip()))


async def _review(context: CommandContext, argument: str) -> None:
    what = argument or await context.surface.panels.show(
        Choice(
            [("bold", "What is to be reviewed?")],
            [
                Option("What is not committed", _UNCOMMITTED, "u"),
                Option(
                    "This branch",
                    "all that this branch has and the main branch has not, from their merge base on",
                    "b",
                ),
                Option("The last commit", "the last commit", "c"),
            ],
            cancelled="",
        )
    )
    if what:
        text = instruction_text("commands/review.md").strip().replace("{what}", what)
        context.conversation.send(Submission(text))


PROMPTS = [
    Command("init", "have AGENTS.md written", _init),
    Command("review", "have a change reviewed", _review, argument="[WHAT]"),
]


def custom_command(prompt: CustomPrompt, taken: Container[str]) -> Command:
    """The command that sends a prompt. `taken`: names that mean something else already."""
    short = prompt.short_name
    told = set[str]()

    async def send(context: CommandContext, argument: str) -> None:
        text = prompt.filled(argument)
        for lack in prompt.without_effect:
            if lack not in told:
                told.add(lack)
                context.transcript.notice(f"/{prompt.name}: without effect here: {lack}.")
        context.conversation.send(Submission(text, model=prompt.model))

    return Command(
        prompt.name,
        prompt.description or "a prompt of yours",
        send,
        argument=prompt.argument_hint,
        aliases=() if short is None or short in taken else (short,),
    )
