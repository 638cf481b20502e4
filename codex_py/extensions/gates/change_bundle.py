"""`exec --bundle FILE`: writes the changes of the last turn as a change bundle; docs/ci.md describes it.

It compares the work tree before and after the turn, so every change of a file counts, whoever made
it.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from codex_py.api.change_bundles import (
    ComparedRepository,
    RepositoryChanges,
    bundle_key,
    written_bundle,
)
from codex_py.api.files import OutputFile
from codex_py.api.options import (
    Config,
    Extension,
    Options,
    SessionSetup,
    Thread,
    TurnResult,
    TurnStart,
    UsageError,
    option,
)
from codex_py.api.program import __version__


class BundleOptions(Options):
    commands = ("exec", "review")
    is_repeated = False

    bundle: Annotated[str | None, option("--bundle")] = None

    def begin(self, config: Config) -> None:
        assert self.bundle is not None
        root = config.project_root or config.cwd
        # The bundle of an earlier run must not be taken for this run's.
        self._file = OutputFile(Path(self.bundle), root, "the bundle", empty=True)

    def feature(self, setup: SessionSetup) -> "ChangeBundle":
        self._made = ChangeBundle(setup)
        return self._made

    def finish(self, result: TurnResult) -> None:
        text = self._made.text(result)
        if text is not None:
            self._file.write(text)


class ChangeBundle:
    """Finds the changes of each turn, and makes the bundle of the last one.

    Raises:
        CodexError: the session is in no git repository, git is not installed, or the key is too
            short.
    """

    def __init__(self, setup: SessionSetup) -> None:
        try:
            self._repository = ComparedRepository(setup)
        except UsageError as error:
            raise UsageError(f"--bundle: {error}") from None
        self._key = bundle_key(setup.environment)
        self._changes: RepositoryChanges | None = None
        """The changes of the last turn; None if it failed."""
        self._head: str | None = None
        self._facts: dict[str, Any] = {}
        """The facts that are known before the end of the turn."""

    def __call__(self, thread: Thread) -> Extension:
        @asynccontextmanager
        async def around_turn(turn: TurnStart) -> AsyncGenerator[None]:
            self._changes = None
            with ExitStack() as stack:
                remembering = self._repository.remember()
                earlier = await asyncio.to_thread(stack.enter_context, remembering)
                yield
                # This is not reached if the turn failed.
                changes = await asyncio.to_thread(self._repository.changes, earlier)
                self._facts = _facts(thread, turn)
                self._head = earlier.head
                self._changes = changes

        if thread.parent is not None:
            # The changes of subagents are changes of the turn of the session at the top.
            return Extension()
        return Extension(around_turn=around_turn)

    def text(self, result: TurnResult) -> str | None:
        """Return the bundle of the last turn. None: the turn failed."""
        if self._changes is None or result.error is not None:
            return None
        facts = {
            **self._facts,
            "gates": result.facts.get("gates", []),
            "evidence": result.facts.get("evidence", []),
            "base": self._head,
            "files": self._changes.files,
            "exit_code": result.exit_code,
        }
        return written_bundle(facts, self._changes.diff, self._key)


def _facts(thread: Thread, turn: TurnStart) -> dict[str, Any]:
    prompt = "" if turn.prompt is None else turn.prompt.text
    encoded_prompt = prompt.encode(errors="replace")
    return {
        "program": f"codex-py {__version__}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "session": thread.thread_id,
        "model": thread.settings.model,
        "prompt_sha256": hashlib.sha256(encoded_prompt).hexdigest(),
    }
