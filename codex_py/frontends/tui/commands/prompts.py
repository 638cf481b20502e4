"""Commands that are prompts: ready-made ones, and those that the user keeps in `$CODEX_HOME/prompts`."""

from codex_py.errors import CodexError
from codex_py.frontends.tui.commands.registry import Command, CommandContext
from codex_py.frontends.tui.compose.submission import Submission
from codex_py.frontends.tui.panel import Choice, Option
from codex_py.instructions import instruction_text

_UNCOMMITTED = (
    "all that is not committed: what is staged, what is not, and files that are not tracked"
)


async def _init(context: CommandContext, _: str) -> None:
    context.conversation.send(Submission(instruction_text("commands/init.md").strip()))


async def _review(context: CommandContext, argument: str) -> None:
    what = argument or await context.panels.show(
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


async def _plan(context: CommandContext, argument: str) -> None:
    if not argument:
        raise CodexError("say what is to be planned: /plan AIM", code="usage")
    text = instruction_text("commands/plan.md").strip().replace("{aim}", argument)
    context.conversation.send(Submission(text))


PROMPTS = [
    Command("init", "have AGENTS.md written", _init),
    Command("review", "have a change reviewed", _review, argument="[WHAT]"),
    Command("plan", "have a plan made, and nothing changed", _plan, argument="AIM"),
]
