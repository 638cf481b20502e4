"""Commands that are prompts: ready-made ones, and those that the user keeps in `$CODEX_HOME/prompts`."""

from typing import TYPE_CHECKING

from codex_py.errors import CodexError
from codex_py.frontends.tui.commands.registry import Command
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.panel import Choice, Option
from codex_py.instructions import instruction_text

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

_UNCOMMITTED = (
    "all that is not committed: what is staged, what is not, and files that are not tracked"
)


async def _init(terminal: "Terminal", _: str) -> None:
    terminal.send(Submission(instruction_text("commands/init.md").strip()))


async def _review(terminal: "Terminal", argument: str) -> None:
    what = argument or await terminal.show(
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
        terminal.send(Submission(text))


async def _plan(terminal: "Terminal", argument: str) -> None:
    if not argument:
        raise CodexError("say what is to be planned: /plan AIM", code="usage")
    text = instruction_text("commands/plan.md").strip().replace("{aim}", argument)
    terminal.send(Submission(text))


PROMPTS = [
    Command("init", "have AGENTS.md written", _init),
    Command("review", "have a change reviewed", _review, argument="[WHAT]"),
    Command("plan", "have a plan made, and nothing changed", _plan, argument="AIM"),
]
