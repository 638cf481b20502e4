"""What goes to a model, what comes back while it answers, and the seam between them."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

from codex_py.protocol.frozen import frozen
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.tools import ToolSpec


@frozen
class Prompt:
    """One request to a model, in terms that every wire can express."""

    model: str
    input: Sequence[EncodedItem]
    """The whole history: base prompt, context, and everything since."""
    cache_key: str
    """The thread id; requests of one thread share the provider's prompt cache."""
    tools: Sequence[ToolSpec] = ()
    parallel_tool_calls: bool = True
    reasoning: dict[str, Any] | None = None
    """`effort`, `summary`; None leaves the key out."""
    verbosity: str | None = None
    output_schema: Any = None
    """JSON Schema of the answer; None where any text will do."""
    service_tier: str | None = None


@frozen
class Usage:
    """Tokens of one response, or of many added up. `input_tokens` includes the cached ones."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.cache_write_input_tokens + other.cache_write_input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_output_tokens + other.reasoning_output_tokens,
        )


@frozen
class Created:
    response_id: str | None


@frozen
class OutputItemAdded:
    """An item was announced, or its first delta came unannounced."""

    output_index: int
    item_type: str


@frozen
class OutputTextDelta:
    output_index: int
    delta: str


@frozen
class ReasoningDelta:
    output_index: int
    delta: str
    part: int
    """Which section of the summary, or of the raw reasoning, the text belongs to."""
    raw: bool = False


@frozen
class ToolInputDelta:
    output_index: int
    delta: str


@frozen
class OutputItemDone:
    """An item is complete. Sent once for each item, whatever the server repeats.

    `output_index` is its place in the response: items can be done in another order.
    """

    output_index: int
    item: ResponseItem


@frozen
class RateLimits:
    limits: dict[str, Any]
    """The `x-ratelimit-*` headers, without the prefix."""


@frozen
class Completed:
    response_id: str | None
    usage: Usage
    end_turn: bool | None = None
    """False where the server asks for another request although nothing was called."""


ResponseEvent: TypeAlias = (
    Created
    | OutputItemAdded
    | OutputTextDelta
    | ReasoningDelta
    | ToolInputDelta
    | OutputItemDone
    | RateLimits
    | Completed
)


class ModelClient(Protocol):
    def stream(self, prompt: Prompt) -> AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]:
        """Stream one response.

        Entering the context sends the request and waits for the head of the answer. The last event
        is `Completed`; a stream that ends in any other way raises, after every item that was
        complete has been given out. Leaving the context ends the exchange; the connection is kept
        where the response was read to its end.

        Raises:
            StreamError: this attempt failed; another may succeed.
            ModelError: the request cannot succeed as it is.
        """
        ...

    async def aclose(self) -> None: ...


ModelStream: TypeAlias = Callable[
    [Prompt], AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]
]
"""As `ModelClient.stream`. A wrapper sees each attempt of each request, those of compactions too.

A `ModelError` that it raises is the failure of this attempt, which may be retried; any other `CodexError` ends the
turn: running calls are cancelled and answered `aborted: {error}`. It must not catch what is raised at its `yield`. To
count the usage of a response, hand on `Completed` before you raise.
"""


class Wire(Protocol):
    """One way to speak to a model: it makes request bodies and reads answers, and does no I/O."""

    path: str
    """Appended to the provider's base URL."""

    def body(self, prompt: Prompt) -> bytes: ...

    def decoder(self) -> "Decoder":
        """A decoder for one response."""
        ...


class Decoder(Protocol):
    @property
    def finished(self) -> bool:
        """A terminal event was read: what the server sends after it does not count."""
        ...

    def feed(self, data: str) -> Sequence[ResponseEvent]:
        """Take the data of one server-sent event; what it amounts to, in order.

        Where a failure comes together with complete items, the items are given out and the next call,
        of `feed` or of `end`, raises. After `Completed` nothing more is given out.

        Raises:
            StreamError: the response failed in a way that another attempt may mend.
            ModelError: the response failed for good, or was cut short by the model's limits.
        """
        ...

    def end(self) -> Sequence[ResponseEvent]:
        """The stream is at its end. Nothing, if a terminal event was read.

        Raises:
            StreamError: no terminal event came. `feed` has already given out every complete item.
        """
        ...
