"""Opens new threads, and finds the session file to resume. Part of the composition root. LIGHT."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from codex_py.app.agents_md import agents_md
from codex_py.app.options import SessionSetup
from codex_py.app.told_context import (
    environment_context,
    permissions_instructions,
    timezone_name,
)
from codex_py.app.user_programs import user_shell
from codex_py.config.config import Config
from codex_py.config.paths import folders_between, worktrees_folder
from codex_py.core.context import initial_items
from codex_py.core.thread_log import Recorder, ThreadState
from codex_py.errors import ExitCode, SessionError
from codex_py.filesystem.git import main_work_tree
from codex_py.instructions import instruction_text
from codex_py.protocol.event_items import ThreadItem
from codex_py.protocol.extension import ParentThread
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import ADMINISTRATORS
from codex_py.protocol.response_order import HistoryPlace
from codex_py.protocol.settings import TurnSettings
from codex_py.rollout.git_info import git_info
from codex_py.rollout.index import (
    latest_session,
    newest_continuation,
    require_active,
    require_session,
    why_none,
)
from codex_py.rollout.records import SessionMeta
from codex_py.rollout.writer import RolloutWriter
from codex_py.version import __version__


class ThreadFile(Recorder, Protocol):
    @property
    def path(self) -> Path | None:
        """The path of the session file; None if the session is not saved."""
        ...

    def close(self) -> None: ...

    def discard(self) -> None:
        """Close the file of a session that did not begin. A new file is removed."""
        ...


OpenThread: TypeAlias = tuple[ThreadState, ThreadFile]
"""A thread that is ready for turns, and its file."""


def new_file(
    setup: SessionSetup,
    thread_id: str,
    base_instructions: str,
    items: Iterable[EncodedItem],
    forked_from: str | None = None,
    *,
    continues: bool = False,
    provider: str | None = None,
) -> ThreadFile:
    """Create the file of a thread.

    Args:
        continues: this file continues the thread that it is forked from.
        provider: the provider of the items that have none of their own; None stands for the
            configured provider.

    Raises:
        SessionError: the file cannot be written.
    """
    config = setup.config
    options = setup.options
    if options.ephemeral:
        return _NoFile()
    parent = options.parent
    source = options.source if parent is None else _spawned(parent)
    meta = SessionMeta(
        id=thread_id,
        cwd=str(config.cwd),
        originator=options.originator,
        cli_version=__version__,
        source=source,
        root_id=parent and parent.root_id,
        parent_id=parent and parent.thread_id,
        model_provider=provider or config.model_provider,
        base_instructions=base_instructions,
        git=git_info(config.cwd),
        forked_from_id=forked_from,
        continues_id=forked_from if continues else None,
    )
    return RolloutWriter.create(
        config.home, meta, items, warn=setup.warn, masked=line_masker(setup)
    )


def line_masker(setup: SessionSetup) -> Callable[[bytes], bytes]:
    """Return a function that removes keys from a line of the session file.

    Without `history.redact`, it returns the line unchanged.
    """
    if not setup.config.settings.history.redact:
        # `bytes` returns a line as it is.
        return bytes
    from codex_py.app.redaction import Redactor  # 3 ms

    return Redactor(setup.environment, setup.config.home).line


def _spawned(parent: ParentThread) -> dict[str, Any]:
    """Return the `source` of a subagent, as Codex writes it."""
    spawn = {
        "parent_thread_id": parent.thread_id,
        "depth": parent.depth,
        "agent_path": None,
        "agent_nickname": parent.nickname,
        "agent_role": parent.role,
    }
    return {"subagent": {"thread_spawn": spawn}}


def thread_items(items: Sequence[EncodedItem]) -> list[ThreadItem]:
    """Return the thread items of a continued session, for a frontend to show.

    See `app.transcript.past_items`.
    """
    if not items:
        return []
    from codex_py.app.transcript import past_items  # 18 ms

    return past_items(items)


def thread_context(
    setup: SessionSetup, settings: TurnSettings
) -> tuple[list[EncodedItem], tuple[str, ...]]:
    """Return the first items of a new thread, and the warnings about AGENTS.md files."""
    config = setup.config
    environment = setup.environment
    agents = agents_md(
        home=config.home,
        folders=folders_between(config.project_root, config.cwd),
        max_bytes=config.project_doc_max_bytes,
        fallback_filenames=config.settings.project_doc_fallback_filenames,
        rules=settings.sandbox_policy.files,
    )
    permissions = permissions_instructions(
        settings.sandbox_policy, settings.approval_policy, config.cwd
    )
    place = environment_context(
        cwd=config.cwd,
        shell=user_shell(environment),
        sandbox_policy=settings.sandbox_policy,
        today=datetime.now().astimezone().date(),
        timezone=timezone_name(environment),
    )
    # The order is Codex's.
    developer = [
        config.developer_instructions,
        _administrators_instructions(config),
        permissions if config.settings.include_permissions_instructions else None,
    ]
    user = [agents.text, place if config.settings.include_environment_context else None]
    return initial_items(developer, user), agents.warnings


def _administrators_instructions(config: Config) -> str | None:
    """Return the instructions that the administrator requires, in their tags; None without any.

    By the tags, a resumed session finds out whether it has this text already.
    """
    text = config.requirements.keys.additional_developer_instructions
    if not text:
        return None
    end = ADMINISTRATORS.replace("<", "</")
    return f"{ADMINISTRATORS}\n{text}\n{end}"


def base_instructions(config: Config) -> str:
    own = config.base_instructions
    if own is None:
        return instruction_text("base.md")
    return own


def session_to_resume(setup: SessionSetup) -> Path | None:
    """Return the file of the session to resume; None to start a new one.

    Raises a `SessionError` if it is missing.
    """
    config = setup.config
    options = setup.options
    if options.resume is not None:
        path = require_session(config.home, options.resume)
        require_active(config.home, path)
        return newest_continuation(config.home, path)
    if not options.resume_last:
        return None
    cwd = None if options.resume_all else config.cwd
    path = latest_session(config.home, cwd=cwd)
    if path is None and cwd is not None:
        # A new worktree has no session yet, so the main checkout is searched.
        main = _in_main_checkout(config)
        if main is not None:
            cwd = main
            path = latest_session(config.home, cwd=cwd)
    if path is None:
        place = "" if cwd is None else f" in {cwd}"
        raise SessionError(
            f"no session to resume: none was recorded{place}{why_none(config.home)}",
            exit_code=ExitCode.USAGE,
        )
    return path


def _in_main_checkout(config: Config) -> Path | None:
    """The place of the working folder in the main checkout; None if it is in no worktree of ours."""
    root = config.project_root
    if root is None or not config.cwd.is_relative_to(worktrees_folder(config.home)):
        return None
    main = main_work_tree(root)
    if main is None:
        return None
    return main / config.cwd.relative_to(root)


def new_thread(setup: SessionSetup, settings: TurnSettings) -> OpenThread:
    """Open a new thread, with the base prompt and the context.

    If its file cannot be written, the thread has none, and the user is warned.
    """
    base = base_instructions(setup.config)
    context, warnings = thread_context(setup, settings)
    options = setup.options
    thread_id = options.new_id or new_thread_id()
    parent = options.parent
    if parent is not None and options.history:
        forked_from = parent.thread_id
    else:
        forked_from = None
    context = [*context, *options.history]
    try:
        file = new_file(setup, thread_id, base, context, forked_from)
    except SessionError as error:
        # The session works without its file, for instance if `$CODEX_HOME` is read-only.
        setup.warn(f"{error}; this session is not kept, as with --ephemeral")
        file = _NoFile()
    for warning in warnings:
        setup.warn(warning)
    state = ThreadState(
        id=thread_id,
        instructions=base,
        items=context,
        parent=parent,
        file=file.path,
    )
    return state, file


def continued_thread(state: ThreadState, settings: TurnSettings) -> OpenThread:
    """Open the thread of an earlier session that had no file.

    `settings`: the settings of the first turn. Their model stands for that of earlier turns if
    there were none.
    """
    return replace(state, model=state.model or settings.model), _NoFile()


class _NoFile:
    """The file of a session that is not saved."""

    path = None

    def response_item(
        self, item: EncodedItem, place: HistoryPlace | None = None
    ) -> None: ...
    def turn_context(self, payload: Mapping[str, Any]) -> None: ...
    def event_msg(
        self, payload: Mapping[str, Any], place: HistoryPlace | None = None
    ) -> None: ...
    def compacted(
        self, message: str, replacement_history: Sequence[EncodedItem]
    ) -> None: ...
    def rename(self, name: str) -> None: ...
    def close(self) -> None: ...
    def discard(self) -> None: ...
