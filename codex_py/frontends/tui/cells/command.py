"""Cells of commands, running and finished."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import PurePath
from typing import Literal, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from codex_py.app.views.item_text import LONGEST_SCRIPT, script_of
from codex_py.execpolicy.safety import is_known_safe
from codex_py.execpolicy.words import Command, plain_script
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

Look: TypeAlias = tuple[Literal["Read", "List", "Search"], Sequence[str]]
"""A kind of look at files, and the names that a command gave for it."""

_COMMAND_HEAD = 4
_COMMAND_TAIL = 1
_OUTPUT_HEAD = 2
_OUTPUT_TAIL = 3
_FAILED_TAIL = 10
"""Lines of output, more than for success: errors are at the end."""
_MOST_READ = 4_000
"""Characters of a script. A longer one is not examined for what it looks at."""

_SILENT = {"cd", "pwd", "true", "wc", "uniq"}
"""Commands that print nothing from files, or count what others have read."""
_FILTERS = {"head", "tail"}
_LONGEST_FOLDER = 1_000
_LONGEST_BEHIND = 30
"""Characters of a command in the background; its state follows on the same row."""


def command_cell(item: CommandExecution, theme: Theme) -> RenderableType:
    """The cell of a finished command."""
    failed = item.status != "completed" or item.exit_code not in {0, None}
    if item.status == "declined":
        return marked(_head("Declined", item, theme), sign="✗", style="error")
    tail = Text()
    if failed:
        if item.exit_code is None:
            what = item.status
        else:
            what = f"exit {item.exit_code}"
        what = "stopped" if item.was_stopped else what
        tail.append(" · ", "quiet").append(what, "error")
    if item.duration_ms is not None:
        tail.append(f" · {took(item.duration_ms)}", "quiet")
    parts: list[RenderableType] = [
        Tailed(_head("You ran" if item.is_users else "Ran", item, theme), tail)
    ]
    printed = item.aggregated_output.strip("\n")
    if printed and not (item.was_relayed and theme.folds):
        wanted = failed or item.is_users
        last, style = (_FAILED_TAIL, "text") if wanted else (_OUTPUT_TAIL, "quiet")
        head = _OUTPUT_HEAD if theme.folds else WHOLE
        parts.append(below(output(printed, head=head, tail=last, style=style)))
    return marked(*parts, style="error" if failed else "ok")


def running_cell(
    item: CommandExecution, printed: str, elapsed_s: float, theme: Theme, *, tail: int
) -> RenderableType:
    """The cell of a running command, with the last `tail` lines of its output."""
    if elapsed_s >= 1:
        age = f" · {took(int(elapsed_s) * 1000)}"
    else:
        age = ""
    parts: list[RenderableType] = [
        Tailed(_head("Running", item, theme), Text(age, "quiet"))
    ]
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
    last = last_lines(printed, 1) or Text()
    script = one_line(
        script_of(cut(item.command, LONGEST_SCRIPT, ""), theme.shell), _LONGEST_BEHIND
    )
    head = Text.assemble(("In the background ", "action"), highlighted(script, "bash"))
    head.append(f" · since {since}", "quiet").append(
        " · " if last else "", "quiet"
    ).append(last)
    head.no_wrap = True
    head.overflow = "ellipsis"
    return marked(head, style="accent")


def explored(item: CommandExecution, own_shell: str = "") -> list[Look]:
    """The looks of a successful command that only looked at files; empty for all others."""
    script = script_of(item.command, own_shell)
    is_ended = item.status == "completed" and item.exit_code == 0
    if not is_ended or item.is_users or len(script) > _MOST_READ:
        return []
    if not is_known_safe(("bash", "-c", script)):
        # It may do more than look.
        return []
    looks: list[Look] = []
    for command in plain_script(script) or ():
        if command[0] in _SILENT or (command[0] in _FILTERS and not _files(command)):
            continue
        look = _look(command)
        if look is None:
            return []
        looks.append(look)
    return looks


def explored_cell(looks: Sequence[Look], theme: Theme) -> RenderableType:
    """The cell of looks. Consecutive names of one kind share a row, each once, as in Codex."""
    rows: list[RenderableType] = []
    for verb, group in groupby(looks, itemgetter(0)):
        what = (within(theme.cwd, name) for _, names in group for name in names)
        names = dict.fromkeys(one_line(name, 200) for name in what)
        texts = names if verb == "Search" else [", ".join(names)]
        rows += [Hanging(f"{verb} ", Text(text), style="accent") for text in texts]
    cell = marked(Text("Explored", "action"), below(*rows))
    if theme.folds:
        return Bounded(cell)
    return cell


def _head(verb: str, item: CommandExecution, theme: Theme) -> Text:
    script = script_of(cut(item.command, LONGEST_SCRIPT, ""), theme.shell).strip()
    head = _COMMAND_HEAD if theme.folds else WHOLE
    script = folded(script, head=head, tail=_COMMAND_TAIL).plain
    shown = highlighted(script, "bash")
    shown.highlight_regex(r"(?m)^… \+\d+ lines.*$", "quiet")
    where = elsewhere(item.cwd, theme, before=" in ")
    return Text.assemble((f"{verb} ", "action"), shown, (where, "quiet"))


def elsewhere(cwd: str, theme: Theme, *, before: str) -> str:
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


def _files(command: Command) -> list[str]:
    """The words of a command without options; for `head` and `tail`, without a leading number."""
    words = [word for word in command[1:] if not word.startswith("-")]
    if command[0] in _FILTERS and words and words[0].isdigit():
        return words[1:]
    return words


def _look(command: Command) -> Look | None:
    name = command[0]
    files = _files(command)
    match name:
        case "cat" | "head" | "tail" | "nl" if files:
            return "Read", files
        case "sed" if command[1:2] == ("-n",) and len(files) > 1:
            return "Read", files[1:]
        case "ls":
            return "List", files or ["."]
        case "find":
            return "List", command[1:2] or ["."]
        case "rg" if "--files" in command:
            return "List", files or ["."]
        case "rg" | "grep" if files:
            if files[1:]:
                where = f" in {', '.join(files[1:])}"
            else:
                where = ""
            return "Search", [files[0] + where]
        case _:
            return None
