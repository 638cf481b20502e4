"""Requests to a model, the events of its response, and the protocols between them."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field, fields
from typing import Any, Final, Literal, Protocol, TypeAlias

from codex_py.errors import ConfigError
from codex_py.protocol.frozen import frozen
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.messages import EncodedItem, estimated_tokens
from codex_py.protocol.tools import ToolSpec


@frozen
class ToolChoice:
    """The tools that the model may or must call, by the names under which they are offered."""

    mode: Literal["auto", "none", "required"] = "auto"
    names: tuple[str, ...] = ()
    """The allowed tools; empty allows all. With `required` and one name, that tool is called."""

    @classmethod
    def parse(cls, text: str) -> "ToolChoice":
        """Read `auto`, `none`, `required`, the name of a tool, or `allowed:A,B`.

        Raises:
            ConfigError: the text is none of these.
        """
        if text in {"auto", "none", "required"}:
            mode: Any = text
            return cls(mode)
        kind, _, after_colon = text.partition(":")
        names = [name.strip() for name in after_colon.split(",")]
        allowed = tuple([name for name in names if name])
        if kind == "allowed" and allowed:
            return cls("auto", allowed)
        if re.fullmatch(r"[\w.-]+", text):
            return cls("required", (text,))
        raise ConfigError(
            f"tool_choice: {text!r} is not supported; use auto, none, required, the name of"
            " a tool, or allowed:A,B",
            key=("tool_choice",),
        )


ANY_TOOL: Final = ToolChoice()


@frozen
class Abilities:
    """The abilities of a model that change its requests."""

    images: bool = True
    thinking: Literal["budget"] | None = None
    """The way to ask the Messages API for an effort; None: as the profile of the provider says."""


@frozen
class Prompt:
    """One request to a model, in terms that every wire can express."""

    model: str
    input: Sequence[EncodedItem]
    """The whole history after the base prompt. The history of a thread is one growing list: a wire
    may cache its translation."""
    cache_key: str
    """The thread id; requests of one thread share the provider's prompt cache."""
    instructions: str = ""
    """The base prompt; may be empty."""
    tools: Sequence[ToolSpec] = ()
    tool_choice: ToolChoice = ANY_TOOL
    parallel_tool_calls: bool = True
    reasoning: dict[str, Any] | None = None
    """`effort`, `summary`; None leaves the key out."""
    verbosity: str | None = None
    output_schema: Any = None
    """JSON Schema of the answer; None allows any text."""
    service_tier: str | None = None
    max_output_tokens: int | None = None
    """Limit on the output, reasoning included; None: the provider's own."""
    abilities: Abilities = field(default_factory=Abilities)
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers of this request alone."""

    @property
    def has_images(self) -> bool:
        return any(b'"input_image"' in item for item in self.input)

    @property
    def estimated_tokens(self) -> int:
        return estimated_tokens([self.head, *self.input])

    @property
    def head(self) -> EncodedItem:
        """The part of the request before the input, for estimates."""
        return EncodedItem(f"{self.instructions}{self.tools}".encode(errors="replace"))


@frozen
class Usage:
    """Tokens of one response, or of many added up."""

    input_tokens: int = 0
    """The tokens of the input, cached ones included."""
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        names = [each.name for each in fields(self)]
        sums = [getattr(self, name) + getattr(other, name) for name in names]
        return Usage(*sums)

    def __sub__(self, other: "Usage") -> "Usage":
        names = [each.name for each in fields(self)]
        differences = [getattr(self, name) - getattr(other, name) for name in names]
        return Usage(*differences)


@frozen
class Created:
    """The response has begun. A stream has at most one."""


@frozen
class OutputItemAdded:
    """The first sign that the model has written something of an item.

    It is the announcement of the item, or a delta of an item that was not announced.
    """


@frozen
class OutputTextDelta:
    """Text of a message as it arrives."""

    output_index: int
    delta: str


@frozen
class ReasoningDelta:
    """Text of the model's reasoning as it arrives."""

    output_index: int
    delta: str
    part: int
    """The number of the section that the text belongs to."""
    raw: bool = False
    """True for a section of the raw reasoning, False for one of its summary."""


@frozen
class OutputItemDone:
    """An item is complete. A stream has one for each item, even if the server repeats it."""

    output_index: int
    """The place of the item in the response. Items may complete in another order."""
    item: ResponseItem


@frozen
class PlanLimit:
    """A limit of a plan, which counts what was used within a window of time."""

    used_percent: float
    window_minutes: int | None = None
    """The length of the window; None if it is not known."""
    resets_at: int | None = None
    """The end of the window in seconds since 1970; None if it is not known."""


@frozen
class PlanUse:
    """The plan that has paid for a response, and what is used of it."""

    plan: str | None = None
    """The name of the plan, such as `plus`; None if it is not known."""
    primary: PlanLimit | None = None
    """The limit with the short window; None if the answer did not tell it."""
    secondary: PlanLimit | None = None
    """The limit with the long window; None if the answer did not tell it."""


@frozen
class Completed:
    """The end of a response that is complete."""

    usage: Usage
    end_turn: bool | None = None
    """False if the server asks for another request although no tool was called."""
    mistake: str | None = None
    """A clause for the model about a call that it wrote as text, and that was not run: its
    mistake."""
    plan: PlanUse | None = None
    """The use of the ChatGPT plan that paid for the response; None if no plan did. The client sets
    it, and no wire."""


ResponseEvent: TypeAlias = (
    Created
    | OutputItemAdded
    | OutputTextDelta
    | ReasoningDelta
    | OutputItemDone
    | Completed
)


class ModelClient(Protocol):
    """Sends requests to a model."""

    def stream(
        self, prompt: Prompt
    ) -> AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]:
        """Stream one response.

        Entering the context sends the request and waits for the headers of the response. The last
        event is `Completed`; a stream that ends in any other way raises, after it has yielded every
        complete item. Leaving the context ends the exchange; the connection is reused if the
        response was read to its end.

        Raises:
            StreamError: this attempt failed; another may succeed.
            ModelError: the request cannot succeed as it is.
        """
        ...

    async def aclose(self) -> None: ...


ModelStream: TypeAlias = Callable[
    [Prompt], AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]
]
"""The function `ModelClient.stream`. A wrapper sees each attempt at each request, including those
of compactions.

A `ModelError` from a wrapper fails this attempt, which may be retried; any other `CodexError` ends
the turn: running calls are cancelled and answered `aborted: {error}`. A wrapper must not catch
exceptions raised at its `yield`. Yield `Completed` before you raise, so that the usage of the
response is counted.
"""


@frozen
class Retry:
    """One more attempt at a request."""

    attempt: int
    """The number of attempts after the first one so far, this one included."""
    maximum: int
    """The limit on `attempt` if the request keeps failing in the same way."""
    delay_s: float


class Wire(Protocol):
    """One API format of models: makes request bodies and decodes responses, without I/O."""

    path: str
    """Appended to the provider's base URL."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of every request, unless the provider's settings say otherwise."""
        ...

    def body(self, prompt: Prompt) -> bytes: ...

    def decoder(self, prompt: Prompt) -> "Decoder":
        """A decoder for the response to this request."""
        ...


class Decoder(Protocol):
    """Decodes the response to one request."""

    @property
    def finished(self) -> bool:
        """True once a terminal event was read; everything after it is ignored."""
        ...

    def feed(self, data: str, name: str = "message") -> Sequence[ResponseEvent]:
        """Decode one server-sent event: its data, and its name. Returns its events in order.

        If a failure comes together with complete items, the items are returned, and the next call
        of `feed` or `end` raises. After `Completed` nothing more is returned.

        Raises:
            StreamError: the response failed; another attempt may succeed.
            ModelError: the response failed for good, or was cut short by the model's limits.
        """
        ...

    def end(self) -> Sequence[ResponseEvent]:
        """End the stream. Returns the last events; none if a terminal event was read.

        Raises:
            StreamError: no terminal event came. `feed` has already returned every complete item.
        """
        ...
