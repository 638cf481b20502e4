"""Finds what sessions wrote in a repository, from the journal, the session files and git.

Nothing is written.
"""

import errno
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Final

from codex_py.commands.provenance.lines import (
    FileHistories,
    FileStep,
    LineAuthor,
    as_lines,
)
from codex_py.config.config import Config
from codex_py.config.paths import project_root
from codex_py.errors import SessionError, UsageError
from codex_py.filesystem.denials import denials_of
from codex_py.filesystem.reading import read_whole
from codex_py.patch.files.change import JournalEntry, State
from codex_py.patch.files.entry_file import DamagedEntry
from codex_py.patch.files.journal import Journal
from codex_py.patch.git import batched_contents, find_git, for_tree
from codex_py.patch.undo.entries import Entries
from codex_py.programs import programs_outside
from codex_py.protocol.frozen import frozen
from codex_py.rollout.index import find_session, thread_names
from codex_py.rollout.listing import ListedTurn, title_of, turn_starts
from codex_py.rollout.records import SessionMeta, read_meta
from codex_py.streams.standard import tell

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


class Repository:
    """A work tree, with what sessions wrote in it and in its linked work trees.

    Raises:
        UsageError: the folder is in no git repository.
        CodexError: git cannot be run, or fails.
    """

    def __init__(
        self, config: Config, environment: Mapping[str, str], folder: Path
    ) -> None:
        root = project_root(folder, (".git",))
        if root is None:
            raise UsageError(f"{folder} is in no git repository")
        self.root = root
        self.home = config.home
        self.refuses = denials_of(config.files).refuses
        programs = programs_outside(config.home, environment, root)
        self.plain_git = find_git(programs, environment)
        """The git to use outside the repository."""
        self.git = for_tree(self.plain_git, root)
        self.revision: str | None = None
        """The commit whose files are the current ones; None for the work tree."""
        listed = self.git.output(root, "worktree", "list", "--porcelain").splitlines()
        named = [Path(line[9:]) for line in listed if line.startswith("worktree ")]
        # A repository can list any folder as a work tree, but must not get the sessions of others.
        trees = [tree for tree in named if self.git.own_repository.has_tree(tree)]
        roots = {f"{os.path.realpath(path)}/" for path in (root, *trees)}
        # The innermost first.
        self._roots = sorted(roots, key=len, reverse=True)
        self._entries = Entries(Journal(self.home, root))
        self._known = {entry.number: entry for entry in self._entries.known}
        turns = [entry for entry in self._entries.known if entry.turn]
        self._turns = {
            part: each for each in turns if each.turn for part in each.turn.patches
        }
        # The cache lives as long as one command.
        self._meta = cache(self._read_meta)
        self._in_commits = cache(self._read_commits)
        self._has_commit = cache(self._looked_up)
        self._starts = cache(self._read_starts)
        self._names = cache(partial(thread_names, self.home))
        self._done: list[tuple[JournalEntry, JournalEntry | None, list[str]]] = []
        for entry in reversed(self._entries.in_force):
            if entry.state != State.COMMITTED:
                continue
            if entry.turn:
                whole = entry
            else:
                whole = self._turns.get(entry.number)
            self._done.append((entry, whole, self._paths(entry, whole)))

    def commit(self, name: str) -> str:
        """Find the id of a commit. Raises a `UsageError` if there is no such commit."""
        words = (
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{name}^{{commit}}",
        )
        done = self.git.run(self.root, *words)
        if done.returncode:
            if name == "HEAD":
                what = "there is no commit yet"
            else:
                what = f"there is no commit {name!r}"
            raise UsageError(f"{what} in {self.root}")
        return done.stdout.decode().strip()

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
        names = [name for pair in found.values() for name in pair if name]
        contents = dict(zip(names, self._contents(names), strict=True))
        pairs: dict[str, tuple[bytes, bytes]] = {}
        for path, (old_id, new_id) in found.items():
            written = contents[new_id]
            if written is not None and b"\0" not in written:
                pairs[path] = (contents.get(old_id) or b"", written)
        return pairs

    def facts(
        self,
        thread_id: str,
        turn: int,
        time: float,
    ) -> TurnFacts:
        starts = (
            start for start in reversed(self._starts(thread_id)) if start.time <= time
        )
        _, model, prompt = next(starts, ListedTurn(0.0, None, ""))
        meta = self._meta(thread_id)
        title = title_of(prompt)
        prompt = title[:_PROMPT_CHARACTERS]
        if len(title) > _PROMPT_CHARACTERS:
            prompt += "…"
        provider = (meta and meta.model_provider) or ""
        name = self._names().get(thread_id)
        return TurnFacts(thread_id, name, turn, time, provider, model, prompt)

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
        if any("\n" in name for name in names):
            return [None] * len(names)

        def asked(option: str, names: Sequence[str]) -> bytes:
            stdin = b"".join(os.fsencode(name) + b"\n" for name in names)
            return self.git.data(self.root, "cat-file", option, stdin=stdin)

        sizes = zip(
            names, asked("--batch-check=%(objectsize)", names).splitlines(), strict=True
        )
        small = [
            name for name, size in sizes if size.isdigit() and int(size) <= MAX_BYTES
        ]
        found = dict(zip(small, batched_contents(asked("--batch", small)), strict=True))
        return [found.get(name) for name in names]

    def _current(self, path: str) -> list[bytes] | None:
        with suppress(OSError, ValueError):
            return as_lines(self.data(path))
        return None

    def _read_commits(self, path: str) -> Sequence[tuple[float, Counter[bytes]]]:
        """Read the lines of a file in each commit, with the commit's time.

        Commits outside all branches count too, as long as git has them.
        """
        words = (
            "--timestamp",
            "--all",
            "--reflog",
            "--full-history",
            f"-n{_MAX_COMMITS}",
        )
        printed = self.git.output(
            self.root, "rev-list", *words, "--", f":(literal,top){path}"
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

        @cache
        def steps(n: int) -> tuple[list[FileStep], int, int]:
            found, since, until = self._steps(*self._done[n], damaged)
            # The versions of a file have nearly all lines in common: each line is kept once.
            shared = [
                s.mapped(lambda each: [*map(known.setdefault, each, each)])
                for s in found
            ]
            return shared, since, until

        @cache
        def sources(n: int) -> list[FileStep]:
            found, *_ = self._steps(*self._done[n], damaged)
            # Other files may be many: keep only those of their lines that were asked for.
            return [
                s.mapped(lambda each: [*filter(known.__contains__, each)])
                for s in found
            ]

        while True:
            history = FileHistories(cache(self._current), self._in_commits)
            further = set[str]()
            for n, (entry, _, names) in enumerate(self._done):
                if not paths.isdisjoint(names):
                    history.add(entry.number, *steps(n))
            unknown = [history.unknown(*each) for each in wanted.items()]
            for n, (_, _, names) in enumerate(self._done):
                if any(unknown) and not {"", *paths}.issuperset(names):
                    for step in sources(n):
                        if any(history.is_source(step, each) for each in unknown):
                            further.add(step.path)
            if further <= paths:
                break
            paths |= further
        count = len(damaged)
        if count:
            tell(
                f"Of the journal, {count} entries are damaged: what they wrote is not known."
            )
        return history

    def _steps(
        self,
        entry: JournalEntry,
        whole: JournalEntry | None,
        names: Sequence[str],
        damaged: set[int],
    ) -> tuple[list[FileStep], int, int]:
        """Read the changes of an entry. Returns the arguments for `FileHistories.add`.

        Args:
            whole: the entry of the turn.
        """
        try:
            changes = self._entries.journal.read(entry.number).changes
        except DamagedEntry:
            damaged.add(entry.number)
            changes = []
            names = ()
        turn = whole.turn if whole else None
        own = entry.turn
        parts: list[JournalEntry | None] = []
        has_early = False
        patched: set[str] = set()
        if own:
            parts = [self._known.get(number) for number in own.patches]
            for part in parts:
                # Between a patch and the first copy of the work tree, somebody else may have edited a file.
                if part is None:
                    has_early = True
                elif part.time < own.began:
                    has_early = True
                    patched.update(change.location for change in part.changes)
        # Lines that a turn moved out of files that others changed look new.
        is_unsure = None in parts or (own and (own.is_cut_off or own.of_others))
        steps: list[FileStep] = []
        for change, name in zip(changes, names, strict=True):
            old = change.old
            new = change.written
            is_known = change.kept and (change.before is None) == (old is None)
            has_nul = b"\0" in (old or b"") + (new or b"")
            is_text = not change.is_link and not has_nul
            if not (name and is_known and is_text):
                continue
            author = None
            began = own.began if own else entry.time
            if turn and began:
                how = "patch"
                if own:
                    how = "command"
                    by_others = change.path in own.unsure or change.location in patched
                    if is_unsure or by_others:
                        how = "unsure"
                author = LineAuthor(turn.thread_id, turn.number, how, began, entry.time)
            step = FileStep(name, _lines_of(old), _lines_of(new), author)
            steps.append(step)
        numbers = [part.number for part in parts if part]
        since = min(numbers, default=entry.number)
        if has_early:
            until = entry.number
        else:
            until = since
        return steps, since, until

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
        found = [
            (next(filter(p.startswith, roots), p), p)
            for p in (c.location for c in entry.changes)
        ]
        return [place.removeprefix(root) for root, place in found]

    def _looked_up(self, commit: str) -> bool:
        return not self.git.run(
            self.root, "cat-file", "-e", f"{commit}^{{commit}}"
        ).returncode


def _lines_of(data: bytes | None) -> list[bytes] | None:
    if data is None:
        return None
    return as_lines(data)
