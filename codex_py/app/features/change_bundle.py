"""Writes the changes of a turn as a change bundle: `exec --bundle FILE`. See `patch.bundle`.

It compares the work tree before and after the turn, so every change of a file counts, whoever made
it.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codex_py.app.features.gates.feature import Gates
from codex_py.app.options import SessionSetup
from codex_py.config.paths import project_root
from codex_py.errors import UsageError
from codex_py.filesystem.denials import denials_of
from codex_py.patch.bundle import bundle_key, written_bundle
from codex_py.patch.git import Git, repository_git
from codex_py.patch.trees import aside, diff_between, work_tree
from codex_py.patch.undo.copies.changes import identity, open_for_writing
from codex_py.programs import programs_outside
from codex_py.protocol.extension import Extension, Thread, TurnStart
from codex_py.version import __version__


class ChangeBundle:
    """The feature behind `exec --bundle`.

    Raises:
        CodexError: the session is in no git repository, git is not installed, or the key is too
            short.
    """

    def __init__(self, setup: SessionSetup) -> None:
        home = setup.config.home
        cwd = setup.config.cwd
        root = project_root(cwd, (".git",))
        if root is None:
            raise UsageError(f"--bundle: {cwd} is in no git repository")
        self._top: Path = root
        programs = programs_outside(home, setup.environment, root)
        self._git = repository_git(programs, setup.environment, root)
        self._key = bundle_key(setup.environment)
        self._setup = setup

    def __call__(self, thread: Thread) -> Extension:
        @asynccontextmanager
        async def around_turn(turn: TurnStart) -> AsyncGenerator[None]:
            with ExitStack() as stack:
                git, head, tree = await asyncio.to_thread(self._begin, stack)
                yield
                # This is not reached if the turn failed.
                keep = self._setup.options.bundle
                assert keep is not None
                diff, files = await asyncio.to_thread(self._changes, git, tree)
                facts = _facts(thread, turn)
                facts["base"] = head or None
                facts["files"] = files

                def write(exit_code: int):
                    complete = {**facts, "exit_code": exit_code}
                    return written_bundle(complete, diff, self._key)

                keep(write)

        return Extension(around_turn=around_turn)

    def _begin(self, stack: ExitStack) -> tuple[Git, str, str]:
        """Return git with its own folder for objects, the commit of HEAD, and the work tree.

        The commit is empty in a repository without one. The stack removes the folder.
        """
        git = stack.enter_context(aside(self._git))
        done = git.run(self._top, "rev-parse", "--verify", "--quiet", "HEAD")
        head = done.stdout.decode().strip()
        return git, head, self._tree(git)

    def _tree(self, git: Git) -> str:
        """Return the name of a git tree with the present files."""
        own = open_for_writing()
        # Commands may have changed the configuration meanwhile.
        git = git.without_filters(self._top)
        # A log file that our own output is redirected to is not a change.
        denials = denials_of(self._setup.config.files)

        def is_left_out(name: str) -> bool:
            path = self._top / name
            return identity(path) in own or denials.refuses(path)

        return work_tree(git, self._top, is_left_out)

    def _changes(
        self, git: Git, before: str
    ) -> tuple[bytes, list[dict[str, str | None]]]:
        """Return the diff since the tree `before`, and the changed files with the names of their
        blobs.
        """
        after = self._tree(git)
        options = ("-r", "-z", "--no-renames", "--ignore-submodules=all")
        fields = git.names(self._top, "diff-tree", *options, before, after)
        files: list[dict[str, str | None]] = []
        # The modes and blobs of a file and its path take turns.
        pairs = zip(fields[::2], fields[1::2], strict=True)
        for blobs, path in pairs:
            _, _, old_id, new_id, *_ = blobs.split()
            old = _blob(old_id)
            new = _blob(new_id)
            files.append({"path": path, "before": old, "after": new})
        return diff_between(git, self._top, before, after), files


def _blob(name: str) -> str | None:
    """Return the name of a blob as git prints it.

    A name of zeros means that there is no file, and becomes None.
    """
    if name.strip("0"):
        return name
    return None


def _facts(thread: Thread, turn: TurnStart) -> dict[str, Any]:
    """Return the facts of a bundle that do not come from git."""
    gates = thread.feature(Gates)
    verdicts: Mapping[str, Any] = {}
    if gates is not None:
        verdicts = gates.turn_facts()
    prompt = "" if turn.prompt is None else turn.prompt.text
    encoded_prompt = prompt.encode(errors="replace")
    return {
        "program": f"codex-py {__version__}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "session": thread.thread_id,
        "model": thread.settings.model,
        "prompt_sha256": hashlib.sha256(encoded_prompt).hexdigest(),
        "gates": verdicts.get("gates", []),
        "evidence": verdicts.get("evidence", []),
    }
