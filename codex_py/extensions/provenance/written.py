"""Finds what sessions wrote in a repository, from the journal, the session files and git.

Nothing is written.
"""

import errno
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.api.commands import UsageError, frozen, tell
from codex_py.api.configuration import Config
from codex_py.api.files import denials_of, read_whole
from codex_py.api.git import (
    git_for,
    linked_work_trees,
    object_contents,
    repository_root,
)
from codex_py.api.journal import EntryChange, JournalEntry, TurnOfEntry, read_journal
from codex_py.api.session_files import (
    ListedTurn,
    SessionError,
    SessionMeta,
    find_session,
    read_meta,
    thread_names,
    title_of,
    turn_starts,
)
from codex_py.api.streams import cut
from codex_py.extensions.provenance.lines import (
    FileHistories,
    FileStep,
    LineAuthor,
    as_lines,
)

MAX_BYTES: Final = 10 * 1024 * 1024
"""Limit for a file that is read. The journal has the same limit."""
_MAX_COMMITS: Final = 200
"""Number of a file's commits that are searched for lines older than a turn."""
_PROMPT_CHARACTERS: Final = 60


@frozen
class TurnFacts:
    """The known facts about a turn. They are few without the session's file."""

    session: str
    name: str | None
    turn: int
    time: float
    provider: str
    model: str | None
    prompt: str
    """The first words of the prompt."""


class _Done(NamedTuple):
    """An entry of the journal that is in force."""

    entry: JournalEntry
    whole: JournalEntry | None
    """The entry of the turn that it is, or is a part of; None without a turn."""
    names: list[str]
    """The path of each change relative to the repository; empty for a path outside of it."""


class _Parts(NamedTuple):
    """The parts of a turn: the entries of its patches."""

    numbers: Sequence[int] = ()
    has_lost: bool = False
    """True if the journal no longer has all parts."""
    has_early: bool = False
    """True if a part is lost, or was written before the first copy of the work tree. Between such a
    part and that copy, somebody else may have edited a file."""
    patched_early: Collection[str] = ()
    """The files of early parts."""


class Repository:
    """A work tree, with what sessions wrote in it and in its linked work trees.

    Raises:
        UsageError: the folder is in no git repository.
        CodexError: git cannot be run, or fails.
    """

    def __init__(
        self,
        config: Config,
        environment: Mapping[str, str],
        folder: Path,
    ) -> None:
        root = repository_root(folder)
        if root is None:
            raise UsageError(f"{folder} is in no git repository")
        self.root = root
        self.home = config.home
        self.refuses = denials_of(config.files).refuses
        self.git = git_for(root, config.home, environment)
        self.plain_git = self.git.outside()
        self.revision: str | None = None
        """The commit whose files are the current ones; None for the work tree."""
        self._roots = self._read_roots()
        self._entries = read_journal(self.home, root)
        self._known = {entry.number: entry for entry in self._entries.known}
        # These caches live as long as one command.
        self._meta = cache(self._read_meta)
        self._in_commits = cache(self._read_commits)
        self._has_commit = cache(self._look_up_commit)
        self._starts = cache(self._read_starts)
        self._names = cache(partial(thread_names, self.home))
        self._done = self._read_done()

    def _read_roots(self) -> list[str]:
        """The real paths of the work trees, each with a slash at its end, the innermost first."""
        trees = linked_work_trees(self.git, self.root)
        roots = {f"{os.path.realpath(tree)}/" for tree in trees}
        return sorted(roots, key=len, reverse=True)

    def _read_done(self) -> list[_Done]:
        """The entries of the journal that count, the oldest first."""
        wholes: dict[int, JournalEntry] = {}
        for entry in self._entries.known:
            if entry.turn:
                wholes |= dict.fromkeys(entry.turn.patches, entry)
        done: list[_Done] = []
        for entry in self._entries.in_effect:
            if entry.turn:
                whole = entry
            else:
                whole = wholes.get(entry.number)
            done.append(_Done(entry, whole, self._paths(entry, whole)))
        return done

    def commit(self, name: str) -> str:
        """Find the id of a commit. Raises a `UsageError` if there is no such commit."""
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options")
        done = self.git.run(self.root, *words, f"{name}^{{commit}}")
        if done.returncode == 0:
            return done.stdout.decode().strip()
        if name == "HEAD":
            raise UsageError(f"there is no commit yet in {self.root}")
        raise UsageError(f"there is no commit {name!r} in {self.root}")

    def data(self, path: str) -> bytes:
        """The contents of a file, now or in `revision`.

        Raises:
            OSError: the file does not exist, is denied, or is too large.
        """
        place = self.root / path
        if self.revision is None:
            return read_whole(place, MAX_BYTES, root=self.root, refuses=self.refuses)
        if self.refuses(place):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        found = self._contents([f"{self.revision}:{path}"])[0]
        if found is None:
            raise FileNotFoundError(
                errno.ENOENT, f"it is not in commit {self.revision}, or too large"
            )
        return found

    def changed(self, old: str, new: str) -> dict[str, tuple[bytes, bytes]]:
        """Find the files that differ between two trees, following renames.

        Returns the old and new contents by path.

        Raises:
            CodexError: git fails.
        """
        found = self._changed_ids(old, new)
        names: list[str] = []
        for pair in found.values():
            names += filter(None, pair)
        contents = dict(zip(names, self._contents(names), strict=True))
        pairs: dict[str, tuple[bytes, bytes]] = {}
        for path, (old_id, new_id) in found.items():
            written = contents[new_id]
            if written is not None and b"\0" not in written:
                pairs[path] = (contents.get(old_id) or b"", written)
        return pairs

    def _changed_ids(self, old: str, new: str) -> dict[str, tuple[str, str]]:
        """The ids of the old and new contents of files that differ between two trees, by path.

        The old id is empty for a new file.
        """
        fields = self.git.names(
            self.root, "diff-tree", "-r", "-z", "-M", "--raw", old, new
        )
        found: dict[str, tuple[str, str]] = {}
        while fields:
            entry = fields.pop(0).removeprefix(":")
            was, now, old_id, new_id, kind = entry.split()
            path = fields.pop(0)
            is_renamed_or_copied = kind[0] in "RC"
            if is_renamed_or_copied:
                path = fields.pop(0)
            # Skip links and submodules.
            if not was.startswith("100"):
                old_id = ""
            if now.startswith("100"):
                found[path] = (old_id, new_id)
        return found

    def facts(
        self,
        thread_id: str,
        turn: int,
        time: float,
    ) -> TurnFacts:
        """Look up a turn. `time`: the turn is the last one that began before it."""
        model = None
        prompt = ""
        for start in self._starts(thread_id):
            if start.time <= time:
                _, model, prompt = start
        meta = self._meta(thread_id)
        provider = ""
        if meta is not None and meta.model_provider:
            provider = meta.model_provider
        shown = cut(title_of(prompt), _PROMPT_CHARACTERS)
        name = self._names().get(thread_id)
        return TurnFacts(thread_id, name, turn, time, provider, model, shown)

    def _read_starts(self, thread_id: str) -> list[ListedTurn]:
        with suppress(SessionError, OSError):
            path = find_session(self.home, thread_id)
            if path is not None:
                return list(turn_starts(path))
        return []

    def _read_meta(self, thread_id: str) -> SessionMeta | None:
        with suppress(SessionError):
            path = find_session(self.home, thread_id)
            if path is not None:
                return read_meta(path)
        return None

    def _contents(self, names: Sequence[str]) -> list[bytes | None]:
        """The contents of git's objects; None for those that are lost or too large."""
        return object_contents(self.git, self.root, names, MAX_BYTES)

    def _current(self, path: str) -> list[bytes] | None:
        with suppress(OSError, ValueError):
            return as_lines(self.data(path))
        return None

    def _read_commits(self, path: str) -> Sequence[tuple[float, Counter[bytes]]]:
        """Read the lines of a file in each commit, with the commit's time.

        Commits outside all branches count too, as long as git has them.
        """
        options = ("--timestamp", "--all", "--reflog", "--full-history")
        most = f"-n{_MAX_COMMITS}"
        printed = self.git.output(
            self.root, "rev-list", *options, most, "--", f":(literal,top){path}"
        )
        commits = [line.split() for line in printed.splitlines()]
        found = self._contents([f"{commit}:{path}" for _, commit in commits])
        read: list[tuple[float, Counter[bytes]]] = []
        for (time, _), data in zip(commits, found, strict=True):
            if data:
                read.append((float(time), Counter(as_lines(data))))
        return read

    def follow(self, wanted: Mapping[str, list[bytes]]) -> FileHistories:
        """Build the history of files with these lines now, and of files they may come from."""
        paths = {*wanted}
        damaged = set[int](self._entries.damaged)
        known = {line: line for lines in wanted.values() for line in lines}

        def shared(lines: list[bytes]) -> list[bytes]:
            # The versions of a file have nearly all lines in common: each line is kept once.
            return [known.setdefault(line, line) for line in lines]

        def asked_for(lines: list[bytes]) -> list[bytes]:
            # Other files may be many: keep only those of their lines that may be wanted.
            return [line for line in lines if line in known]

        @cache
        def steps(n: int) -> tuple[list[FileStep], int, int]:
            found, since, until = self._steps(self._done[n], damaged)
            return [step.mapped(shared) for step in found], since, until

        @cache
        def sources(n: int) -> list[FileStep]:
            found, _, _ = self._steps(self._done[n], damaged)
            return [step.mapped(asked_for) for step in found]

        while True:
            history = FileHistories(cache(self._current), self._in_commits)
            for n, done in enumerate(self._done):
                if not paths.isdisjoint(done.names):
                    history.add(done.entry.number, *steps(n))
            unknown = [history.unknown(path, lines) for path, lines in wanted.items()]
            if not any(unknown):
                break
            followed = {"", *paths}
            further: set[str] = set()
            for n, done in enumerate(self._done):
                if not followed.issuperset(done.names):
                    further |= _source_paths(history, sources(n), unknown)
            if further <= paths:
                break
            paths |= further
        _tell_damaged(len(damaged))
        return history

    def _steps(self, done: _Done, damaged: set[int]) -> tuple[list[FileStep], int, int]:
        """Read the changes of an entry. Returns the other arguments for `FileHistories.add`.

        Args:
            damaged: gets the number of the entry if it cannot be read.
        """
        entry = done.entry
        changes = self._entries.changes(entry.number)
        if changes is None:
            damaged.add(entry.number)
            return [], entry.number, entry.number
        parts = self._parts(entry.turn)
        steps: list[FileStep] = []
        for change, name in zip(changes, done.names, strict=True):
            if name and _is_known_text(change):
                author = _author(done, change, parts)
                old = _lines_of(change.old)
                new = _lines_of(change.written)
                steps.append(FileStep(name, old, new, author))
        since = min(parts.numbers, default=entry.number)
        if parts.has_early:
            return steps, since, entry.number
        return steps, since, since

    def _parts(self, turn: TurnOfEntry | None) -> _Parts:
        """Look up the parts of the turn that an entry records; None for an entry of a patch."""
        if turn is None:
            return _Parts()
        numbers = [number for number in turn.patches if number in self._known]
        has_lost = len(numbers) < len(turn.patches)
        has_early = has_lost
        patched_early: set[str] = set()
        for number in numbers:
            part = self._known[number]
            if part.time < turn.began:
                has_early = True
                patched_early.update(change.location for change in part.changes)
        return _Parts(numbers, has_lost, has_early, patched_early)

    def _paths(self, entry: JournalEntry, whole: JournalEntry | None) -> list[str]:
        """The path of each change relative to the repository; empty for paths outside it."""
        roots = self._roots
        # Looking for a session is slow if there are thousands.
        if whole and whole.turn and not Path(entry.cwd).exists():
            meta = self._meta(whole.turn.thread_id)
            commit = meta and meta.git.get("commit_hash")
            # The folder was a work tree of this repository that was removed or moved.
            if meta and commit and self._has_commit(commit):
                roots = [*roots, f"{meta.cwd}/"]
        return [_below(roots, change.location) for change in entry.changes]

    def _look_up_commit(self, commit: str) -> bool:
        """True if the repository has a commit of this id."""
        done = self.git.run(self.root, "cat-file", "-e", f"{commit}^{{commit}}")
        return done.returncode == 0


def _tell_damaged(count: int) -> None:
    if count:
        tell(
            f"Of the journal, {count} entries are damaged: what they wrote is not known."
        )


def _below(roots: Sequence[str], path: str) -> str:
    """The path relative to the first root that it is below, or "" if it is below none."""
    for root in roots:
        if path.startswith(root):
            return path.removeprefix(root)
    return ""


def _source_paths(
    history: FileHistories,
    steps: Sequence[FileStep],
    unknown: Sequence[set[bytes]],
) -> set[str]:
    """The files of these steps that some of the unknown lines may come from."""
    paths: set[str] = set()
    for step in steps:
        if any(history.is_source(step, lines) for lines in unknown):
            paths.add(step.path)
    return paths


def _is_known_text(change: EntryChange) -> bool:
    """True if the journal has the contents before and after a change, and they are text."""
    has_both = change.kept and (change.before is None) == (change.old is None)
    if not has_both or change.is_link:
        return False
    return b"\0" not in (change.old or b"") + (change.written or b"")


def _author(
    done: _Done,
    change: EntryChange,
    parts: _Parts,
) -> LineAuthor | None:
    """The author of the lines that a change added; None if it belongs to no turn."""
    entry = done.entry
    own = entry.turn
    turn = done.whole.turn if done.whole else None
    began = own.began if own else entry.time
    if turn is None or not began:
        return None
    how = "patch"
    if own is not None:
        how = "command"
        # Lines that a turn moved out of files that others changed look new.
        if parts.has_lost or own.is_cut_off or own.of_others:
            how = "unsure"
        by_others = change.path in own.unsure or change.location in parts.patched_early
        if by_others:
            how = "unsure"
    return LineAuthor(turn.thread_id, turn.number, how, began, entry.time)


def _lines_of(data: bytes | None) -> list[bytes] | None:
    if data is None:
        return None
    return as_lines(data)
