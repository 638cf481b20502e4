"""Opens a thread from its session file. Loaded only if a session is resumed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from codex_py.app.options import SessionSetup
from codex_py.app.redaction import REDACTED
from codex_py.app.thread import (
    OpenThread,
    ThreadFile,
    base_instructions,
    line_masker,
    new_file,
    thread_context,
)
from codex_py.app.worktrees.resumed import require_own_worktree
from codex_py.core.thread_log import ThreadState
from codex_py.errors import ExitCode, SessionError
from codex_py.protocol.ids import is_thread_id, new_thread_id
from codex_py.protocol.settings import TurnSettings
from codex_py.rollout.index import thread_names
from codex_py.rollout.reader import StoredSession, read_conversation, read_session
from codex_py.rollout.records import read_meta, token_count
from codex_py.rollout.writer import RolloutWriter, must_be_unused

_REDACTED: Final = REDACTED.encode()
_SHOWN_BYTES: Final = 32_000_000
"""The bytes that are read from the end of the file for display: a terminal shows the last few
hundred items."""


def resumed_thread(
    setup: SessionSetup, settings: TurnSettings, path: Path
) -> OpenThread:
    """Open the thread of a session file, with its whole history.

    A fork gets a file and an id of its own. So does a thread whose file Codex wrote with numbered
    lines, because such a file cannot be appended to. A warning says if the id that the user gave
    was resolved to a continuation of its thread.

    Raises:
        SessionError: the session must not continue in this folder, the file cannot be read or
            written, another process has it open, or no call in it waits for the answer that the
            options have.
    """
    config = setup.config
    options = setup.options
    if options.needs_own_worktree:
        require_own_worktree(config.home, path, config.cwd)
    fork = options.fork
    continues_codex_file = not fork and read_meta(path).native
    if continues_codex_file and not options.ephemeral:
        # A turn that still runs in Codex would be missing in the new file.
        must_be_unused(path)
    is_new_thread = fork or continues_codex_file
    is_continued = not is_new_thread and not options.ephemeral
    file, stored = _read(setup, path, is_continued=is_continued)
    base = stored.meta.base_instructions
    if base is None:
        base = base_instructions(config)
    thread_id = new_thread_id() if is_new_thread else stored.thread_id
    if file is None:
        file = new_file(
            setup,
            thread_id,
            base,
            stored.items,
            stored.thread_id,
            continues=not fork,
            provider=stored.meta.model_provider,
        )
        file.event_msg(
            token_count(stored.usage, stored.last_usage, settings.context_window)
        )
    if fork:
        name = None
    else:
        name = thread_names(config.home).get(stored.thread_id)
    if name is not None and thread_id != stored.thread_id:
        # The name must lead to the continuation.
        file.rename(name)
    _, context_warnings = thread_context(setup, settings)
    warnings = [
        *context_warnings,
        *_origin(setup, stored, thread_id),
        *_flaws(stored, path, settings),
    ]
    state = ThreadState(
        id=thread_id,
        instructions=base,
        provider=stored.meta.model_provider,
        items=stored.items,
        open_call=stored.open_call,
        read_conversation=lambda: read_conversation(path, _SHOWN_BYTES),
        usage=stored.usage,
        last_usage=stored.last_usage,
        # A file may lack the model; None would mean a new thread.
        model=stored.model or settings.model,
        name=name,
        parent=options.parent,
        file=file.path,
    )
    for warning in warnings:
        setup.warn(warning)
    return state, file


def _origin(
    setup: SessionSetup, stored: StoredSession, thread_id: str
) -> Iterator[str]:
    """Yield warnings if the thread continues with an unexpected id or provider."""
    options = setup.options
    provider = setup.config.model_provider
    asked = options.resume
    began_with = stored.meta.model_provider
    begins_new_file = options.fork or options.ephemeral
    asked_id = None
    if asked is not None and is_thread_id(asked):
        asked_id = asked.lower()
    if stored.meta.native and not begins_new_file:
        yield f"Session {stored.thread_id} was written by Codex; it goes on as {thread_id}."
    elif asked_id not in {None, stored.thread_id}:
        yield f"Session {asked} goes on as {thread_id}."
    if asked is None and began_with not in {None, provider}:
        yield f"This session began with the provider `{began_with}`; it goes on with `{provider}`."


def _read(
    setup: SessionSetup, path: Path, *, is_continued: bool
) -> tuple[ThreadFile | None, StoredSession]:
    """Read a session. Returns its writer too if the file is continued."""
    # Open the writer first: under its lock, no other process can append after the read.
    file = None
    if is_continued:
        file = RolloutWriter.resume(path, warn=setup.warn, masked=line_masker(setup))
    is_answered = setup.options.begins_with_call
    try:
        stored = read_session(path, leaves_open=is_answered)
        if is_answered and stored.open_call is None:
            reason = f"no call of session {stored.thread_id} waits for an approval"
            raise SessionError(reason, exit_code=ExitCode.USAGE)
        return file, stored
    except SessionError:
        if file is not None:
            file.discard()
        raise


def _flaws(
    stored: StoredSession,
    path: Path,
    settings: TurnSettings,
) -> Iterator[str]:
    if any(_REDACTED in item for item in stored.items):
        yield (
            "Keys were masked when this session was kept:"
            " the model reads [redacted] in their place."
        )
    if stored.damaged_lines:
        if stored.damaged_lines == 1:
            count = "1 line"
        else:
            count = f"{stored.damaged_lines} lines"
        yield f"{count} of {path} cannot be read, so tell the model again what it no longer knows."
    if stored.model not in {None, settings.model}:
        yield (
            f"This session was recorded with model `{stored.model}` but is resuming with"
            f" `{settings.model}`. Consider switching back, as it may affect performance."
        )
