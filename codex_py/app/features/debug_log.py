"""`--log`: a file that records a session, to be sent with a bug report.

Each line is a JSON object. The size of the file is limited, and secrets are left out.
"""

import json
import os
import platform
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from codex_py.app.options import SessionSetup
from codex_py.app.redaction import Redactor, map_texts
from codex_py.errors import CodexError, ConfigError
from codex_py.protocol.approval import approval_data
from codex_py.protocol.bugs import bug_found
from codex_py.protocol.dispatch import Dispatch, ToolUse
from codex_py.protocol.event_data import event_data
from codex_py.protocol.events import BugFound, Event
from codex_py.protocol.extension import Extension, Feature, Thread
from codex_py.protocol.stream import Completed, ModelStream, Prompt, ResponseEvent
from codex_py.protocol.tools import ToolOutput
from codex_py.version import __version__

_MAX_BYTES: Final = 10_000_000
_MAX_TEXT_CHARS: Final = 2_000
"""The limit of one text in a line, such as the output of a command."""


class DebugLog:
    """Writes to a file that subagents share.

    Once the file is full or cannot be written, further lines are dropped.

    Raises:
        ConfigError: the file cannot be opened.
    """

    def __init__(self, setup: SessionSetup) -> None:
        path = setup.config.settings.log_file
        assert path is not None
        # Only the user can read the file. Its earlier content is removed.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise ConfigError(
                f"the log {str(path)!r}: {error.strerror}", key=("log_file",)
            ) from None
        self._redacted = Redactor(setup.environment, setup.config.home)
        self._left_bytes = _MAX_BYTES
        self._began = time.monotonic()
        setup.network.tell_bug = self._write_bug

    def for_child(self, setup: SessionSetup) -> Feature:  # noqa: ARG002 - the file is one
        return self

    def __call__(self, thread: Thread) -> Extension:
        settings = thread.settings
        write = partial(self._write, thread.thread_id)
        write(
            "session",
            version=__version__,
            python=sys.version,
            platform=platform.platform(),
            at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            model=settings.model,
            provider=settings.provider,
            cwd=str(settings.cwd),
            sandbox=settings.sandbox_policy.mode,
            approvals=approval_data(settings.approval_policy),
        )

        log = _ThreadLog(write)
        return Extension(
            wrap_model=log.wrap_model, wrap_dispatch=log.wrap_dispatch, sink=log.sink
        )

    def _write_bug(self, error: Exception) -> None:
        """Write a bug that belongs to no thread."""
        self._write("", "bug", **_bug_facts(bug_found(error)))

    def _write(self, thread_id: str, what: str, **facts: Any) -> None:
        """Write a line. Its texts are shortened, and secrets are left out of them."""
        if self._left_bytes <= 0:
            return
        line = {
            "s": round(time.monotonic() - self._began, 3),
            "thread": thread_id,
            "what": what,
        }
        line |= map_texts(facts, self._safe)
        text = json.dumps(line, ensure_ascii=False)
        data = text.encode(errors="replace") + b"\n"
        self._left_bytes -= len(data)
        if self._left_bytes <= 0:
            data = b'{"what": "full"}\n'
        with suppress(OSError):
            os.write(self._file, data)

    def _safe(self, text: str) -> str:
        return _shortened(self._redacted(text))


class _ThreadLog:
    """Writes the requests, calls and events of one thread.

    Args:
        write: called with the kind of a line and its facts.
    """

    def __init__(self, write: Callable[..., None]) -> None:
        self._write = write

    def wrap_model(self, inner: ModelStream) -> ModelStream:
        """Write each request, and how it ended, to the log file."""

        @asynccontextmanager
        async def stream(
            prompt: Prompt,
        ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
            self._write("request", model=prompt.model, items=len(prompt.input))
            try:
                async with inner(prompt) as events:
                    self._write("answer")
                    yield self._read(events)
            except CodexError as error:
                self._write(
                    "failure",
                    code=error.code,
                    status=error.status,
                    message=str(error),
                )
                raise

        return stream

    async def _read(
        self, events: AsyncIterator[ResponseEvent]
    ) -> AsyncIterator[ResponseEvent]:
        """Pass the events on, and write their number when the response is complete."""
        count = 0
        async for event in events:
            count += 1
            if isinstance(event, Completed):
                self._write("answered", events=count, tokens=event.usage.total_tokens)
            yield event

    def wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        """Write each call, and how it ended, to the log file."""

        async def dispatch(use: ToolUse) -> ToolOutput:
            call_id = use.call.call_id
            self._write("call", tool=use.tool.name, id=call_id)
            output = await inner(use)
            self._write(
                "output", id=call_id, success=output.success, code=output.error_code
            )
            return output

        return dispatch

    def sink(self, event: Event) -> None:
        if isinstance(event, BugFound):
            self._write("bug", **_bug_facts(event))
            return
        data = event_data(event)
        if data is not None:
            self._write("event", event=data)


def _bug_facts(bug: BugFound) -> dict[str, str]:
    # The end of a traceback is its most useful part.
    end = bug.trace[-_MAX_TEXT_CHARS:]
    return {"error": bug.error, "trace": end}


def _shortened(text: str) -> str:
    if len(text) <= _MAX_TEXT_CHARS:
        return text
    return f"{text[:_MAX_TEXT_CHARS]}… ({len(text)} characters)"
