"""Asks the user whether a call may run."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.utils import get_cwidth
from rich.console import RenderableType
from rich.text import Text

from codex_py.app.approval_answers import (
    FOR_SESSION,
    NO,
    ONCE,
    STOP,
    WITH_RULE,
    ApprovalAnswer,
    offered_answers,
    rule_words,
)
from codex_py.app.views.command_script import script_of
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
from codex_py.protocol.approval import ApprovalRequest, Review
from codex_py.protocol.event_items import Change
from codex_py.protocol.json_fields import json_or
from codex_py.streams.plain_text import cut, plain

_KINDS: Final = {
    "command": "run the following command",
    "patch": "make the following edits",
    "mcp": "call the following tool",
    "network": "let a command reach the following host",
}
"""The question, by kind of request."""
_KEYS: Final = {ONCE: "y", FOR_SESSION: "a", WITH_RULE: "p", NO: "f", STOP: "n"}
"""The keys that choose an answer."""
_HINT: Final = "{list.accept} or a key answers, Esc: no; text goes to your prompt"
_LIKE_IT: Final = ", and what begins like it from now on"
_REASON_ROWS: Final = 4
"""The rows that the reasons take at most."""
_LEAST_REASON_ROWS: Final = 2
"""The rows that a long call leaves to the reasons."""
_LEAST_BODY_ROWS: Final = 4
"""In fewer rows, the lines of a long call are joined and cut in the middle."""
_BESIDE_LABEL: Final = len("> 1. ") + len(" (p)")
"""The columns of an option that are not its label."""
_MANY_ROWS: Final = 10_000
"""More rows than are ever shown, to bound the work."""
_MOST_PATCH: Final = 60
"""Rows. No screen shows more of a question."""
_LONGEST_SHOWN: Final = 200_000
"""Characters of a command or a tool call that are shown."""


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
            if answer.allows:
                self._transcript.print(_approved_cell(request, answer, theme.shell))
            if not answer.takes_feedback:
                return answer.review()
            said = await self._panels.ask(
                lambda: TextField(
                    [("bold", "What should be done instead?")], field=field
                ),
                about="",
            )
            if said is not None:
                return answer.review(said or None)

    def _choice(self, request: ApprovalRequest) -> Choice[ApprovalAnswer]:
        theme = self._screen.theme
        options = _options(request, self._screen.width, theme)
        return Choice(
            lambda room: self._question(request, room),
            options,
            cancelled=STOP,
            default=len(options) - 1,
            hint=_HINT,
            show_all=lambda: self._overlays.open(_pages(request, theme)),
        )

    def _question(self, request: ApprovalRequest, room: int) -> Fragments:
        """The question in `room` rows: both ends of the call, and as much of the reason as fits."""
        theme = self._screen.theme
        all_key = self._panels.named(SHOWS_ALL)
        call = _body(request, theme, most=_MOST_PATCH, key=all_key)
        body = self._rows(call)
        if room < 2:
            return joined(self._middle_cut(call, body, 1, all_key))
        gap: list[Fragments] = []
        if room >= ROOMY:
            gap = [[]]
        below_title = room - 1 - len(gap)
        reasons = [self._rows(fact) for fact in _facts(request, theme)]
        reason_rows = _reason_rows(len(body), below_title, len(gap))
        told = self._told(reasons, reason_rows)
        is_all_told = len(told) == sum(map(len, reasons))
        if told:
            told = [*gap, *told]
        body_rows = below_title - len(told)
        # The title names the key that shows all, unless a row among those of the call does.
        mark = ""
        if len(body) <= body_rows:
            shown = body
            if not is_all_told:
                mark = all_key
        elif body_rows >= _LEAST_BODY_ROWS:
            shown = ends_of(body, body_rows, all_key)
        else:
            shown = self._middle_cut(call, body, body_rows)
            mark = all_key
        title = self._title(request, mark)
        return joined([title, *gap, *shown, *told])

    def _title(self, request: ApprovalRequest, mark: str) -> Fragments:
        """The row that asks, shortened to leave room for `mark` at its end."""
        question = f"{_asker(request)}Would you like to {_KINDS[request.kind]}?"
        asked = fit(question, self._width - len(mark))
        return [("bold", asked), ("class:quiet", mark)]

    @property
    def _width(self) -> int:
        return self._screen.width - len(INDENT)

    def _told(self, reasons: Sequence[list[Fragments]], room: int) -> list[Fragments]:
        """The beginning of each reason, at least one row of each, in `room` rows."""
        told: list[Fragments] = []
        for n, rows in enumerate(reasons, 1):
            left = room - len(told)
            for_others = len(reasons) - n
            own = max(left - for_others, min(left, 1))
            told += beginning_of(rows, own, self._width)
        return told

    def _middle_cut(
        self, call: RenderableType, body: list[Fragments], room: int, mark: str = ""
    ) -> list[Fragments]:
        """Both ends of the call, with its lines joined, as far as they fit in `room` rows.

        `mark` follows them.
        """
        # A row of the screen is not a line of the text: take the text's own lines if it has any.
        if isinstance(call, Text):
            lines = call.plain.split("\n")
        else:
            lines = [fragment_list_to_text(row) for row in body]
        stripped = [line.strip() for line in lines]
        joined_lines = " ↵ ".join(filter(None, stripped))
        columns = room * self._width - len(mark)
        ends = both_ends(joined_lines, columns)
        # Rows that break at blanks hold less than their columns.
        while True:
            rows = wrapped([("", both_ends(ends, columns) + mark)], self._width)
            if len(rows) <= room or columns < 1:
                return rows[:room]
            columns -= 1

    def _rows(self, cell: RenderableType) -> list[Fragments]:
        return self._transcript.renderer.fragments(cell, self._width)[:_MANY_ROWS]


def _reason_rows(
    body: int,
    below_title: int,
    gap: int,
) -> int:
    """The rows that the reasons may take.

    Args:
        body: the rows of the whole call.
        below_title: the rows for the call and the reasons.
        gap: the empty rows before the reasons; 0 on a low screen.
    """
    spare = below_title - body - gap
    # On a low screen, a call that fits is shown whole, whatever that leaves for the reason.
    if not gap and spare >= 0:
        return min(_REASON_ROWS, spare)
    least = min(_LEAST_REASON_ROWS, below_title // 3)
    return min(_REASON_ROWS, max(spare, least))


def _asker(request: ApprovalRequest) -> str:
    """The name of the subagent that asks, before a sentence; empty for the session's own agent."""
    if not request.agent:
        return ""
    return f"{plain(request.agent)}: "


def _exact(text: str, theme: Theme) -> str:
    """The text letter for letter, with an escape for each character that the terminal lacks."""
    if theme.unicode:
        return plain(text)
    return escaped(plain(text))


def _facts(
    request: ApprovalRequest, theme: Theme, *, whole: bool = False
) -> list[Text]:
    """The reasons for the question, one line each. `whole`: the agent and the folder too."""
    said = request.justification or ""
    why = (request.reason or "").removesuffix(said).rstrip(": ")
    facts = [("Why asked: ", why), ("The model says: ", said)]
    if whole:
        facts += [("Agent: ", request.agent or ""), ("Folder: ", str(request.cwd))]
    lines: list[Text] = []
    for name, text in facts:
        # All on one line: a separate line in the model's words could pass for the command.
        line = " ".join(_exact(text, theme).split())
        if line:
            lines.append(Text.assemble((name, "quiet"), (line, "emphasis")))
    return lines


def _pages(request: ApprovalRequest, theme: Theme) -> Pages:
    pages = Pages(f"What is to be decided: {_KINDS[request.kind]}")
    pages.add(_body(request, replace(theme, cwd="")))
    for n, fact in enumerate(_facts(request, theme, whole=True)):
        pages.add(fact, space=n == 0)
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
            script = cut(script_of(request.summary, theme.shell), _LONGEST_SHOWN)
            folder = elsewhere(str(request.cwd), theme, before="In the folder ")
            text = Text()
            # The folder comes first: the end of a long script may not be on the screen.
            if folder:
                text.append(f"{_exact(folder, theme)}\n")
            text.append("$ ", "quiet")
            return text.append_text(highlighted(_exact(script, theme), "bash"))


def _pretty(summary: str) -> str:
    """`server/tool {"a": 1}` with each argument on a line of its own."""
    name, _, arguments = summary.partition(" ")
    value = json_or(arguments, ...)
    if value is ...:
        return summary
    return f"{name} {json.dumps(value, indent=2, ensure_ascii=False)}"


def _summary(request: ApprovalRequest, own_shell: str) -> str:
    """The question in a few words, for a notification."""
    if request.kind == "command":
        what = script_of(request.summary, own_shell)
    else:
        what = request.reason
    agent = ""
    if request.agent:
        agent = f"{request.agent}: "
    if what:
        return f"{agent}Approve: {what}"
    return f"{agent}Approve edits"


def _approved_cell(
    request: ApprovalRequest, answer: ApprovalAnswer, own_shell: str
) -> RenderableType:
    """The cell that says what the user approved, and for how long."""
    how_long = ""
    if answer is FOR_SESSION:
        how_long = " for this session"
    elif answer is WITH_RULE:
        how_long = _LIKE_IT
        if request.kind == "network":
            how_long = " from now on"
    match request.kind:
        case "command":
            script = one_line(script_of(request.summary, own_shell), 100)
            what = highlighted(script, "bash")
        case "patch":
            what = Text("the edits")
        case "mcp":
            tool, _, _ = request.summary.partition(" ")
            what = Text(f"the call of {one_line(tool, 100)}")
        case "network":
            what = Text(plain(request.summary))
    row = Text(_asker(request)).append("You approved ", "action").append_text(what)
    return marked(row.append(how_long, "quiet"), sign="✔", style="ok")


def _options(
    request: ApprovalRequest, columns: int, theme: Theme
) -> list[MenuOption[ApprovalAnswer]]:
    options: list[MenuOption[ApprovalAnswer]] = []
    for answer in offered_answers(request):
        option = _option(answer, request, theme)
        # Nobody should agree to words that are cut.
        if get_cwidth(option.short) <= columns - _BESIDE_LABEL:
            options.append(option)
    return options


def _option(
    answer: ApprovalAnswer, request: ApprovalRequest, theme: Theme
) -> MenuOption[ApprovalAnswer]:
    label = answer.label(request)
    short = ""
    if answer is WITH_RULE:
        short = f"Yes, always: `{rule_words(request)}`"
    if not theme.unicode:
        label = escaped(label)
        short = escaped(short)
    return MenuOption(label, answer, _KEYS[answer], short=short, lasts=answer.lasts)
