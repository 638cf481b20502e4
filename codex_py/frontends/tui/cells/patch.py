"""Shows changes of files as coloured diffs, each line with its number.

Reads git's form and the envelope of `apply_patch`. The result is only shown, never applied: text
that is not a diff is shown as it is instead of being refused.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from codex_py.app.views.diffs import EDITED, VERBS, DiffLine, ShownFile, read_diff
from codex_py.app.views.item_words import item_words
from codex_py.frontends.tui.cells.layout import (
    FOLD_KEY,
    MOST_ROWS,
    WHOLE,
    Band,
    Hanging,
    below,
    folded,
    marked,
    one_line,
    within,
)
from codex_py.frontends.tui.highlighting import changed_words, highlighted, language_of
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol.event_items import Change, FileChange
from codex_py.streams.plain_text import cut, plain

_MOST_READ = 200_000
"""Characters of a diff that are read."""
_ROWS_OF_FILE = 3
_MOST_NAMED = 30
_LONGEST_LINE = 400
_LONGEST_PATH = 300

_STYLES = {"+": "added", "-": "removed"}
_SIGNS = {"+": "ok", "-": "error"}
_SHOWN = {"@": "…", "\\": " "}


def change_cell(item: FileChange, theme: Theme) -> RenderableType:
    """The cell of a finished patch: its diff, or why it failed."""
    words = item_words(item)
    if words.failed is None:
        most = MOST_ROWS if theme.folds else WHOLE
        return diff_cell(item.diff, changes=item.changes, most=most)
    parts: list[RenderableType] = [_named(words.verb, item, theme)]
    # The event that follows says why a patch was declined.
    if words.failed != "declined":
        head = 8 if theme.folds else WHOLE
        for reason in words.body:
            message = folded(reason.text, head=head, tail=2, style="text")
            parts.append(below(message))
    return marked(*parts, sign="✗", style="error")


def changing_cell(item: FileChange, theme: Theme) -> RenderableType:
    """The cell of a patch that is being written."""
    verb = item_words(item, is_done=False).verb
    return marked(_named(verb, item, theme), style="accent")


def diff_cell(
    diff: str,
    *,
    changes: Sequence[Change] = (),
    most: int = WHOLE,
    title: str = "",
    key: str = FOLD_KEY,
) -> RenderableType:
    """The cell of a diff, file by file. `changes`: the files to name if the diff names none.

    Args:
        most: about the number of rows, which the files share; the rest is folded, and `key` shows
            it.
        title: the name of these changes, if they have not just been made.
    """
    files = _files(cut(diff, _MOST_READ, ""), changes)
    if most >= WHOLE:
        shown = files
    else:
        shown = files[: max(1, most // _ROWS_OF_FILE)]
    each = _lines_of_each(shown, most)
    digits = _digits([_kept(file, each) for file in shown])
    if len(files) == 1 and not title:
        parts = _file(files[0], each, digits, key)
    else:
        head = Text(title or f"Edited {len(files)} files", "action")
        parts: list[RenderableType] = [head.append_text(_count(files))]
        for n, file in enumerate(shown):
            if n > 0:
                parts.append("")
            parts.append(below(*_file(file, each, digits, key)))
        hidden = len(files) - len(shown)
        if hidden > 0:
            parts.append(Text(f"  … +{hidden} files{key}", "quiet"))
    unread = len(diff) - _MOST_READ
    if unread > 0:
        parts.append(Text(f"  … +{unread:,} characters{key}", "quiet"))
    return marked(*parts, style="ok")


def _files(diff: str, changes: Sequence[Change]) -> list[ShownFile]:
    """The files of a diff; if it has none, those of the changes, without lines."""
    files = read_diff(diff)
    if not files:
        return [
            ShownFile(change.path, VERBS.get(change.kind, EDITED)) for change in changes
        ]
    named = {change.path for change in changes}
    for file in files:
        # In a diff, a file outside the folder lacks its first slash.
        if f"/{file.path}" in named:
            file.path = f"/{file.path}"
        if f"/{file.moved_to}" in named:
            file.moved_to = f"/{file.moved_to}"
    return files


def _digits(files: Sequence[Sequence[DiffLine]]) -> int:
    """The digits of the highest number of a line, given the lines of each file; 0 without any."""
    numbers: list[int] = []
    for lines in files:
        numbers += [line.number for line in lines if line.number is not None]
    if not numbers:
        return 0
    return len(str(max(numbers)))


def _lines_of_each(files: Sequence[ShownFile], most: int) -> int:
    """The number of lines to show of each file, so that all fit in `most` rows.

    Small files leave their share to the others.
    """
    # Each file needs a row for its name and an empty one.
    room = most - 2 * len(files)
    sizes = sorted(len(file.lines) for file in files)
    for n, size in enumerate(sizes):
        share = room // (len(files) - n)
        if size > share:
            # One row says how many lines are folded.
            return max(1, share - 1)
        room -= size
    return WHOLE


def _kept(file: ShownFile, most: int) -> Sequence[DiffLine]:
    """The lines of a file to show, with its first change among them."""
    if len(file.lines) <= most:
        return file.lines
    changed = (n for n, line in enumerate(file.lines) if line.sign in _STYLES)
    before_change = max(0, next(changed, 0) - 1)
    start = min(before_change, len(file.lines) - most)
    return file.lines[start : start + most]


def diff_cells(diff: str) -> Sequence[RenderableType]:
    """A cell for each file of a diff."""
    files = read_diff(diff)
    digits = max(1, _digits([file.lines for file in files]))
    return [marked(*_file(file, WHOLE, digits, ""), style="ok") for file in files]


def _file(
    file: ShownFile,
    most: int,
    digits: int,
    key: str,
) -> list[RenderableType]:
    """The name of a file and at most `most` of its lines; `key` shows the others."""
    path = one_line(file.path, _LONGEST_PATH)
    head = Text.assemble((f"{file.verb} ", "action"), path)
    if file.moved_to:
        head.append(f" → {one_line(file.moved_to, _LONGEST_PATH)}")
    if not file.lines:
        return [head]
    head.append_text(_count([file]))
    language = language_of(file.moved_to or file.path)
    rows = _numbered(_kept(file, most), digits, language)
    parts: list[RenderableType] = [head, rows]
    hidden = len(file.lines) - most
    if hidden > 0:
        parts.append(Text(f"  … +{hidden} lines{key}", "quiet"))
    return parts


def _count(files: Sequence[ShownFile]) -> Text:
    count = Counter(line.sign for file in files for line in file.lines)
    text = Text.assemble((" (", "quiet"))
    text.append(f"+{count['+']}", "ok")
    text.append(" ")
    text.append(f"-{count['-']}", "error")
    return text.append(")", "quiet")


def _named(
    verb: str,
    item: FileChange,
    theme: Theme,
) -> Text:
    paths = [
        one_line(within(theme.cwd, change.path), _LONGEST_PATH)
        for change in item.changes[:_MOST_NAMED]
    ]
    if len(item.changes) > _MOST_NAMED:
        paths.append(f"… +{len(item.changes) - _MOST_NAMED} files")
    return Text.assemble((f"{verb} ", "action"), ", ".join(paths))


def _numbered(
    lines: Sequence[DiffLine],
    digits: int,
    language: str,
) -> Group:
    """The lines with their numbers. A long line is wrapped below its own text."""
    rows: list[RenderableType] = []
    texts = [_one_line(line) for line in lines]
    colored = _colored(lines, texts, language)
    words = _changed_words(lines, texts)
    for n, line in enumerate(lines):
        changed = words.get(n, ())
        body = _LineBody(texts[n], colored[n], line.sign, changed)
        margin = _SHOWN.get(line.sign, line.sign)
        if digits:
            number = "" if line.number is None else str(line.number)
            margin = f"{number:>{digits}} {margin}"
        style = _SIGNS.get(line.sign, "quiet")
        row = Hanging(margin, body, style=style)
        rows.append(Band(row, body.style))
    return Group(*rows)


@dataclass(frozen=True, slots=True)
class _LineBody:
    """A line of a diff.

    Unchanged lines, and lines on a background, have the colours of their language; others have the
    colour of their sign.
    """

    text: str
    colored: Text
    sign: str
    words: Sequence[tuple[int, int]]
    """The start and end of each changed part."""

    @property
    def style(self) -> str:
        if self.sign == " ":
            return "text"
        return _STYLES.get(self.sign, "quiet")

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        has_ground = console.get_style(self.style).bgcolor is not None
        if has_ground or self.sign == " ":
            text = self.colored.copy()
        else:
            text = Text(self.text, self.style)
        for start, end in self.words:
            text.stylize(f"{self.style} word", start, end)
        yield text


def _one_line(line: DiffLine) -> str:
    text = plain(cut(line.text, _LONGEST_LINE), tab=4)
    return text.replace("\n", " ")


def _colored(
    lines: Sequence[DiffLine], texts: Sequence[str], language: str
) -> Sequence[Text]:
    """The texts highlighted in the language, once as the old file and once as the new one."""
    colored = [Text(text) for text in texts]
    for signs in ("- ", "+ "):
        places = [n for n, line in enumerate(lines) if line.sign in signs]
        if not places:
            continue
        whole = highlighted("\n".join(texts[n] for n in places), language)
        parts = whole.split("\n", allow_blank=True)
        for n, text in zip(places, parts, strict=True):
            colored[n] = text
    return colored


def _changed_words(
    lines: Sequence[DiffLine], texts: Sequence[str]
) -> Mapping[int, Sequence[tuple[int, int]]]:
    """The start and end of changed words, by line, where lines have been replaced by others."""
    words: dict[int, Sequence[tuple[int, int]]] = {}
    by_sign = groupby(range(len(lines)), lambda n: lines[n].sign)
    runs = [(sign, list(run)) for sign, run in by_sign]
    for (sign, old), (next_sign, new) in pairwise(runs):
        if sign == "-" and next_sign == "+":
            for before, after in zip(old, new, strict=False):
                words[before], words[after] = changed_words(texts[before], texts[after])
    return words
