"""Reports a session to OpenTelemetry: spans, metrics and events.

The spans and metrics have the names of the GenAI conventions,
https://opentelemetry.io/docs/specs/semconv/gen-ai/. Events have the names and attributes that Codex
gives them. The texts of prompts, calls and outputs are reported only if the user asks for it.
"""

import time
from asyncio import CancelledError
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from opentelemetry import context, trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from codex_py.api.approvals import (
    ApprovalRequest,
    Approver,
    Review,
    approval_data,
    as_review,
)
from codex_py.api.calls import Dispatch, ToolOutput, ToolUse
from codex_py.api.events import Event, TurnCompleted, TurnFailed
from codex_py.api.extensions import (
    CodexError,
    ConfigError,
    Extension,
    Feature,
    Note,
    SessionSetup,
    Thread,
    TurnStart,
    UserPrompt,
    frozen,
)
from codex_py.api.models import (
    Completed,
    ModelStream,
    Prompt,
    ResponseEvent,
    Usage,
    model_in_use,
)
from codex_py.api.program import __version__
from codex_py.extensions.otel.export import Exports
from codex_py.extensions.otel.settings import Exporter

_NAME: Final = "codex-py"
_W3C: Final = TraceContextTextMapPropagator()
_SECONDS: Final = tuple(0.01 * 2**power for power in range(14))
"""The bounds of the buckets for durations, as in the conventions."""
_TOKENS: Final = tuple(4**power for power in range(14))
"""The bounds of the buckets for tokens."""
_DURATIONS: Final = {
    "invoke_agent": "gen_ai.invoke_agent.duration",
    "chat": "gen_ai.client.operation.duration",
    "execute_tool": "gen_ai.execute_tool.duration",
}
"""The metric for the duration of each operation."""
_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "xai": "x_ai",
}
"""The conventions' names of providers that have another name here."""


class Telemetry:
    """Reports a session and its subagents.

    Args:
        exporters: the destinations by the kind of signal.
        environment: the attribute `env` of all data; None for `dev`.
        log_prompt: report the texts of prompts.
        log_output: report the arguments and outputs of calls.

    Raises:
        ConfigError: an exporter cannot be used.
    """

    def __init__(
        self,
        setup: SessionSetup,
        *,
        exporters: Mapping[str, Exporter],
        environment: str | None,
        log_prompt: bool,
        log_output: bool,
    ) -> None:
        self.log_prompt = log_prompt
        self.log_output = log_output
        resource = {
            "service.name": setup.options.originator,
            "service.version": __version__,
            "env": "dev" if environment is None else environment,
        }
        try:
            self._exports = Exports(exporters, resource)
        except ValueError as error:
            # The SDK reads further variables, whose names begin with `OTEL_`.
            raise ConfigError(
                f"OpenTelemetry cannot be set up: {error}", key=("otel",)
            ) from error
        self.tracer = self._exports.traces.get_tracer(_NAME, __version__)
        self.logger = self._exports.logs.get_logger(_NAME, __version__)
        meter = self._exports.metrics.get_meter(_NAME, __version__)
        self.durations = {
            operation: meter.create_histogram(
                name, "s", explicit_bucket_boundaries_advisory=_SECONDS
            )
            for operation, name in _DURATIONS.items()
        }
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        variables = setup.environment
        headers = {name: variables.get(name.upper(), "") for name in _W3C.fields}
        self._outside = _W3C.extract(headers)
        """The context of the program that started us, from the variable `TRACEPARENT`."""
        self._has_warned = False

    def for_child(self, setup: SessionSetup) -> Feature:  # noqa: ARG002 - the exporters are shared
        return self

    def __call__(self, thread: Thread) -> Extension:
        own = _ThreadTelemetry(self, thread)
        return Extension(
            wrap_model=own.wrap_model,
            wrap_dispatch=own.wrap_dispatch,
            wrap_approver=own.wrap_approver,
            before_prompt=own.before_prompt,
            around_turn=own.around_turn,
            around_session=lambda: self._around_session(thread, own),
            sink=own.sink,
        )

    def parent(self) -> context.Context:
        """Return the context that a new span belongs to.

        It is that of the call that started a subagent, or of the library's caller. Without either,
        it is that of the environment.
        """
        current = context.get_current()
        if trace.get_current_span(current).get_span_context().is_valid:
            return current
        return self._outside

    def warn_of_failure(self, thread: Thread) -> None:
        """Warn about the first export that failed."""
        failure = self._exports.failure
        if failure and not self._has_warned:
            self._has_warned = True
            thread.warn(f"OpenTelemetry is not told of all of this session: {failure}.")

    @asynccontextmanager
    async def _around_session(
        self, thread: Thread, own: "_ThreadTelemetry"
    ) -> AsyncGenerator[None]:
        """Log the start of a session. At the end of the one at the top, export the rest."""
        settings = thread.settings
        own.log(
            "conversation_starts",
            provider_name=settings.provider,
            approval_policy=str(approval_data(settings.approval_policy)),
            sandbox_policy=settings.sandbox_policy.mode,
        )
        try:
            yield
        finally:
            if thread.parent is None:
                await self._exports.aclose()
                self.warn_of_failure(thread)


@frozen
class _Operation:
    """A step that takes time and may fail: a span, and a value of a metric."""

    span: trace.Span
    attributes: dict[str, Any]
    """The attributes of the metric."""
    began: float
    """The time of the start, on the clock of `time.monotonic()`."""

    @property
    def milliseconds(self) -> int:
        """The time since the start."""
        return round(1000 * (time.monotonic() - self.began))

    def fail(self, code: str) -> None:
        """Mark the operation as failed, with a code of ours or the name of an exception."""
        self.attributes["error.type"] = code
        self.span.set_attribute("error.type", code)
        self.span.set_status(trace.StatusCode.ERROR)

    @property
    def headers(self) -> dict[str, str]:
        """The headers for steps below the span: `traceparent`, and `tracestate` if there is one."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, trace.set_span_in_context(self.span))
        return carrier


class _ThreadTelemetry:
    """Reports one thread."""

    def __init__(self, shared: Telemetry, thread: Thread) -> None:
        self._shared = shared
        self._thread = thread
        self._turn: _Operation | None = None
        """The running turn."""
        self._turn_usage = Usage()

    async def before_prompt(self, prompt: UserPrompt) -> list[Note]:
        """Log a prompt, with its text if the user asks for it."""
        text = prompt.text if self._shared.log_prompt else "[REDACTED]"
        self.log("user_prompt", prompt_length=len(prompt.text), prompt=text)
        return []

    @asynccontextmanager
    async def around_turn(self, turn: TurnStart) -> AsyncGenerator[None]:
        """Begin the operation of a turn. `sink` ends it with the last event of the turn."""
        parent = self._thread.parent
        name = _NAME if parent is None else parent.nickname
        agent = {"gen_ai.agent.name": name, "gen_ai.agent.version": __version__}
        span_only = {"gen_ai.agent.id": self._thread.thread_id, "turn.id": turn.id}
        self._turn = self._begin("invoke_agent", name, agent, span_only)
        self._turn_usage = Usage()
        token = context.attach(trace.set_span_in_context(self._turn.span))
        try:
            yield
        finally:
            context.detach(token)
            self._shared.warn_of_failure(self._thread)

    def sink(self, event: Event) -> None:
        turn = self._turn
        if turn is not None and isinstance(event, TurnCompleted | TurnFailed):
            if isinstance(event, TurnFailed):
                turn.fail(event.error.code)
            turn.span.set_attributes(_usage_attributes(self._turn_usage))
            self._end(turn)
            self._turn = None

    def wrap_model(self, inner: ModelStream) -> ModelStream:
        """Record a span and the figures of each request."""

        @asynccontextmanager
        async def stream(
            prompt: Prompt,
        ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
            _, model = model_in_use(self._thread)
            span_only = {"gen_ai.request.stream": True}
            chat = self._begin(
                "chat", model, span_only=span_only, kind=trace.SpanKind.CLIENT
            )
            facts: dict[str, Any] = {}
            traced = replace(prompt, headers=chat.headers)
            try:
                with self._ending(chat):
                    async with inner(traced) as events:
                        yield self._counted(events, chat)
            except CodexError as error:
                facts = {
                    "error.type": error.code,
                    "http.response.status_code": error.status,
                }
                raise
            finally:
                self.log("api_request", duration_ms=chat.milliseconds, **facts)

        return stream

    def wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        """Record a span and the result of each call."""

        async def dispatch(use: ToolUse) -> ToolOutput:
            name = use.tool.name
            call = use.call
            tool = {"gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
            span_only = {"gen_ai.tool.call.id": call.call_id}
            running = self._begin("execute_tool", name, tool, span_only)
            with (
                self._ending(running),
                trace.use_span(running.span, record_exception=False),
            ):
                output = await inner(_with_variables(use, running.headers))
                if output.error_code or not output.success:
                    running.fail(output.error_code or "tool_error")
                is_logged = self._shared.log_output
                self.log(
                    "tool_result",
                    duration_ms=running.milliseconds,
                    tool_name=name,
                    call_id=call.call_id,
                    success=output.success,
                    arguments=str(call.payload) if is_logged else None,
                    output=output.text if is_logged else None,
                )
            return output

        return dispatch

    def wrap_approver(self, inner: Approver) -> Approver:
        """Record each decision on an approval."""

        return _LoggingApprover(inner, self.log)

    async def _counted(
        self, events: AsyncIterator[ResponseEvent], chat: _Operation
    ) -> AsyncIterator[ResponseEvent]:
        """Pass the events on, and record the usage of the response."""
        async for event in events:
            if isinstance(event, Completed):
                self._count(event.usage, chat)
            yield event

    def _count(self, usage: Usage, chat: _Operation) -> None:
        self._turn_usage += usage
        chat.span.set_attributes(_usage_attributes(usage))
        counts = {"input": usage.input_tokens, "output": usage.output_tokens}
        for kind, tokens in counts.items():
            attributes = {**chat.attributes, "gen_ai.token.type": kind}
            self._shared.tokens.record(tokens, attributes)
        self.log(
            "sse_event",
            **{"event.kind": "response.completed"},
            input_token_count=usage.input_tokens,
            output_token_count=usage.output_tokens,
            cached_token_count=usage.cached_input_tokens,
            reasoning_token_count=usage.reasoning_output_tokens,
        )

    def _begin(
        self,
        name: str,
        subject: str,
        attributes: Mapping[str, str] = MappingProxyType({}),
        span_only: Mapping[str, Any] = MappingProxyType({}),
        kind: trace.SpanKind = trace.SpanKind.INTERNAL,
    ) -> _Operation:
        """Begin an operation.

        Args:
            name: the operation, a key of `_DURATIONS`.
            subject: the agent, the model or the tool, for the name of the span.
            attributes: attributes of the span and the metric.
            span_only: attributes that the metric does not have.
        """
        provider, model = model_in_use(self._thread)
        common = {
            "gen_ai.operation.name": name,
            "gen_ai.request.model": model,
            **attributes,
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        }
        span = self._shared.tracer.start_span(
            f"{name} {subject}",
            self._shared.parent(),
            kind,
            attributes={
                **common,
                "gen_ai.conversation.id": self._thread.thread_id,
                **span_only,
            },
        )
        return _Operation(span, common, time.monotonic())

    @contextmanager
    def _ending(self, operation: _Operation) -> Generator[None]:
        """End the operation with the context. It fails if an exception leaves the context."""
        try:
            yield
        except BaseException as error:
            operation.fail(_error_type(error))
            raise
        finally:
            self._end(operation)

    def _end(self, operation: _Operation) -> None:
        operation.span.end()
        name = operation.attributes["gen_ai.operation.name"]
        elapsed_s = time.monotonic() - operation.began
        self._shared.durations[name].record(elapsed_s, operation.attributes)

    def log(self, name: str, **attributes: Any) -> None:
        """Log an event below the current span. An attribute with the value None is left out."""
        event = f"codex.{name}"
        known = {key: value for key, value in attributes.items() if value is not None}
        record = LogRecord(
            timestamp=time.time_ns(),
            severity_number=SeverityNumber.INFO,
            event_name=event,
            attributes={
                **known,
                "event.name": event,
                "conversation.id": self._thread.thread_id,
                "model": self._thread.settings.model,
            },
        )
        self._shared.logger.emit(record)


def _error_type(error: BaseException) -> str:
    match error:
        case CancelledError():
            return "aborted"
        case CodexError():
            return error.code
        case _:
            return type(error).__name__


def _with_variables(use: ToolUse, headers: Mapping[str, str]) -> ToolUse:
    """Give the commands of a call these headers as variables, such as `TRACEPARENT`."""
    variables = {name.upper(): value for name, value in headers.items()}
    environment = {**use.context.environment, **variables}
    return replace(use, context=replace(use.context, environment=environment))


def _usage_attributes(usage: Usage) -> dict[str, int]:
    named = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read.input_tokens": usage.cached_input_tokens,
        "cache_creation.input_tokens": usage.cache_write_input_tokens,
        "reasoning.output_tokens": usage.reasoning_output_tokens,
    }
    return {f"gen_ai.usage.{name}": count for name, count in named.items()}


@frozen
class _LoggingApprover:
    """An `Approver` that logs each decision with `_ThreadTelemetry.log`."""

    inner: Approver
    log: Any

    async def review(self, request: ApprovalRequest) -> Review:
        review = as_review(await self.inner.review(request))
        self.log("tool_decision", kind=request.kind, decision=review.decision)
        return review
