"""Asks the user whether a call may run."""

import json
import shlex
from collections.abc import Sequence
from typing import Final, TypeAlias

from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.utils import get_cwidth
from rich.console import RenderableType
from rich.text import Text

from codex_py.app.views.item_text import script_of
from codex_py.frontends.tui.cells.command import elsewhere
from codex_py.frontends.tui.cells.layout import WHOLE, marked, one_line
from codex_py.frontends.tui.cells.patch import diff_cell
from codex_py.frontends.tui.first_frame import INDENT
from codex_py.frontends.tui.fitting import LOW, Fragments, both_ends, ends_of, fit, joined
from codex_py.frontends.tui.highlighting import highlighted
from codex_py.frontends.tui.menu import Option
from codex_py.frontends.tui.overlay import Overlays, Pages
from codex_py.frontends.tui.panel import SHOWS_ALL, Choice, Entry, field_of
from codex_py.frontends.tui.panels import Panels
from codex_py.frontends.tui.screen import Screen
from codex_py.frontends.tui.theme import Theme
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision
from codex_py.protocol.event_items import Change
from codex_py.protocol.json_fields import json_or
from codex_py.streams.plain_text import plain
from codex_py.streams.terminal import printable

_KINDS: Final = {
    "command": ("run the following command", "this command"),
    "patch": ("make the following edits", "these files"),
    "mcp": ("call the following tool", "this tool"),
    "network": ("let a command reach the following host", "this host"),
}
"""The question, and what a yes for the session is for."""
_LIKE_IT: Final = ", and what begins like it from now on"
_REASON_ROWS: Final = 4
_LEAST_REASON_ROWS: Final = 2
_LEAST_BODY_ROWS: Final = 3
_ROOMY: Final = 7
"""Rows. With fewer there are no empty ones."""
_BESIDE_LABEL: Final = len("> 1. ") + len(" (p)")
_MANY_ROWS: Final = 10_000
_MOST_PATCH: Final = 60
"""Rows. There is no screen for more of a question."""
_LONGEST_SHOWN: Final = 200_000
"""Characters of a command that are shown in full."""

_Answer: TypeAlias = ReviewDecision | None
"""None: no, and there is something to say to it."""


class TerminalApprover:
    """An `Approver` that puts the question in the composer's place. Enter alone says no."""

    def __init__(
        self, panels: Panels, transcript: Transcript, screen: Screen, overlays: Overlays
    ) -> None:
        self._panels = panels
        self._overlays = overlays
        self._transcript = transcript
        self._screen = screen

    async def review(self, request: ApprovalRequest) -> Review:
        shell, field = self._screen.theme.shell, field_of()
        while True:
            answer = await self._panels.ask(
                lambda: self._choice(request), about=_summary(request, shell)
            )
            if answer is not None:
                if answer not in {ReviewDecision.DENIED, ReviewDecision.ABORT}:
                    self._transcript.print(_approved_cell(request, answer, shell))
                return Review(answer)
            said = await self._panels.ask(
                lambda: Entry([("bold", "What should be done instead?")], field=field), about=""
            )
            if said is not None:
                return Review(ReviewDecision.DENIED, said or None)

    def _choice(self, request: ApprovalRequest) -> Choice[_Answer]:
        theme, options = self._screen.theme, _options(request, self._screen.width)
        return Choice(
            lambda room: self._question(request, room),
            options,
            cancelled=ReviewDecision.ABORT,
            default=len(options) - 1,
            show_all=lambda: self._overlays.open(_pages(request, theme)),
        )

    def _question(self, request: ApprovalRequest, room: int) -> Fragments:
        """Both ends of the call, and as much of the reason as fits beside it, in so many rows."""
        width = self._width
        is_low = self._screen.height < LOW or room < _ROOMY
        agent = f"{plain(request.agent)}: " if request.agent else ""
        asked = f"{agent}Would you like to {_KINDS[request.kind][0]}?"
        title: list[Fragments] = [[("bold", fit(asked, width))]]
        all_key = self._panels.named(SHOWS_ALL)
        what = _body(request, self._screen.theme, most=_MOST_PATCH, key=all_key)
        body = self._rows(what)
        said = request.justification or ""
        why = (request.reason or "").removesuffix(said).rstrip(": ")
        reason = [*self._told("Why asked: ", why), *self._told("The model says: ", said)]
        if is_low:
            above = title if room > 1 else []
            left = room - len(above)
            ends = self._both_ends(what, body, left - bool(reason and left > 1))
            return joined([*above, *ends, *_beginning_of(reason, left - len(ends), width)])
        left = room - len(title) - 1
        spare = max(_LEAST_REASON_ROWS, left - len(body) - 1)
        beside = left - min(len(body), _LEAST_BODY_ROWS) - 1
        told = _beginning_of(reason, min(_REASON_ROWS, spare, beside), width)
        parts = [title, self._both_ends(what, body, left - len(told) - bool(told)), told]
        return joined([row for part in parts if part for row in ([], *part)][1:])

    @property
    def _width(self) -> int:
        return self._screen.width - len(INDENT)

    def _told(self, who: str, text: str) -> list[Fragments]:
        # In the model's own words, a line of its own could pass for the command.
        line = " ".join(plain(text).split())
        return self._rows(Text.assemble((who, "quiet"), (line, "emphasis"))) if line else []

    def _both_ends(
        self, what: RenderableType, body: list[Fragments], room: int
    ) -> Sequence[Fragments]:
        if room < _LEAST_BODY_ROWS and room < len(body):
            # A row of the screen is no line of the text.
            lines = (
                what.plain.split("\n")
                if isinstance(what, Text)
                else map(fragment_list_to_text, body)
            )
            line = " ↵ ".join(text for line in lines if (text := line.strip()))
            return [[("", both_ends(line, self._width))]]
        return ends_of(body, room, self._panels.named(SHOWS_ALL))

    def _rows(self, cell: RenderableType) -> list[Fragments]:
        return self._transcript.renderer.fragments(cell, self._width)[:_MANY_ROWS]


def _beginning_of(rows: list[Fragments], room: int, width: int) -> list[Fragments]:
    if len(rows) <= room:
        return rows
    if room < 1:
        return []
    last = fit(fragment_list_to_text(rows[room - 1]), width - 2).rstrip(" …")
    return [*rows[: room - 1], [("", f"{last} …")]]


def _pages(request: ApprovalRequest, theme: Theme) -> Pages:
    pages = Pages(f"What is to be decided: {_KINDS[request.kind][0]}")
    pages.add(_body(request, theme))
    return pages


def _body(
    request: ApprovalRequest, theme: Theme, *, most: int = WHOLE, key: str = ""
) -> RenderableType:
    match request.kind:
        case "patch":
            changes = [Change(path=str(path), kind="update") for path in request.paths]
            return diff_cell(request.summary, changes=changes, most=most, key=key)
        case "mcp":
            return Text(plain(_pretty(request.summary)[:_LONGEST_SHOWN]))
        case "network":
            return Text(plain(request.summary))
        case "command":
            script = plain(script_of(request.summary, theme.shell)[:_LONGEST_SHOWN])
            # First, because the end of a long script may not be on the screen.
            where = elsewhere(str(request.cwd), theme, before="In the folder ")
            return Text.assemble(
                (f"{where}\n" if where else "", ""), ("$ ", "quiet"), highlighted(script, "bash")
            )


def _pretty(summary: str) -> str:
    """`server/tool {"a": 1}` with the arguments one below the other."""
    name, _, arguments = summary.partition(" ")
    if (value := json_or(arguments, ...)) is ...:
        return summary
    return f"{name} {json.dumps(value, indent=2, ensure_ascii=False)}"


def _summary(request: ApprovalRequest, own_shell: str) -> str:
    is_command = request.kind == "command"
    what = script_of(request.summary, own_shell) if is_command else request.reason
    agent = f"{request.agent}: " if request.agent else ""
    return f"{agent}Approve: {what}" if what else f"{agent}Approve edits"


def _approved_cell(
    request: ApprovalRequest, answer: ReviewDecision, own_shell: str
) -> RenderableType:
    for_good = " for this session" if answer is ReviewDecision.APPROVED_FOR_SESSION else ""
    if answer is ReviewDecision.APPROVED_WITH_RULE:
        for_good = " from now on" if request.kind == "network" else _LIKE_IT
    match request.kind:
        case "command":
            what = highlighted(one_line(script_of(request.summary, own_shell), 100), "bash")
        case "patch":
            what = Text("the edits")
        case "mcp":
            what = Text(f"the call of {one_line(request.summary.partition(' ')[0], 100)}")
        case "network":
            what = Text(plain(request.summary))
    row = Text.assemble(("You approved ", "action"), what, (for_good, "quiet"))
    return marked(row, sign="✔", style="ok")


def _options(request: ApprovalRequest, columns: int) -> list[Option[_Answer]]:
    session = f"Yes, and do not ask again for {_KINDS[request.kind][1]} in this session"
    options = [Option[_Answer]("Yes, proceed", ReviewDecision.APPROVED, "y")]
    if request.can_last:
        answer = ReviewDecision.APPROVED_FOR_SESSION
        options.append(Option[_Answer](session, answer, "a", lasts=True))
    if request.prefix is not None:
        words = printable(shlex.join(request.prefix))
        label = f"Yes, and do not ask again for commands that start with `{words}`"
        if request.kind == "network":
            label = f"Yes, and always allow `{words}`"
        short = f"Yes, always: `{words}`"
        # Nobody should agree to words that are cut.
        if get_cwidth(short) <= columns - _BESIDE_LABEL:
            answer = ReviewDecision.APPROVED_WITH_RULE
            options.append(Option[_Answer](label, answer, "p", short=short, lasts=True))
    options += [
        Option[_Answer]("No, and say what to do instead", None, "f"),
        Option[_Answer]("No, and stop here", ReviewDecision.ABORT, "n"),
    ]
    return options
