"""Suggestions below the composer for the word at the cursor: commands, files, skills."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.utils import get_cwidth

from codex_py.app.file_index import FileIndex
from codex_py.config.skills import Skill
from codex_py.frontends.tui.fitting import Fragments, bar, fit
from codex_py.frontends.tui.menu import MOST_ROWS, moved, sign_of, window
from codex_py.streams.terminal import printable

_OTHER_ROWS = 11
"""The rows of the screen for everything else."""
_LEAST_ROWS = 4
"""The rows of suggestions on a low screen."""
_SLOW_S = 0.2
"""Seconds after which the user is told that a search is running."""
_MAX_NAME = 1 / 3
"""The part of the width for a name that is followed by a note."""
_MAX_FILES = 50
_MISS = 4
"""The rank of a name that does not fit; 0 is the best."""
_PLAIN_PATH = re.compile(r"[\w./@%+=:,~-]+")


@dataclass(frozen=True, slots=True)
class Suggestion:
    name: str
    """The name to show; not yet safe for a terminal."""
    text: str
    """The text that replaces the word."""
    note: str = ""
    sends: bool = False
    """True if Enter sends the line at once, because nothing is missing."""


class Word(NamedTuple):
    start: int
    """The place in the text of the word's first character, the sign that asks for suggestions."""
    text: str
    """The text after the sign, up to the cursor."""


Found: TypeAlias = Sequence[Suggestion]
"""Suggestions, the best first."""


@dataclass(frozen=True, slots=True)
class Source:
    word: re.Pattern[str]
    """Finds the word to complete in the text before the cursor: its sign, then group 1."""
    suggestions: Callable[[str], Found | Callable[[], Awaitable[Found]]]
    """Returns the suggestions for a word without its sign, or a function that searches for them.

    The search is cancelled when more is typed.
    """
    tells_of_none: bool = True
    """True: report that there are no suggestions, because the sign has no other use."""


class Completion:
    """Finds suggestions for a buffer, and calls `changed` when there are others to draw."""

    def __init__(
        self, buffer: Buffer, sources: Sequence[Source], changed: Callable[[], None]
    ) -> None:
        self._buffer = buffer
        self._sources = sources
        self._changed = changed
        self._word: Word | None = None
        self._closed: Word | None = None
        """The word whose suggestions were closed; they stay closed while it is written."""
        self._found: Found = ()
        self._selected = 0
        self._task: asyncio.Task[None] | None = None
        self._then: Callable[[], None] | None = None
        """The work that waits for the search; see `after_search`."""
        self._says_that_it_searches = False
        self._tells_of_none = False

    @property
    def is_open(self) -> bool:
        """True if suggestions are shown, or a message that they are being searched."""
        return bool(self._found) or self._says_that_it_searches

    @property
    def is_shown(self) -> bool:
        """True if anything is shown: suggestions, or a message about them."""
        tells_of_none = (
            self._tells_of_none and self._closed is None and self._task is None
        )
        return self.is_open or tells_of_none

    @property
    def is_at_name(self) -> bool:
        """True if the cursor is behind a sign that asks for suggestions, even if none are found."""
        return self._word is not None

    def after_search(self, work: Callable[[], None]) -> bool:
        """Do the work after the running search, unless more is typed.

        Returns False, and does not do the work, if no search is running.
        """
        if self._task is None:
            return False
        self._then = work
        return True

    def update(self, _: Buffer | None = None) -> None:
        """Find suggestions again after the text or the cursor has changed."""
        source, word = self._at_cursor()
        self._tells_of_none = source is not None and source.tells_of_none
        if word == self._word:
            return
        self._stop()
        self._word = word
        if self._closed is not None and not _is_same_word(self._closed, word):
            self._closed = None
        if source is None or word is None or self._closed is not None:
            self._found = ()
            return
        found = source.suggestions(word.text)
        if callable(found):
            self._task = asyncio.ensure_future(self._wait(found))
        else:
            self._show(found)

    def _at_cursor(self) -> tuple[Source | None, Word | None]:
        """Return the first source that completes the word at the cursor, and that word."""
        before = self._buffer.document.text_before_cursor
        for source in self._sources:
            match = source.word.search(before)
            if match is not None:
                return source, Word(match.start(), match[1])
        return None, None

    def close(self) -> None:
        self._stop()
        self._closed = self._word
        self._found = ()

    def move(self, rows: int) -> None:
        if self._found:
            self._selected = moved(self._selected, rows, len(self._found))

    def accept(self) -> bool:
        """Replace the word by the selected suggestion; True if the line can be sent now.

        There must be suggestions, and no running search.
        """
        word = self._word
        suggestion = self._found[self._selected]
        assert word is not None
        self._buffer.cursor_position = word.start + 1 + len(word.text)
        self._buffer.delete_before_cursor(1 + len(word.text))
        rest = self._buffer.document.text_after_cursor
        if suggestion.sends or rest[:1].isspace():
            space = ""
        else:
            space = " "
        self._buffer.insert_text(suggestion.text + space)
        self.close()
        return suggestion.sends

    def rows(self, width: int, height: int) -> list[Fragments]:
        """Make the rows of suggestions for a screen of this size."""
        if not self._found:
            if self._says_that_it_searches:
                said = "looking for files"
            else:
                said = "nothing found"
            return [[("class:quiet", f"  {said}")]]
        most_rows = max(_LEAST_ROWS, min(MOST_ROWS, height - _OTHER_ROWS))
        shown = window(self._selected, len(self._found), most_rows)
        names = [_fitting_name(self._found[n], width) for n in shown]
        name_columns = max(map(get_cwidth, names), default=0) + 2
        rows: list[Fragments] = []
        for n, name in zip(shown, names, strict=True):
            is_selected = n == self._selected
            row: Fragments = [("", sign_of(is_selected) + name)]
            note = self._found[n].note
            if note:
                gap = " " * (name_columns - get_cwidth(name))
                text = fit(printable(note), width - name_columns - 3)
                row.append(("class:quiet", gap + text))
            if is_selected:
                rows += bar([row], width)
            else:
                rows.append(row)
        if len(shown) < len(self._found):
            rows.append([("class:quiet", f"  {self._selected + 1}/{len(self._found)}")])
        return rows

    async def _wait(self, find: Callable[[], Awaitable[Found]]) -> None:
        slow = asyncio.get_running_loop().call_later(_SLOW_S, self._say_slow)
        try:
            found = await find()
        finally:
            slow.cancel()
            self._says_that_it_searches = False
        self._task = None
        self._show(found)
        then = self._then
        self._then = None
        if then is not None:
            then()
        self._changed()

    def _show(self, found: Found) -> None:
        # If the same suggestions are offered again, the selection stays.
        if found != self._found:
            self._found = found
            self._selected = 0

    def _say_slow(self) -> None:
        # Suggestions for what was written before stay in view instead.
        self._says_that_it_searches = not self._found
        self._changed()

    def _stop(self) -> None:
        self._then = None
        if self._task is not None:
            self._task.cancel()
            self._task = None


def _is_same_word(closed: Word, word: Word | None) -> bool:
    return word is not None and word.start == closed.start


def _fitting_name(suggestion: Suggestion, width: int) -> str:
    """Shorten the name of a suggestion for its row; a note after it needs most of the width."""
    columns = width - 4
    if suggestion.note:
        columns = int(columns * _MAX_NAME)
    return fit(printable(suggestion.name), columns)


@dataclass(frozen=True, slots=True)
class CommandName:
    name: str
    """The name without its slash."""
    help: str
    """A short phrase without a full stop."""
    aliases: tuple[str, ...] = field(default=(), kw_only=True)
    argument: str = field(default="", kw_only=True)
    """The argument of the command, as the help shows it: `[NAME]`."""


def command_source(commands: Callable[[], Sequence[CommandName]]) -> Source:
    """Make the source of commands: `/` at the very beginning of the text.

    Args:
        commands: returns all commands, in the order of the list.
    """

    def suggestions(word: str) -> Found:
        offered: list[tuple[Suggestion, tuple[str, ...]]] = []
        for each in commands():
            # A command that needs an argument is not sent without one.
            is_whole = not each.argument or each.argument.startswith("[")
            name = f"/{each.name} {each.argument}".rstrip()
            suggestion = Suggestion(name, f"/{each.name}", each.help, sends=is_whole)
            offered.append((suggestion, (each.name, *each.aliases)))
        return _fitting(word, offered)

    return Source(re.compile(r"\A/([\w:.-]*)\Z"), suggestions)


def skill_source(skills: Callable[[], Sequence[Skill]]) -> Source:
    """Make the source of skills: `$` before a word."""

    def suggestions(word: str) -> Found:
        offered: list[tuple[Suggestion, tuple[str, ...]]] = []
        for skill in skills():
            mention = f"${skill.name}"
            suggestion = Suggestion(mention, mention, skill.description)
            offered.append((suggestion, (skill.name,)))
        return _fitting(word, offered)

    # Prices begin with the sign too.
    return Source(_word_after("$"), suggestions, tells_of_none=False)


def file_source(files: FileIndex) -> Source:
    """Make the source of files: `@` before a word, or before a quotation mark and several words.

    Without the mark a blank ends the word: the rest belongs to the sentence, and Enter sends it.
    """

    async def search(word: str) -> Found:
        paths = await files.search(word.removeprefix('"'), _MAX_FILES)
        return [Suggestion(path, quoted(path)) for path in paths]

    pattern = _word_after("@", r'"[^"\n]*|\S*')
    return Source(pattern, lambda word: partial(search, word))


def _word_after(sign: str, word: str = r"\S*") -> re.Pattern[str]:
    """Make a pattern for a word that begins with the sign.

    The word is at the start of the text, or after a blank, a bracket or a quote.
    """
    escaped = re.escape(sign)
    # Searching for the sign is far quicker than looking behind every character, so the pattern
    # looks back over the sign.
    not_within_word = rf"(?<![^\s(\"'`]{escaped})"
    return re.compile(rf"{escaped}{not_within_word}({word})\Z")


def quoted(path: str) -> str:
    """Write a path for a prompt: quoted and escaped, unless it is plain enough."""
    if _PLAIN_PATH.fullmatch(path):
        return path
    return json.dumps(path, ensure_ascii=False)


def _fitting(word: str, offered: Sequence[tuple[Suggestion, Sequence[str]]]) -> Found:
    """Return the suggestions of which a name fits the word, the best first.

    Of equally good ones, those whose first name fits come before those whose alias does.
    """
    ranked: list[tuple[tuple[int, int], Suggestion]] = []
    for suggestion, names in offered:
        best = min((_rank(word, name), place) for place, name in enumerate(names))
        if best < (_MISS,):
            ranked.append((best, suggestion))
    ranked.sort(key=itemgetter(0))
    return [suggestion for _, suggestion in ranked]


def _rank(typed: str, name: str) -> int:
    """Rank a name: 0 if it is the typed text, 1 if it begins with it, 2 with the text in it, 3 with
    its letters in order, else `_MISS`."""
    typed = typed.lower()
    name = name.lower()
    if name == typed:
        return 0
    if name.startswith(typed):
        return 1
    if typed in name:
        return 2
    # Each `in` uses up the letters to the one that it finds.
    letters = iter(name)
    if all(letter in letters for letter in typed):
        return 3
    return _MISS
