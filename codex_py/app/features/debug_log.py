"""`--log`: a file that records a session, to be sent with a bug report.

It is bounded, and has no keys.
"""

import json
import os
import platform
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from codex_py.app.export.redaction import Redactor, map_texts
from codex_py.app.options import SessionSetup
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
    """

    def __init__(self, setup: SessionSetup) -> None:
        path = setup.config.settings.log_file
        assert path is not None
        try:
            # Only the user can read the file. Its earlier content is removed.
            self._file = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise ConfigError(
                f"the log {str(path)!r}: {error.strerror}", key=("log_file",)
            ) from None
        self._redacted = Redactor(setup.environment, setup.config.home)
        self._left = _MAX_BYTES
        self._began = time.monotonic()
        setup.network.tell_bug = self._write_bug

    def for_child(self, setup: SessionSetup) -> Feature:  # noqa: ARG002 - the file is one
        return self

    def __call__(self, thread: Thread) -> Extension:
        settings = thread.settings
        name = thread.thread_id
        self._write(
            name,
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

        def wrap_model(inner: ModelStream) -> ModelStream:
            """Write each request, and how it ended, to the log file."""

            @asynccontextmanager
            async def stream(
                prompt: Prompt,
            ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
                self._write(
                    name, "request", model=prompt.model, items=len(prompt.input)
                )
                try:
                    async with inner(prompt) as events:
                        self._write(name, "answer")
                        yield self._read(name, events)
                except CodexError as error:
                    facts = {
                        "code": error.code,
                        "status": error.status,
                        "message": str(error),
                    }
                    self._write(name, "failure", **facts)
                    raise

            return stream

        def wrap_dispatch(inner: Dispatch) -> Dispatch:
            """Write each call, and how it ended, to the log file."""

            async def dispatch(use: ToolUse) -> ToolOutput:
                self._write(name, "call", tool=use.tool.name, id=use.call.call_id)
                output = await inner(use)
                facts = {"success": output.success, "code": output.error_code}
                self._write(name, "output", id=use.call.call_id, **facts)
                return output

            return dispatch

        def sink(event: Event) -> None:
            if isinstance(event, BugFound):
                self._write_trace(name, event)
            elif (data := event_data(event)) is not None:
                self._write(name, "event", event=data)

        return Extension(wrap_model=wrap_model, wrap_dispatch=wrap_dispatch, sink=sink)

    def _write_bug(self, error: Exception) -> None:
        self._write_trace("", bug_found(error))

    def _write_trace(self, thread: str, bug: BugFound) -> None:
        # The end of a traceback is its most useful part.
        self._write(thread, "bug", error=bug.error, trace=bug.trace[-_MAX_TEXT_CHARS:])

    async def _read(
        self, thread: str, events: AsyncIterator[ResponseEvent]
    ) -> AsyncIterator[ResponseEvent]:
        count = 0
        async for event in events:
            count += 1
            if isinstance(event, Completed):
                self._write(
                    thread, "answered", events=count, tokens=event.usage.total_tokens
                )
            yield event

    def _write(
        self,
        thread: str,
        what: str,
        **facts: Any,
    ) -> None:
        if self._left <= 0:
            return
        line = {
            "s": round(time.monotonic() - self._began, 3),
            "thread": thread,
            "what": what,
        }
        line |= map_texts(facts, lambda text: _shortened(self._redacted(text)))
        data = json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n"
        self._left -= len(data)
        if self._left <= 0:
            data = b'{"what": "full"}\n'
        with suppress(OSError):
            os.write(self._file, data)


def _shortened(text: str) -> str:
    if len(text) <= _MAX_TEXT_CHARS:
        return text
    return f"{text[:_MAX_TEXT_CHARS]}… ({len(text)} characters)"
