"""Asking the user whether a call may run."""

from typing import TYPE_CHECKING

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.panel import Choice, Option
from codex_py.frontends.tui.render import Fragments
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

_QUESTIONS = {
    "command": "Would you like to run the following command?",
    "patch": "Would you like to make the following edits?",
    "mcp": "Would you like to call the following tool?",
}


class TerminalApprover:
    """An `Approver` that puts the question in the composer's place. Enter alone says no."""

    def __init__(self, terminal: "Terminal") -> None:
        self._terminal = terminal

    async def review(self, request: ApprovalRequest) -> Review:
        decision = await self._terminal.show(
            Choice(
                _question(request),
                _options(request),
                cancelled=ReviewDecision.ABORT,
                default=len(_options(request)) - 1,
            )
        )
        return Review(decision)


def _question(request: ApprovalRequest) -> Fragments:
    text: Fragments = [("bold", _QUESTIONS[request.kind])]
    if request.reason:
        text.append(("", f"\n\nReason: {printable(request.reason)}"))
    text.append(("", f"\n\n{printable(request.summary)}"))
    return text


def _options(request: ApprovalRequest) -> list[Option[ReviewDecision]]:
    options = [
        Option("Yes, proceed", ReviewDecision.APPROVED, "y"),
        Option("Yes, and do not ask again for this", ReviewDecision.APPROVED_FOR_SESSION, "a"),
    ]
    if request.prefix is not None:
        words = printable(" ".join(request.prefix))
        label = f"Yes, and do not ask again for commands that start with `{words}`"
        options.append(Option(label, ReviewDecision.APPROVED_WITH_RULE, "p"))
    options.append(Option("No, and say what to do instead", ReviewDecision.ABORT, "n"))
    return options
