"""Asks the user whether a call may run."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.utils import get_cwidth
from rich.console import RenderableType
from rich.text import Text

from codex_py.app.views.item_text import script_of
from codex_py.frontends.tui.cells.command import elsewhere
from codex_py.frontends.tui.cells.layout import WHOLE, marked, one_line
from codex_py.frontends.tui.cells.patch import diff_cell
from codex_py.frontends.tui.characters import escaped
from codex_py.frontends.tui.first_frame import INDENT
from codex_py.frontends.tui.fitting import (
    Fragments,
    beginning_of,
    both_ends,
    ends_of,
    fit,
    joined,
    wrapped,
)
from codex_py.frontends.tui.highlighting import highlighted
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.overlay import Overlays, Pages
from codex_py.frontends.tui.panel import ROOMY, SHOWS_ALL, Choice, TextField, field_of
from codex_py.frontends.tui.panels import Panels
from codex_py.frontends.tui.screen import Screen
from codex_py.frontends.tui.theme import Theme
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol.approval import ApprovalRequest, Review, ReviewDecision
from codex_py.protocol.event_items import Change
from codex_py.protocol.json_fields import json_or
from codex_py.streams.plain_text import cut, plain
from codex_py.streams.terminal import printable

_KINDS: Final = {
    "command": ("run the following command", "this command"),
    "patch": ("make the following edits", "these files"),
    "mcp": ("call the following tool", "this tool"),
    "network": ("let a command reach the following host", "this host"),
}
"""The question, and the subject of a yes for the session, by kind of request."""
_HINT: Final = "{list.accept} or a key answers, Esc: no; text goes to your prompt"
_LIKE_IT: Final = ", and what begins like it from now on"
_REASON_ROWS: Final = 4
_LEAST_REASON_ROWS: Final = 2
_LEAST_BODY_ROWS: Final = 4
"""In fewer rows, the lines of a long call are joined and cut in the middle."""
_BESIDE_LABEL: Final = len("> 1. ") + len(" (p)")
_MANY_ROWS: Final = 10_000
_MOST_PATCH: Final = 60
"""Rows. No screen shows more of a question."""
_LONGEST_SHOWN: Final = 200_000
"""Characters of a command or a tool call that are shown."""

_Answer: TypeAlias = ReviewDecision | None
"""None: the user says no and wants to write what to do instead."""


class TerminalApprover:
    """An `Approver` that asks in the composer's place. Enter alone says no."""

    def __init__(
        self, panels: Panels, transcript: Transcript, screen: Screen, overlays: Overlays
    ) -> None:
        self._panels = panels
        self._overlays = overlays
        self._transcript = transcript
        self._screen = screen

    async def review(self, request: ApprovalRequest) -> Review:
        theme = self._screen.theme
        field = field_of()
        about = _exact(_summary(request, theme.shell), theme)
        while True:
            answer = await self._panels.ask(
                lambda: self._choice(request), about=about, agent=request.agent
            )
            if answer is not None:
                if answer not in {ReviewDecision.DENIED, ReviewDecision.ABORT}:
                    self._transcript.print(_approved_cell(request, answer, theme.shell))
                return Review(answer)
            said = await self._panels.ask(
                lambda: TextField(
                    [("bold", "What should be done instead?")], field=field
                ),
                about="",
            )
            if said is not None:
                return Review(ReviewDecision.DENIED, said or None)

    def _choice(self, request: ApprovalRequest) -> Choice[_Answer]:
        theme = self._screen.theme
        options = _options(request, self._screen.width, theme)
        return Choice(
            lambda room: self._question(request, room),
            options,
            cancelled=ReviewDecision.ABORT,
            default=len(options) - 1,
            hint=_HINT,
            show_all=lambda: self._overlays.open(_pages(request, theme)),
        )

    def _question(self, request: ApprovalRequest, room: int) -> Fragments:
        """The question in `room` rows: both ends of the call, and as much of the reason as fits."""
        width = self._width
        all_key = self._panels.named(SHOWS_ALL)
        theme = self._screen.theme
        what = _body(request, theme, most=_MOST_PATCH, key=all_key)
        body = self._rows(what)
        reasons = [self._rows(each) for each in _facts(request, theme)]
        if room < 2:
            return joined(self._middle_cut(what, body, 1, all_key))
        gap = 0
        if room >= ROOMY:
            gap = 1
        left = room - 1 - gap
        spare = left - len(body) - gap
        # On a low screen, a call that fits is shown whole, whatever that leaves for the reason.
        if gap or spare < 0:
            least = min(_LEAST_REASON_ROWS, left // 3)
        else:
            least = 0
        told = self._told(reasons, min(_REASON_ROWS, max(spare, least)))
        for_body = left - len(told)
        if told:
            for_body -= gap
        is_folded = len(body) > for_body >= _LEAST_BODY_ROWS
        ends = ends_of(body, for_body, all_key)
        if len(body) > for_body and not is_folded:
            ends = self._middle_cut(what, body, for_body)
        is_cut = len(body) > for_body or len(told) < sum(map(len, reasons))
        mark = all_key if is_cut and not is_folded else ""
        if request.agent:
            agent = f"{plain(request.agent)}: "
        else:
            agent = ""
        asked = fit(
            f"{agent}Would you like to {_KINDS[request.kind][0]}?", width - len(mark)
        )
        title: Fragments = [("bold", asked), ("class:quiet", mark)]
        blank: list[Fragments] = [[]] * gap
        rows = [title, *blank, *ends]
        if told:
            rows += [*blank, *told]
        return joined(rows)

    @property
    def _width(self) -> int:
        return self._screen.width - len(INDENT)

    def _told(self, reasons: Sequence[list[Fragments]], room: int) -> list[Fragments]:
        """The beginning of each reason, at least one row of each, in `room` rows."""
        told: list[Fragments] = []
        for n, rows in enumerate(reasons, 1):
            left = room - len(told)
            told += beginning_of(
                rows, left - min(len(reasons) - n, max(0, left - 1)), self._width
            )
        return told

    def _middle_cut(
        self, what: RenderableType, body: list[Fragments], room: int, mark: str = ""
    ) -> list[Fragments]:
        """Both ends of the call, with its lines joined, as far as they fit in `room` rows."""
        # A row of the screen is not a line of the text: take the text's own lines if it has any.
        texts = map(fragment_list_to_text, body)
        if isinstance(what, Text):
            lines = what.plain.split("\n")
        else:
            lines = texts
        line = " ↵ ".join(text for line in lines if (text := line.strip()))
        columns = room * self._width - len(mark)
        line = both_ends(line, columns)
        while True:
            rows = wrapped([("", both_ends(line, columns) + mark)], self._width)
            if len(rows) <= room or columns < 1:
                return rows[:room]
            columns -= 1

    def _rows(self, cell: RenderableType) -> list[Fragments]:
        return self._transcript.renderer.fragments(cell, self._width)[:_MANY_ROWS]


def _exact(text: str, theme: Theme) -> str:
    """The text letter for letter, with an escape for each character that the terminal lacks."""
    if theme.unicode:
        return plain(text)
    return escaped(plain(text))


def _facts(
    request: ApprovalRequest, theme: Theme, *, whole: bool = False
) -> list[Text]:
    said = request.justification or ""
    why = (request.reason or "").removesuffix(said).rstrip(": ")
    facts = {"Why asked: ": why, "The model says: ": said}
    if whole:
        facts |= {"Agent: ": request.agent or "", "Folder: ": str(request.cwd)}
    # All on one line: a separate line in the model's words could pass for the command.
    lines = {
        name: " ".join(_exact(text, theme).split()) for name, text in facts.items()
    }
    return [
        Text.assemble((n, "quiet"), (line, "emphasis"))
        for n, line in lines.items()
        if line
    ]


def _pages(request: ApprovalRequest, theme: Theme) -> Pages:
    pages = Pages(f"What is to be decided: {_KINDS[request.kind][0]}")
    pages.add(_body(request, replace(theme, cwd="")))
    for n, fact in enumerate(_facts(request, theme, whole=True)):
        pages.add(fact, space=not n)
    return pages


def _body(
    request: ApprovalRequest, theme: Theme, *, most: int = WHOLE, key: str = ""
) -> RenderableType:
    match request.kind:
        case "patch":
            paths = (_exact(str(path), theme) for path in request.paths)
            changes = [Change(path=path, kind="update") for path in paths]
            if theme.unicode:
                diff = request.summary
            else:
                diff = escaped(request.summary)
            return diff_cell(diff, changes=changes, most=most, key=key)
        case "mcp":
            return Text(_exact(cut(_pretty(request.summary), _LONGEST_SHOWN), theme))
        case "network":
            return Text(_exact(request.summary, theme))
        case "command":
            script = _exact(
                cut(script_of(request.summary, theme.shell), _LONGEST_SHOWN), theme
            )
            # The folder comes first: the end of a long script may not be on the screen.
            where = _exact(
                elsewhere(str(request.cwd), theme, before="In the folder "), theme
            )
            return Text.assemble(
                (f"{where}\n" if where else "", ""),
                ("$ ", "quiet"),
                highlighted(script, "bash"),
            )


def _pretty(summary: str) -> str:
    """`server/tool {"a": 1}` with each argument on a line of its own."""
    name, _, arguments = summary.partition(" ")
    value = json_or(arguments, ...)
    if value is ...:
        return summary
    return f"{name} {json.dumps(value, indent=2, ensure_ascii=False)}"


def _summary(request: ApprovalRequest, own_shell: str) -> str:
    is_command = request.kind == "command"
    if is_command:
        what = script_of(request.summary, own_shell)
    else:
        what = request.reason
    agent = f"{request.agent}: " if request.agent else ""
    if what:
        return f"{agent}Approve: {what}"
    return f"{agent}Approve edits"


def _approved_cell(
    request: ApprovalRequest, answer: ReviewDecision, own_shell: str
) -> RenderableType:
    if answer is ReviewDecision.APPROVED_FOR_SESSION:
        for_good = " for this session"
    else:
        for_good = ""
    if answer is ReviewDecision.APPROVED_WITH_RULE:
        if request.kind == "network":
            for_good = " from now on"
        else:
            for_good = _LIKE_IT
    match request.kind:
        case "command":
            what = highlighted(
                one_line(script_of(request.summary, own_shell), 100), "bash"
            )
        case "patch":
            what = Text("the edits")
        case "mcp":
            what = Text(
                f"the call of {one_line(request.summary.partition(' ')[0], 100)}"
            )
        case "network":
            what = Text(plain(request.summary))
    agent = f"{plain(request.agent)}: " if request.agent else ""
    row = Text.assemble(agent, ("You approved ", "action"), what, (for_good, "quiet"))
    return marked(row, sign="✔", style="ok")


def _options(
    request: ApprovalRequest, columns: int, theme: Theme
) -> list[MenuOption[_Answer]]:
    session = f"Yes, and do not ask again for {_KINDS[request.kind][1]} in this session"
    options = [MenuOption[_Answer]("Yes, proceed", ReviewDecision.APPROVED, "y")]
    if request.can_last:
        answer = ReviewDecision.APPROVED_FOR_SESSION
        options.append(MenuOption[_Answer](session, answer, "a", lasts=True))
    if request.prefix is not None:
        words = shlex.join(request.prefix)
        if theme.unicode:
            words = printable(words)
        else:
            words = escaped(printable(words))
        label = f"Yes, and do not ask again for commands that start with `{words}`, in any session"
        if request.kind == "network":
            label = f"Yes, and allow `{words}` in any session"
        short = f"Yes, always: `{words}`"
        # Nobody should agree to words that are cut.
        if get_cwidth(short) <= columns - _BESIDE_LABEL:
            answer = ReviewDecision.APPROVED_WITH_RULE
            options.append(
                MenuOption[_Answer](label, answer, "p", short=short, lasts=True)
            )
    options += [
        MenuOption[_Answer]("No, and say what to do instead", None, "f"),
        MenuOption[_Answer]("No, and stop here", ReviewDecision.ABORT, "n"),
    ]
    return options
