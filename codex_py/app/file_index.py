"""Finds the files of the work tree by a few letters of their names."""

import asyncio
import heapq
import os
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple
from unicodedata import normalize

from codex_py.errors import CodexError
from codex_py.filesystem.git import find_dot_git
from codex_py.patch.git import repository_git
from codex_py.programs import Programs

_BLOCK: Final = 32 * 1024
"""Characters searched at once, in less than 1 ms. Between two blocks, other threads get a turn."""
_BREATH_S: Final = 0.0002
"""The pause between two blocks."""
_FRESH_S: Final = 5.0
"""The age from which the list of files is made again."""
_MAX_WALKED: Final = 100_000
_WALK_S: Final = 3.0
"""Limits on the files and the time of a list without git."""
_MAX_QUERY: Final = 64
_RANK_SCORE: Final = 10_000
"""More than the length of any path."""
_AT_START: Final = 4
_IN_NAME: Final = 3
_IN_PATH: Final = 2
_BY_LETTERS: Final = 1
_SKIPPED: Final = frozenset({b"node_modules", b"__pycache__"})
_KERNEL_FOLDERS: Final = frozenset({b"/proc", b"/sys", b"/dev"})
_DIACRITICS: Final = re.compile(
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f]"
)


class _Block(NamedTuple):
    """A part of the names, each between two NULs."""

    text: str
    folded: str
    """The text in the form in which names are compared: see `_folded`."""
    starts: Sequence[int] | None
    """The place of each of `names` in `folded`; None if the places in `text` are the same, as of
    ASCII: other names may become shorter or longer."""
    names: Sequence[str]
    """The names as they are; empty if `starts` is None."""

    def name(self, start: int, end: int) -> str:
        """The name that is at this place in `folded`."""
        if self.starts is None:
            return self.text[start:end]
        return self.names[bisect_left(self.starts, start)]


class FileIndex:
    """Searches the names of files, which it lists at the first search and again when they are old.

    Listing and searching run in threads. Paths are relative to `cwd`, with slashes. With `use_git`
    they are the files that git would track, else all files that are not hidden.

    Args:
        whole: the folders of the files are found too, and without git also what is hidden.
    """

    def __init__(
        self,
        cwd: Path,
        programs: Programs,
        environment: Mapping[str, str],
        *,
        use_git: bool,
        whole: bool = False,
    ) -> None:
        self._cwd = cwd
        self._programs = programs
        self._environment = environment
        self._use_git = use_git
        self._whole = whole
        # Not the loop's own threads: the end of the program waits for their work.
        self._thread = ThreadPoolExecutor(1, "file names")
        self._blocks: list[_Block] = []
        self._listed_at = float("-inf")
        self._listing: asyncio.Future[list[_Block]] | None = None
        self._search_number = 0

    async def search(self, query: str, limit: int) -> Sequence[str]:
        """The best paths that contain the letters of the query, the best first.

        Of several words, a path must contain all, in any order. Diacritics may be left out.
        A query that begins with `../` is searched in the one folder that it names.
        A new search ends the running one, which then finds nothing.
        """
        self._search_number += 1
        number = self._search_number
        query = query.removeprefix("./")
        if query.startswith("../"):
            return await asyncio.to_thread(_beside, self._cwd, query, limit)
        if time.monotonic() - self._listed_at > _FRESH_S:
            if self._listing is None:
                self._listing = asyncio.wrap_future(self._thread.submit(self._names))
                self._listing.add_done_callback(self._listed)
            # Wait only for the first list. A newer one is made in the background.
            if self._listed_at < 0:
                await asyncio.shield(self._listing)
        if number != self._search_number:
            return ()
        blocks = self._blocks

        def rank() -> list[str]:
            return _ranked(query, limit, blocks, lambda: number != self._search_number)

        return await asyncio.to_thread(rank)

    def _listed(self, listing: "asyncio.Future[list[_Block]]") -> None:
        self._listing = None
        if not listing.cancelled():
            # Raises if a bug ended the listing.
            self._blocks = listing.result()
            self._listed_at = time.monotonic()

    def _names(self) -> list[_Block]:
        names = self._tracked()
        if not names:
            names = b"\0".join(_walked(self._cwd, whole=self._whole))
        if self._whole:
            names = _with_folders(names)
        return list(_blocks(names))

    def _tracked(self) -> bytes | None:
        """The names that git lists, each followed by a NUL; None without git."""
        if not self._use_git:
            return None
        dot_git = find_dot_git(self._cwd)
        if dot_git is None:
            return None
        try:
            git = repository_git(self._programs, self._environment, dot_git.parent)
            done = git.run(self._cwd, "ls-files", "-co", "--exclude-standard", "-z")
        except CodexError:
            return None
        if done.returncode == 0:
            return done.stdout
        return None


def _blocks(names: bytes) -> Iterator[_Block]:
    """Cut the names between NULs into blocks.

    A list of strings would take longer to make than the search takes.
    """
    data = b"\0" + names.strip(b"\0") + b"\0"
    start = 0
    while start < len(data) - 1:
        least = min(start + _BLOCK, len(data) - 1)
        end = data.find(b"\0", least)
        part = data[start : end + 1]
        yield _block(part.decode(errors="replace"))
        start = end


def _block(text: str) -> _Block:
    if text.isascii():
        return _Block(text, text.lower(), None, ())
    folded = _folded(text)
    starts = [match.end() for match in re.finditer("\0", folded)]
    return _Block(text, folded, starts, text.split("\0")[1:])


def _folded(text: str) -> str:
    """The text in lower case and without diacritics, however its file system composes them."""
    return _DIACRITICS.sub("", normalize("NFD", text)).lower()


def _with_folders(names: bytes) -> bytes:
    """Add the folders of the files. Names are between NULs."""
    folders: set[bytes] = set()
    for name in names.split(b"\0"):
        folder = name.rpartition(b"/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition(b"/")[0]
    return b"\0".join((names.strip(b"\0"), *sorted(folders)))


def _walked(top: Path, *, whole: bool = False) -> Iterator[bytes]:
    """Yield the files below a folder, level by level. Paths are relative to it.

    Hidden files and those of packages are left out, or, for a `whole` index, only those of git.
    """
    deadline = time.monotonic() + _WALK_S
    root = os.fsencode(top)
    count = 0
    folders = [b""]
    # The list grows meanwhile.
    for folder in folders:
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    if whole:
                        is_skipped = entry.name == b".git"
                    else:
                        is_skipped = entry.name.startswith(b".")
                    if is_skipped or entry.path in _KERNEL_FOLDERS:
                        continue
                    path = os.path.join(folder, entry.name)
                    if not entry.is_dir(follow_symlinks=False):
                        count += 1
                        yield path
                    elif whole or entry.name not in _SKIPPED:
                        folders.append(path)
        except OSError:
            continue
        if count > _MAX_WALKED or time.monotonic() > deadline:
            return


def _beside(
    cwd: Path,
    query: str,
    limit: int,
) -> list[str]:
    """The paths in the query's folder that begin with the query; folders end with a slash."""
    folder, _, name = query.rpartition("/")
    if name == "..":
        return [f"{query}/"]
    found: list[str] = []
    with suppress(OSError), os.scandir(cwd / folder) as entries:
        for entry in islice(entries, _MAX_WALKED):
            is_hidden = entry.name.startswith(".") and not name.startswith(".")
            if not is_hidden and _folded(entry.name).startswith(_folded(name)):
                path = f"{folder}/{entry.name}"
                if entry.is_dir():
                    path += "/"
                found.append(path)
    # A name that is not UTF-8 cannot be written into a prompt.
    return sorted(path for path in found if path.isprintable())[:limit]


class Match(NamedTuple):
    """How well a path fits a query."""

    score: int
    """More is better. Paths in this order are in that of `FileIndex.search`, apart from ties."""
    indices: Sequence[int]
    """The characters of the path that the query names, in order."""


def match(query: str, path: str) -> Match:
    """Say how well a path that `FileIndex.search` has found fits the query."""
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(path):
        folded = _folded(character)
        characters += folded
        places += [place] * len(folded)
    text = "".join(characters)
    words = _folded(query)[:_MAX_QUERY].split()
    rank, found = _places(words, text)
    indices = sorted({places[place] for place in found})
    return Match(max(0, rank * _RANK_SCORE - len(path)), indices)


def _places(words: Sequence[str], text: str) -> tuple[int, Sequence[int]]:
    """The rank of a folded path, more is better, and the places in it that the words name.

    The ranks are those of the patterns of `_patterns`.
    """
    if len(words) != 1:
        found: list[int] = []
        for word in words:
            start = text.find(word)
            if start >= 0:
                found += range(start, start + len(word))
        return _IN_PATH, found
    (word,) = words
    if "/" in word:
        name = 0
    else:
        name = text.rfind("/") + 1
    if text.startswith(word, name):
        return _AT_START, range(name, name + len(word))
    in_name = text.find(word, name)
    if in_name >= 0:
        return _IN_NAME, range(in_name, in_name + len(word))
    in_path = text.find(word)
    if in_path >= 0:
        return _IN_PATH, range(in_path, in_path + len(word))
    letters: list[int] = []
    start = 0
    for letter in word:
        place = text.find(letter, start)
        if place >= 0:
            letters.append(place)
            start = place + 1
    return _BY_LETTERS, letters


def _ranked(
    query: str, limit: int, blocks: Sequence[_Block], is_stale: Callable[[], bool]
) -> list[str]:
    """The best paths for a query; empty once it is stale."""
    best: dict[str, None] = {}
    for pattern in _patterns(_folded(query)[:_MAX_QUERY]):
        found: list[tuple[int, str]] = []
        for block in blocks:
            if is_stale():
                return []
            matches = pattern.finditer(block.folded)
            paths = (block.name(*match.span(1)) for match in matches)
            # A name that is not UTF-8 cannot be written into a prompt.
            by_length = ((len(path), path) for path in paths if "\ufffd" not in path)
            found += heapq.nsmallest(limit, by_length)
            # Release the interpreter long enough for a waiting thread to wake up: a pressed key
            # should not wait. A sleep of no time at all would give it back to the thread that had
            # it.
            time.sleep(_BREATH_S)
        shortest = heapq.nsmallest(limit, found)
        best.update((path, None) for _, path in shortest)
        if len(best) >= limit:
            break
    return list(best)[:limit]


def _patterns(query: str) -> Iterator[re.Pattern[str]]:
    """Yield patterns, the best matches first. Their group 1 is the path.

    One word is searched at the beginning of a name, in a name, in a path, and letter by letter.
    Several words are only searched as they are, anywhere in the path.

    No pattern backtracks in the text, so that a block takes the same time whatever it holds.
    """
    words = query.split()
    if not words:
        yield re.compile(r"\0([^\0/]+)(?=\0)")
        yield re.compile(r"\0([^\0]+)")
        return
    if len(words) > 1:
        conditions = "".join(rf"(?=[^\0]*?{re.escape(word)})" for word in words)
        yield re.compile(rf"\0{conditions}([^\0]+)")
        return
    query = words[0]
    literal = re.escape(query)
    letters = "".join(f"[^\0{re.escape(x)}]*{re.escape(x)}" for x in query)
    # A group in a lookahead is an atomic group, which Python 3.11.2 cannot compile: once the folders
    # of a path are found, they are not tried again one by one. Group 1 is the path.
    folders = r"(?=(?P<folders>(?:[^\0/]*/)*))(?P=folders)"
    if "/" not in query:
        yield re.compile(rf"\0({folders}{literal}[^\0/]*)(?=\0)")
        yield re.compile(rf"\0({folders}[^\0/]*?{literal}[^\0/]*)(?=\0)")
    else:
        yield re.compile(rf"\0({literal}[^\0]*)")
    yield re.compile(rf"\0([^\0]*?{literal}[^\0]*)")
    yield re.compile(rf"\0({letters}[^\0]*)")
