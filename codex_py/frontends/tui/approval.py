"""Asking the user whether a call may run."""

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.cells.command import script_of
from codex_py.frontends.tui.cells.patch import diff_cell
from codex_py.frontends.tui.fragments import Fragments
from codex_py.frontends.tui.panel import Choice, Entry, Option
from codex_py.frontends.tui.plain import plain
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision
from codex_py.protocol.events import Change

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

_QUESTIONS: Final = {
    "command": "Would you like to run the following command?",
    "patch": "Would you like to make the following edits?",
    "mcp": "Would you like to call the following tool?",
}
_REASON_ROWS: Final = 4
_MANY_ROWS: Final = 10_000
_LONGEST_SHOWN: Final = 200_000
"""Characters of a command that are shown in full."""

_Answer: TypeAlias = ReviewDecision | None
"""None: no, and there is something to say to it."""


class TerminalApprover:
    """An `Approver` that puts the question in the composer's place. Enter alone says no."""

    def __init__(self, terminal: "Terminal") -> None:
        self._terminal = terminal

    async def review(self, request: ApprovalRequest) -> Review:
        terminal = self._terminal
        while True:
            answer = await terminal.ask(lambda: self._choice(request), about=_summary(request))
            if answer is not None:
                if answer not in {ReviewDecision.DENIED, ReviewDecision.ABORT}:
                    terminal.transcript.notice(_said_yes(request, answer))
                return Review(answer)
            said = await terminal.ask(
                lambda: Entry([("bold", "What should be done instead?")]), about=""
            )
            if said is not None:
                return Review(ReviewDecision.DENIED, said or None)

    def _choice(self, request: ApprovalRequest) -> Choice[_Answer]:
        options = _options(request)
        return Choice(
            lambda: self._question(request, len(options)),
            options,
            cancelled=ReviewDecision.ABORT,
            default=len(options) - 1,
            typed_at=self._terminal.typed_at,
            look=lambda: self._terminal.transcript.print(
                _body(request, self._terminal, fold=False)
            ),
        )

    def _question(self, request: ApprovalRequest, options: int) -> Fragments:
        """As much as fits, with the answers, on the screen."""
        terminal = self._terminal
        text: Fragments = [("bold", _QUESTIONS[request.kind])]
        width = terminal.screen.width
        taken = 5 + 2 * options
        if request.reason:
            reason = Text(f"Reason: {plain(request.reason)}")
            rows = _rows(reason, terminal, width)[:_REASON_ROWS]
            text += [("", "\n"), *(part for row in rows for part in (("", "\n"), *row))]
            taken += len(rows) + 1
        room = max(3, terminal.screen.height - taken - 4)
        rows = _rows(_body(request, terminal, fold=True), terminal, width)
        text.append(("", "\n"))
        for row in rows if len(rows) <= room else rows[: room - 1]:
            text += [("", "\n"), *row]
        if len(rows) > room:
            more = terminal.theme.glyph("more")
            text.append(("class:quiet", f"\n{more} +{len(rows) - room + 1} lines (v shows all)"))
        return text


def _rows(cell: RenderableType, terminal: "Terminal", width: int) -> list[Fragments]:
    return terminal.renderer.fragments(cell, width)[:_MANY_ROWS]


def _body(request: ApprovalRequest, terminal: "Terminal", *, fold: bool) -> RenderableType:
    match request.kind:
        case "patch":
            changes = [Change(path=str(path), kind="update") for path in request.paths]
            return diff_cell(request.summary, terminal.theme, changes=changes, fold=fold)
        case "mcp":
            return Text(plain(_pretty(request.summary)[:_LONGEST_SHOWN]))
        case "command":
            script = plain(script_of(request.summary)[:_LONGEST_SHOWN])
            return Text.assemble(("$ ", terminal.theme.style("quiet")), script)


def _pretty(summary: str) -> str:
    """`server/tool {"a": 1}` with the arguments one below the other."""
    name, space, arguments = summary.partition(" ")
    try:
        value: Any = json.loads(arguments)
    except ValueError:
        return name + space + arguments
    return f"{name} {json.dumps(value, indent=2, ensure_ascii=False)}"


def _summary(request: ApprovalRequest) -> str:
    what = script_of(request.summary) if request.kind == "command" else request.reason or ""
    return f"Approve: {what}" if what else "Approve edits"


def _said_yes(request: ApprovalRequest, answer: ReviewDecision) -> str:
    for_good = " for this session" if answer is ReviewDecision.APPROVED_FOR_SESSION else ""
    if answer is ReviewDecision.APPROVED_WITH_RULE:
        for_good = ", and what begins like it from now on"
    match request.kind:
        case "command":
            line = " ".join(script_of(request.summary)[:200].split())
            return f"You approved `{line[:100]}`{for_good}"
        case "patch":
            return f"You approved the edits{for_good}"
        case "mcp":
            return f"You approved the call of {request.summary.partition(' ')[0]}{for_good}"


def _options(request: ApprovalRequest) -> list[Option[_Answer]]:
    session = {
        "command": "Yes, and do not ask again for this command in this session",
        "patch": "Yes, and do not ask again for these files in this session",
        "mcp": "Yes, and do not ask again for this tool in this session",
    }[request.kind]
    options = [
        Option[_Answer]("Yes, proceed", ReviewDecision.APPROVED, "y"),
        Option[_Answer](session, ReviewDecision.APPROVED_FOR_SESSION, "a"),
    ]
    if request.prefix is not None:
        words = printable(" ".join(request.prefix))[:100]
        label = f"Yes, and do not ask again for commands that start with `{words}`"
        options.append(Option[_Answer](label, ReviewDecision.APPROVED_WITH_RULE, "p"))
    options += [
        Option[_Answer]("No, and say what to do instead", None, "f"),
        Option[_Answer]("No, and stop here", ReviewDecision.ABORT, "n"),
    ]
    return options
