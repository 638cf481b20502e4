"""Changes of files as coloured diffs."""

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from codex_py.frontends.tui.cells.layout import Hanging, below, folded, marked, stacked
from codex_py.frontends.tui.diffs import DiffLine, ShownFile, read_diff
from codex_py.frontends.tui.plain import cut, one_line, plain
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol.events import Change, FileChange

_MOST_READ = 200_000
"""Characters of a diff that are looked at."""
_MOST_LINES = 60
"""Of one file, before the rest is folded."""
_MOST_LINES_IN_ALL = 300
_MOST_FILES = 30
_LONGEST_LINE = 400
_LONGEST_PATH = 300

_STYLES = {"+": "added", "-": "removed", " ": "quiet", "@": "quiet", "\\": "quiet"}
_KINDS = {"add": "Added", "delete": "Deleted", "update": "Edited"}


def change_cell(item: FileChange, theme: Theme) -> RenderableType:
    """A patch that is over: its diff, or why it failed."""
    if item.status == "completed":
        return diff_cell(item.diff, theme, changes=item.changes)
    verb = "Declined the patch of" if item.status == "declined" else "Failed to patch"
    parts: list[RenderableType] = [
        Text.assemble((f"{verb} ", theme.style("action")), _paths(item, theme))
    ]
    # Why a patch was declined is told by the event that follows.
    if item.status == "failed" and item.error is not None:
        parts.append(below(folded(item.error["message"], theme, head=8, tail=2), theme))
    return marked(stacked(parts), theme, glyph="no", style="error")


def changing_cell(item: FileChange, theme: Theme) -> RenderableType:
    """A patch that is being written."""
    head = Text.assemble(("Patching ", theme.style("action")), _paths(item, theme))
    return marked(head, theme, style="accent")


def diff_cell(
    diff: str, theme: Theme, *, changes: Sequence[Change] = (), fold: bool = True
) -> RenderableType:
    """A diff by files. `changes` are named where the diff names none."""
    files = read_diff(cut(diff, _MOST_READ, ""))
    unread: list[RenderableType] = []
    if len(diff) > _MOST_READ:
        rest = f"  {theme.glyph('more')} +{len(diff) - _MOST_READ:,} characters"
        unread.append(Text(rest, theme.style("quiet")))
    named = {change.path for change in changes}
    for file in files:
        # A diff names a file that lies outside of the folder without its first slash.
        if f"/{file.path}" in named:
            file.path = f"/{file.path}"
        if f"/{file.moved_to}" in named:
            file.moved_to = f"/{file.moved_to}"
    if not files:
        files = [ShownFile(change.path, _KINDS[change.kind]) for change in changes]
    most = _MOST_LINES if fold else _MOST_LINES_IN_ALL
    if len(files) == 1:
        head = _head(files[0], theme)
        return marked(stacked([head, *_body(files[0], theme, most), *unread]), theme, style="ok")
    added, removed = sum(f.added for f in files), sum(f.removed for f in files)
    head = Text(f"Edited {len(files)} files", theme.style("action")).append_text(
        _count(added, removed, theme)
    )
    parts: list[RenderableType] = [head]
    left = _MOST_LINES_IN_ALL if fold else 10 * _MOST_LINES_IN_ALL
    for file in files[:_MOST_FILES]:
        shown = min(most, left, max(len(file.lines), 1))
        parts.append(below(stacked([_head(file, theme), *_body(file, theme, shown)]), theme))
        left = max(left - shown, 0)
    if len(files) > _MOST_FILES:
        rest = f"{theme.glyph('more')} +{len(files) - _MOST_FILES} files"
        parts.append(Text(f"  {rest}", theme.style("quiet")))
    return marked(stacked([*parts, *unread]), theme, style="ok")


def _head(file: ShownFile, theme: Theme) -> Text:
    more = theme.glyph("more")
    head = Text.assemble(
        (f"{file.verb} ", theme.style("action")), one_line(file.path, _LONGEST_PATH, more)
    )
    if file.moved_to:
        head.append(f" {theme.glyph('to')} {one_line(file.moved_to, _LONGEST_PATH, more)}")
    return head.append_text(_count(file.added, file.removed, theme)) if file.lines else head


def _count(added: int, removed: int, theme: Theme) -> Text:
    quiet = theme.style("quiet")
    return Text.assemble(
        (" (", quiet),
        (f"+{added}", theme.style("added")),
        " ",
        (f"-{removed}", theme.style("removed")),
        (")", quiet),
    )


def _paths(item: FileChange, theme: Theme) -> Text:
    more = theme.glyph("more")
    paths = [one_line(change.path, _LONGEST_PATH, more) for change in item.changes[:_MOST_FILES]]
    if len(item.changes) > _MOST_FILES:
        paths.append(f"{more} +{len(item.changes) - _MOST_FILES} files")
    return Text(", ".join(paths))


def _body(file: ShownFile, theme: Theme, most: int) -> list[RenderableType]:
    if not file.lines:
        return []
    parts: list[RenderableType] = [_Lines(file.lines[:most], theme)]
    if (hidden := len(file.lines) - most) > 0:
        parts.append(Text(f"  {theme.glyph('more')} +{hidden} lines", theme.style("quiet")))
    return parts


class _Lines:
    """Lines with their numbers. Long ones are wrapped below their own text."""

    def __init__(self, lines: Sequence[DiffLine], theme: Theme) -> None:
        self._lines = lines
        self._theme = theme
        numbers = [line.number for line in lines if line.number is not None]
        self._digits = len(str(max(numbers))) if numbers else 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        theme = self._theme
        more = theme.glyph("more")
        for line in self._lines:
            number = "" if line.number is None else str(line.number)
            sign = {"@": more[:1], "\\": " "}.get(line.sign, line.sign)
            margin = f"{number:>{self._digits}} {sign}" if self._digits else sign
            text = Text(
                plain(cut(line.text, _LONGEST_LINE, more), tab=4), theme.style(_STYLES[line.sign])
            )
            yield Hanging(margin, text, style=theme.style(_STYLES[line.sign]))
