"""Cells of commands, running and finished.

A command that only reads files is shown as looks at them: "Read a.py", "Search TODO in src".
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import PurePath
from typing import Literal, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from codex_py.app.views.command_script import LONGEST_SCRIPT, script_of
from codex_py.app.views.item_words import item_words
from codex_py.app.views.looks import Look, looks_of
from codex_py.frontends.tui.cells.layout import (
    WHOLE,
    Bounded,
    Hanging,
    Tailed,
    below,
    folded,
    last_lines,
    marked,
    one_line,
    output,
    within,
)
from codex_py.frontends.tui.highlighting import highlighted
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol.event_items import CommandExecution
from codex_py.streams.plain_text import cut
from codex_py.streams.times import took

ShownLook: TypeAlias = tuple[Literal["Read", "List", "Search"], Sequence[str]]
"""A kind of look at files, and the names that a command gave for it."""

_COMMAND_HEAD = 4
_COMMAND_TAIL = 1
_OUTPUT_HEAD = 2
_OUTPUT_TAIL = 3
_FAILED_TAIL = 10
"""Lines of output, more than for success: errors are at the end."""
_LONGEST_FOLDER = 1_000
_LONGEST_IN_BACKGROUND = 30
"""Characters of a command in the background; its state follows on the same row."""


def command_cell(item: CommandExecution, theme: Theme) -> RenderableType:
    """The cell of a finished command."""
    words = item_words(item)
    head = _head(words.verb, item, theme)
    if words.failed == "declined":
        return marked(head, sign="✗", style="error")
    outcome = Text()
    if words.failed is not None:
        outcome.append(" · ", "quiet").append(words.failed, "error")
    if item.duration_ms is not None:
        outcome.append(f" · {took(item.duration_ms)}", "quiet")
    parts: list[RenderableType] = [Tailed(head, outcome)]
    printed = item.aggregated_output.strip("\n")
    # Relayed output is above the cell already.
    is_seen = item.was_relayed and theme.folds
    if printed and not is_seen:
        first = _OUTPUT_HEAD if theme.folds else WHOLE
        if words.failed is not None or item.is_users:
            shown = output(printed, head=first, tail=_FAILED_TAIL, style="text")
        else:
            shown = output(printed, head=first, tail=_OUTPUT_TAIL, style="quiet")
        parts.append(below(shown))
    return marked(*parts, style="ok" if words.failed is None else "error")


def running_cell(
    item: CommandExecution, printed: str, elapsed_s: float, theme: Theme, *, tail: int
) -> RenderableType:
    """The cell of a running command, with the last `tail` lines of its output."""
    if elapsed_s >= 1:
        age = f" · {took(int(elapsed_s) * 1000)}"
    else:
        age = ""
    verb = item_words(item, is_done=False).verb
    head = _head(verb, item, theme)
    parts: list[RenderableType] = [Tailed(head, Text(age, "quiet"))]
    lines = last_lines(printed, tail)
    if lines:
        lines.no_wrap = True
        lines.overflow = "ellipsis"
        parts.append(below(lines))
    return marked(*parts, style="accent")


def background_cell(
    item: CommandExecution, printed: str, since: str, theme: Theme
) -> RenderableType:
    """The cell of a command in the background: one row, with the last line of output."""
    script = one_line(_script(item, theme), _LONGEST_IN_BACKGROUND)
    row = Text.assemble(("In the background ", "action"), highlighted(script, "bash"))
    row.append(f" · since {since}", "quiet")
    last = last_lines(printed, 1)
    if last:
        row.append(" · ", "quiet").append(last)
    row.no_wrap = True
    row.overflow = "ellipsis"
    return marked(row, style="accent")


def explored(item: CommandExecution, own_shell: str = "") -> list[ShownLook]:
    """The looks of a successful command that only looked at files; empty for all others."""
    has_succeeded = item.status == "completed" and item.exit_code == 0
    if not has_succeeded or item.is_users:
        return []
    found = looks_of(script_of(item.command, own_shell))
    return [_shown_look(look) for look in found]


def _shown_look(look: Look) -> ShownLook:
    match look.kind:
        case "read":
            return "Read", look.paths
        case "list":
            return "List", look.paths or ["."]
        case "search" if look.paths:
            return "Search", [f"{look.pattern} in {', '.join(look.paths)}"]
        case "search":
            return "Search", [look.pattern]


def explored_cell(looks: Sequence[ShownLook], theme: Theme) -> RenderableType:
    """The cell of looks. Consecutive names of one kind share a row, each once, as in Codex."""
    rows: list[RenderableType] = []
    for verb, group in groupby(looks, itemgetter(0)):
        names: list[str] = []
        for _, paths in group:
            names += [one_line(within(theme.cwd, path), 200) for path in paths]
        texts = list(dict.fromkeys(names))
        # What was searched for may contain commas.
        if verb != "Search":
            texts = [", ".join(texts)]
        rows += [Hanging(f"{verb} ", Text(text), style="accent") for text in texts]
    cell = marked(Text("Explored", "action"), below(*rows))
    if theme.folds:
        return Bounded(cell)
    return cell


def _script(item: CommandExecution, theme: Theme) -> str:
    """The script of a command, or its beginning if it is too long."""
    return script_of(cut(item.command, LONGEST_SCRIPT, ""), theme.shell)


def _head(
    verb: str,
    item: CommandExecution,
    theme: Theme,
) -> Text:
    """The beginning of a cell: the verb, the script, and the folder if it is another one."""
    most = _COMMAND_HEAD if theme.folds else WHOLE
    script = folded(_script(item, theme).strip(), head=most, tail=_COMMAND_TAIL)
    shown = highlighted(script.plain, "bash")
    shown.highlight_regex(r"(?m)^… \+\d+ lines.*$", "quiet")
    where = elsewhere(item.cwd, theme, before=" in ")
    return Text.assemble((f"{verb} ", "action"), shown, (where, "quiet"))


def elsewhere(
    cwd: str,
    theme: Theme,
    *,
    before: str,
) -> str:
    """The working directory of a command, after the words `before`.

    Empty if it is the session's.
    """
    if not cwd or not theme.cwd:
        return ""
    # The directory of an earlier command is kept as the model wrote it.
    folder = PurePath(theme.cwd, cwd)
    if folder == PurePath(theme.cwd):
        return ""
    return before + one_line(str(folder), _LONGEST_FOLDER)
