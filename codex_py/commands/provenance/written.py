"""Reads from the journal, the session files and git what sessions wrote in a repository. Nothing is written."""

import errno
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from math import inf
from pathlib import Path
from typing import Final

from codex_py.commands.provenance.lines import Author, FileStep, History, as_lines
from codex_py.config.config import Config
from codex_py.config.paths import project_root
from codex_py.errors import SessionError, UsageError
from codex_py.filesystem.denials import denials_of
from codex_py.filesystem.reading import read_whole
from codex_py.patch.files.change import Entry, State
from codex_py.patch.files.entry_file import DamagedEntry
from codex_py.patch.files.journal import Journal
from codex_py.patch.git import batched_contents, find_git
from codex_py.patch.undo.entries import Entries
from codex_py.programs import programs_outside
from codex_py.protocol.frozen import frozen
from codex_py.rollout.index import find_session, thread_names
from codex_py.rollout.listing import TurnStart, title_of, turn_starts
from codex_py.rollout.records import SessionMeta, read_meta
from codex_py.streams.standard import tell

MAX_BYTES: Final = 10 * 1024 * 1024
"""Of a file; the journal keeps no larger ones either."""
_MAX_COMMITS: Final = 200
"""Commits of a file that are asked for lines that were there before a turn."""
_PROMPT_CHARACTERS: Final = 60


@frozen
class TurnFacts:
    """What is known of a turn. Without the session's file, little is."""

    session: str
    name: str | None
    turn: int
    time: float
    provider: str
    model: str | None
    prompt: str
    """Its first words."""


class Repository:
    """A work tree, with what sessions wrote in it and in its linked work trees.

    Raises:
        UsageError: the folder is in no git repository.
        CodexError: git cannot be run, or fails.
    """

    def __init__(self, config: Config, environment: Mapping[str, str], folder: Path) -> None:
        root = project_root(folder, (".git",))
        if root is None:
            raise UsageError(f"{folder} is in no git repository")
        self.root, self.home = root, config.home
        self.refuses = denials_of(config.files).refuses
        self.git = find_git(programs_outside(config.home, environment, root), environment)
        self.revision: str | None = None
        """The commit whose files are the current ones; None for the work tree."""
        listed = self.git.output(root, "worktree", "list", "--porcelain").splitlines()
        trees = [line[9:] for line in listed if line.startswith("worktree ")]
        self._roots = [f"{os.path.realpath(path)}/" for path in (root, *trees)]
        # For the time of one command.
        self._session, self._in_commits = cache(self._read_session), cache(self._read_commits)

    def commit(self, name: str) -> str:
        """The id of a commit. Raises a `UsageError` if there is none."""
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        done = self.git.run(self.root, *words)
        if done.returncode:
            what = "there is no commit yet" if name == "HEAD" else f"there is no commit {name!r}"
            raise UsageError(f"{what} in {self.root}")
        return done.stdout.decode().strip()

    def data(self, path: str) -> bytes:
        """The contents of a file, now or in `revision`.

        Raises:
            OSError: there is none, it is denied or too large.
        """
        place = self.root / path
        if self.revision is None:
            return read_whole(place, MAX_BYTES, root=self.root, refuses=self.refuses)
        if self.refuses(place):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if (found := self._contents([f"{self.revision}:{path}"])[0]) is None:
            raise FileNotFoundError(errno.ENOENT, f"it is not in commit {self.revision}")
        return found

    def authors(self, path: str, data: bytes, until: float = inf) -> list[Author | None]:
        """See `History.authors`."""
        return self._history.authors(path, as_lines(data), until)

    def changed(self, old: str, new: str) -> dict[str, tuple[bytes, bytes]]:
        """By path the contents of the files that differ between two trees, renames found. Raises a `CodexError`."""
        fields = self.git.names(self.root, "diff-tree", "-r", "-z", "-M", "--raw", old, new)
        found: dict[str, tuple[str, str]] = {}
        while fields:
            was, now, old_id, new_id, kind = fields.pop(0).removeprefix(":").split()
            path = [fields.pop(0) for _ in range(2 if kind[0] in "RC" else 1)][-1]
            # Neither links nor submodules.
            if now.startswith("100"):
                found[path] = old_id if was.startswith("100") else "", new_id
        names = [name for pair in found.values() for name in pair if name]
        contents = dict(zip(names, self._contents(names), strict=True))
        pairs = [(path, contents.get(a), contents[b]) for path, (a, b) in found.items()]
        return {path: (a or b"", b) for path, a, b in pairs if b is not None and b"\0" not in b}

    def facts(self, thread_id: str, turn: int, time: float) -> TurnFacts:
        meta, name, starts = self._session(thread_id)
        starts = [start for start in starts if start.time <= time] or [TurnStart(0.0, None, "")]
        title, provider = title_of(starts[-1].prompt), (meta and meta.model_provider) or ""
        prompt = title[:_PROMPT_CHARACTERS] + "…" * (len(title) > _PROMPT_CHARACTERS)
        return TurnFacts(thread_id, name, turn, time, provider, starts[-1].model, prompt)

    def _read_session(
        self, thread_id: str
    ) -> tuple[SessionMeta | None, str | None, list[TurnStart]]:
        with suppress(SessionError, OSError):
            if (path := find_session(self.home, thread_id)) is not None:
                name = thread_names(self.home).get(thread_id)
                return read_meta(path), name, list(turn_starts(path))
        return None, None, []

    def _contents(self, names: Sequence[str]) -> list[bytes | None]:
        if any("\n" in name for name in names):
            return [None] * len(names)
        stdin = b"".join(os.fsencode(name) + b"\n" for name in names)
        return list(batched_contents(self.git.data(self.root, "cat-file", "--batch", stdin=stdin)))

    def _current(self, path: str) -> list[bytes] | None:
        with suppress(OSError, ValueError):
            return as_lines(self.data(path))
        return None

    def _read_commits(self, path: str) -> Sequence[tuple[float, Counter[bytes]]]:
        """Those that are in no branch any more count too, as long as git has them."""
        words = ("--timestamp", "--all", "--reflog", "--full-history", f"-n{_MAX_COMMITS}")
        printed = self.git.output(self.root, "rev-list", *words, "--", f":(literal,top){path}")
        commits = [line.split() for line in printed.splitlines()]
        found = self._contents([f"{commit}:{path}" for _, commit in commits])
        both = zip(commits, found, strict=True)
        return [(float(time), Counter(as_lines(data))) for (time, _), data in both if data]

    @cached_property
    def _history(self) -> History:
        history = History(cache(self._current), self._in_commits)
        entries = Entries(Journal(self.home, self.root))
        known = {entry.number: entry for entry in entries.known}
        whole = {part: each for each in entries.known if each.turn for part in each.turn.patches}
        damaged, texts = len(entries.damaged), dict[bytes, bytes]()
        for entry in reversed(entries.in_force):
            turn = entry if entry.turn else whole.get(entry.number)
            names = list(self._names(entry, turn))
            if entry.state != State.COMMITTED or not any(names):
                continue
            try:
                changes = entries.journal.read(entry.number).changes
            except DamagedEntry:
                damaged += 1
                continue
            parts = [known.get(number) for number in entry.turn.patches] if entry.turn else []
            steps: list[FileStep] = []
            for change, name in zip(changes, names, strict=True):
                old, new = change.old, change.written
                is_known = change.kept and (change.before is None) == (old is None)
                if (
                    name
                    and is_known
                    and not change.is_link
                    and b"\0" not in (old or b"") + (new or b"")
                ):
                    # Versions share most of their lines.
                    before, after = (
                        None if side is None else [texts.setdefault(t, t) for t in as_lines(side)]
                        for side in (old, new)
                    )
                    author = _author(entry, turn, parts, change.path, change.location)
                    steps.append(FileStep(name, before, after, author))
            since = min((part.number for part in parts if part), default=entry.number)
            history.add(entry.number, steps, since)
        if damaged:
            tell(f"Of the journal, {damaged} entries are damaged: what they wrote is not known.")
        return history

    def _names(self, entry: Entry, turn: Entry | None) -> Iterator[str | None]:
        """The path of each change from the root of the repository; None for those that are elsewhere."""
        roots = list(self._roots)
        if turn and turn.turn and (meta := self._session(turn.turn.thread_id)[0]):
            # A work tree that was removed, or moved, if it was one of this repository.
            commit = meta.git.get("commit_hash")
            words = ("cat-file", "-e", f"{commit}^{{commit}}")
            if (
                commit
                and not Path(meta.cwd).exists()
                and not self.git.run(self.root, *words).returncode
            ):
                roots.append(f"{meta.cwd}/")
        for change in entry.changes:
            root = next((each for each in roots if change.location.startswith(each)), None)
            yield root and change.location.removeprefix(root)


def _author(
    entry: Entry, whole: Entry | None, parts: Sequence[Entry | None], path: str, location: str
) -> Author | None:
    """Who wrote what is new in a file; of a turn, besides its patches."""
    turn = whole.turn if whole else None
    if turn is None or (entry is whole and not turn.began):
        return None
    if entry is not whole:
        return Author(turn.thread_id, turn.number, "patch", entry.time, entry.time)
    # Between a patch and the first copy of the work tree, somebody else may have edited the file.
    doubts = turn.is_cut_off or path in turn.unsure
    for part in parts:
        is_early = part is not None and part.time < turn.began
        doubts |= part is None or (is_early and location in {c.location for c in part.changes})
    how = "unsure" if doubts else "command"
    return Author(turn.thread_id, turn.number, how, turn.began, entry.time)
