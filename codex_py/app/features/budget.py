"""The limits of a run: responses, tokens, dollars and time. LIGHT.

A session and its subagents have one budget. Before each request, the most that it may take is
compared with the rest of the budget. If the rest is less than the longest answer of the model, the
request asks for a shorter one. Time counts while a turn runs.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from math import inf
from typing import Final

from codex_py.app.features.budget_meters import (
    WARN_AT,
    Meter,
    Reservation,
    limit_reached,
    meters,
)
from codex_py.app.features.recovery import model_in_use
from codex_py.app.model import named_provider, pays_by_plan
from codex_py.app.options import SessionSetup
from codex_py.app.prices import price_of, unknown_price
from codex_py.errors import CodexError, ConfigError, ExitCode, ModelError
from codex_py.model.known_models import Price, known_model
from codex_py.protocol.extension import Extension, Thread, TurnStop
from codex_py.protocol.items import CustomToolCall, FunctionCall, Message, ResponseItem
from codex_py.protocol.messages import EncodedItem, estimated_tokens, text_tokens
from codex_py.protocol.prompts import Note
from codex_py.protocol.stream import (
    Completed,
    Created,
    ModelStream,
    OutputItemDone,
    Prompt,
    ResponseEvent,
    Usage,
)

_MIN_OUTPUT: Final = 16
"""The lowest limit on an answer that the Responses API takes, in tokens."""
_LONG_OUTPUT: Final = 32_000
"""The tokens of the longest answer, if the model's own maximum is unknown."""
_WRAP_UP: Final = (
    "<budget>\n{} of this run are used. Start nothing new: leave the work in a state that holds, then answer"
    " with what is done and what is left to do.\n</budget>"
)
_REMINDER: Final = (
    "<rollout_budget>\nYou have {} weighted tokens left in the shared session"
    " token budget.\n</rollout_budget>"
)
"""The wording of Codex 0.169."""


class BudgetFeature:
    """Keeps the usage of a session and its subagents within the limits of the run.

    Raises:
        ConfigError: the cost is limited, and a model that may answer has no known price, or is paid
            by a ChatGPT plan.
    """

    def __init__(self, setup: SessionSetup) -> None:
        config = setup.config
        self._config = config
        self.limits = config.budget
        self.meters = list(meters(config.budget))
        own = (config.model_provider, config.model)
        for provider, model in (own, *config.model_fallbacks):
            self._require_price(setup, provider, model)
        self._changed = asyncio.Event()
        """Set, and replaced by a new event, when a request has ended."""
        self.stopped: CodexError | None = None
        """The error that the running turns end with."""
        self._running: list[Thread] = []
        """The threads that run a turn."""
        self._since = 0.0
        """The time, on the clock of the loop, at which the first of these turns began."""
        self._earlier_s = 0.0
        """The time that earlier turns took. Turns that run at once count once."""
        self._timer: asyncio.TimerHandle | None = None
        """Ends the running turns when `max_time` is over."""

    def for_child(self, setup: SessionSetup) -> "BudgetFeature":
        """Share the budget with a child.

        Raises a `ConfigError` if the cost is limited, and that of the child's model is unknown.
        """
        choices = setup.options.choices or setup.config
        self._require_price(setup, setup.config.model_provider, choices.model)
        return self

    def __call__(self, thread: Thread) -> Extension:
        own = _ThreadBudget(self, thread)
        return Extension(
            wrap_model=own.wrap_model,
            before_request=own.before_request,
            before_stop=self._before_stop,
            around_turn=lambda _: self._around_turn(thread),
            turn_facts=lambda: {"usage": thread.token_usage.total},
        )

    async def reserve(
        self,
        expected: Usage,
        provider: str,
        model: str,
        max_output: int | None,
    ) -> Reservation:
        """Reserve the most that a request may use.

        Waits while it would not fit beside the running requests.

        Args:
            expected: the input of the request.
            max_output: the limit that is already set for its answer, in tokens.

        Raises:
            CodexError: not enough is left of a limit.
        """
        prices = self._prices(provider, model)
        pairs = list(zip(self.meters, prices, strict=True))
        longest = max_output or _LONG_OUTPUT
        counts_output = any(price.output for _, price in pairs)
        if max_output is None and counts_output:
            longest = _longest_output(model)
        while True:
            self._check()
            tightest, room = _tightest(pairs, expected)
            if tightest is not None and room < _MIN_OUTPUT:
                raise self.stop(tightest.error())
            output = int(min(longest, room))
            shared_rooms = [
                meter.room(price, expected, shared=True) for meter, price in pairs
            ]
            if all(room >= output for room in shared_rooms):
                cut_by = tightest if output < longest else None
                most = replace(expected, output_tokens=output)
                return Reservation(pairs, most, cut_by)
            await self._changed.wait()

    def release(self, reservation: Reservation) -> None:
        """Replace a reservation by the actual usage of its request. A second call does nothing."""
        reservation.release()
        self._changed.set()
        self._changed = asyncio.Event()

    def stop(self, error: CodexError) -> CodexError:
        """End all running turns before their next request. Returns the error that they end with."""
        self.stopped = self.stopped or error
        return self.stopped

    def warning(
        self,
        ahead: Sequence[Usage],
        provider: str,
        model: str,
    ) -> str | None:
        """Name the limits that are nearly reached, with their usage, for the model.

        Returns None if no limit is near. See `Meter.is_near`.
        """
        pairs = zip(self.meters, self._prices(provider, model), strict=True)
        near = [meter.state for meter, price in pairs if meter.is_near(price, ahead)]
        limit_s = self.limits.max_time
        if limit_s is not None and self._elapsed_s >= WARN_AT * limit_s:
            near.append(f"{self._elapsed_s:.0f} of {limit_s:.0f} seconds")
        return ", ".join(near) or None

    @property
    def _elapsed_s(self) -> float:
        """The time during which a turn ran, in this session or a subagent."""
        if not self._running:
            return self._earlier_s
        now = asyncio.get_running_loop().time()
        return self._earlier_s + now - self._since

    def _check(self) -> None:
        """Raise the error of a limit if one is reached."""
        limit_s = self.limits.max_time
        if limit_s is not None and self._elapsed_s >= limit_s:
            self._end_of_time()
        if self.stopped is not None:
            raise self.stopped

    def _end_of_time(self) -> None:
        """End all running turns, because `max_time` is over."""
        reason = f"`max_time` ({self.limits.max_time:g} s) is over"
        error = limit_reached(reason, code="wall_clock", exit_code=ExitCode.WALL_CLOCK)
        ending = self.stop(error)
        for thread in [*self._running]:
            thread.end(ending)

    @asynccontextmanager
    async def _around_turn(self, thread: Thread) -> AsyncGenerator[None]:
        """Measure the time of a turn, and start and stop the timer."""
        loop = asyncio.get_running_loop()
        if not self._running:
            self._since = loop.time()
            limit_s = self.limits.max_time
            if limit_s is not None:
                left_s = max(0, limit_s - self._earlier_s)
                self._timer = loop.call_later(left_s, self._end_of_time)
        self._running.append(thread)
        try:
            yield
        finally:
            elapsed_s = self._elapsed_s
            self._running.remove(thread)
            if not self._running:
                self._earlier_s = elapsed_s
                self.stopped = None
                if self._timer is not None:
                    self._timer.cancel()

    async def _before_stop(self, _: TurnStop) -> None:
        # A subagent may have been stopped, so that its answer is missing.
        self._check()

    def _require_price(self, setup: SessionSetup, provider: str, model: str) -> None:
        """Raise a `ConfigError` if a meter counts money, and the cost of a model cannot be counted."""
        self._prices(provider, model)
        # Without the network, no key is used.
        if self.limits.max_cost is None or setup.options.transport is not None:
            return
        asked = named_provider(setup.config, provider, setup.environment)
        if pays_by_plan(setup.config, asked, setup.environment):
            raise ConfigError(
                f"the cost cannot be limited because requests to {provider!r} are paid by a ChatGPT"
                " plan, which has no price for each request: limit tokens with --max-tokens, or"
                " set CODEX_API_KEY"
            )

    def _prices(
        self,
        provider: str,
        model: str,
    ) -> list[Price]:
        """Return the price of a request for each meter.

        Raises a `ConfigError` if a meter counts money, and the price of the model is unknown.
        """
        return [meter.price or self._price(provider, model) for meter in self.meters]

    def _price(self, provider: str, model: str) -> Price:
        price = price_of(self._config, model, provider)
        if price is not None:
            return price
        raise ConfigError(
            f"the cost cannot be limited because {unknown_price(model, provider)}"
        )


def _longest_output(model: str) -> int:
    known = known_model(model)
    if known is None or not known.output:
        return _LONG_OUTPUT
    return known.output


def _tightest(
    pairs: Sequence[tuple[Meter, Price]], expected: Usage
) -> tuple[Meter | None, float]:
    """Find the meter that leaves the least room for the answer, and this room in tokens.

    None and infinity if no meter limits the answer.
    """
    tightest = None
    least = inf
    for meter, price in pairs:
        room = meter.room(price, expected)
        if room < least:
            tightest = meter
            least = room
    return tightest, least


class _ThreadBudget:
    """Reserves and counts the requests of one thread."""

    def __init__(self, budget: BudgetFeature, thread: Thread) -> None:
        self._budget = budget
        self._thread = thread
        self._items: Sequence[EncodedItem] = ()
        """The input of the last request."""
        self._usage = Usage()
        """The usage of its response."""
        self._text_tokens = 0
        """The estimated tokens of that input's text."""
        self._growth = 0
        """The tokens by which that input was longer than the input before it."""
        self._is_warned = False
        self._reminders: int | None = None
        """The number of reminders of the rollout budget that were due at the last request."""

    def wrap_model(self, model: ModelStream) -> ModelStream:
        """Count the tokens of each response, and send no request that a limit forbids."""

        @asynccontextmanager
        async def stream(
            prompt: Prompt,
        ) -> AsyncGenerator[AsyncIterator[ResponseEvent]]:
            provider, name = model_in_use(self._thread)
            settings = self._thread.settings
            max_output = None
            # The limit in the request is meant for the thread's own model.
            if (provider, name) == (settings.provider, settings.model):
                max_output = prompt.max_output_tokens
            expected = self._expected(prompt)
            reservation = await self._budget.reserve(
                expected, provider, name, max_output
            )
            if reservation.cut_by is not None:
                shorter = reservation.expected.output_tokens
                prompt = replace(prompt, max_output_tokens=shorter)
            try:
                async with model(prompt) as events:
                    yield self._counted(events, prompt, reservation)
            finally:
                self._budget.release(reservation)

        return stream

    async def before_request(self) -> Sequence[Note]:
        """Tell the model once that a limit is near, and how much of the rollout budget is left."""
        notes: list[Note] = []
        if not self._is_warned:
            near = self._budget.warning(self._ahead(), *model_in_use(self._thread))
            if near is not None:
                self._is_warned = True
                notes.append(Note(_WRAP_UP.format(near)))
        rollout = self._budget.limits.rollout
        if rollout is not None:
            [meter] = [each for each in self._budget.meters if each.is_rollout]
            left = meter.limit - meter.used
            due = [threshold for threshold in rollout.reminders if left <= threshold]
            if len(due) != self._reminders:
                left_tokens = max(0, int(left))
                notes.append(Note(_REMINDER.format(left_tokens)))
            self._reminders = len(due)
        return notes

    def _ahead(self) -> Sequence[Usage]:
        """Estimate the next three requests, if each grows as the last one did.

        The growth of a new history is unknown: the first and the last estimate are the history as
        it is, and the second is empty.
        """
        items = self._thread.items
        known = len(self._items)
        last = self._usage
        if not known or len(items) < known:
            tools = str(self._thread.settings.tools)
            encoded_tools = EncodedItem(tools.encode(errors="replace"))
            usage = Usage(estimated_tokens([encoded_tools, *items]))
            return [usage, Usage(), usage]
        # The base prompt is an item of the history, but not of every request.
        begins_with_base_prompt = items[0] != self._items[0]
        if begins_with_base_prompt:
            known += 1
        growth = max(self._growth, estimated_tokens(items[known:]))
        return [
            replace(last, input_tokens=last.input_tokens + number * growth)
            for number in (1, 2, 3)
        ]

    def _expected(self, prompt: Prompt) -> Usage:
        """Estimate the input of a request.

        It is the provider's last count of tokens, plus an estimate of the items since.
        """
        known = self._known(prompt)
        if known:
            tokens = self._usage.input_tokens + estimated_tokens(prompt.input[known:])
            return Usage(tokens, self._usage.cached_input_tokens)
        return Usage(prompt.estimated_tokens)

    def _known(self, prompt: Prompt) -> int:
        """Count the items that a request shares with the last one; 0 for another history."""
        known = len(self._items)
        if list(prompt.input[:known]) == self._items:
            return known
        return 0

    def _keep(
        self,
        usage: Usage,
        prompt: Prompt,
        answer: str,
    ) -> Usage:
        """Keep a request and the usage that the server reports, for the estimates of the next one.

        Returns the usage, corrected by `_plausible`.
        """
        known = self._known(prompt)
        if known:
            earlier_tokens = self._text_tokens
        else:
            earlier_tokens = text_tokens([prompt.head])
        input_tokens = earlier_tokens + text_tokens(prompt.input[known:])
        plausible = self._plausible(usage, input_tokens, answer)
        self._growth = 0
        if known:
            self._growth = plausible.input_tokens - self._usage.input_tokens
        self._items = list(prompt.input)
        self._usage = plausible
        self._text_tokens = input_tokens
        return plausible

    def _plausible(
        self,
        usage: Usage,
        input_tokens: int,
        answer: str,
    ) -> Usage:
        """Correct the usage that a server reports.

        Input and output count as at least half of the estimate for their texts. At most as many
        tokens come from the cache as the request before and its response left there.

        Args:
            input_tokens: the estimate for the text of the input.
            answer: the text of the output.
        """
        encoded = EncodedItem(answer.encode(errors="replace"))
        output_tokens = text_tokens([encoded])
        cached = usage.cached_input_tokens
        if self._items:
            cached = min(cached, self._usage.total_tokens)
        return replace(
            usage,
            input_tokens=max(usage.input_tokens, input_tokens // 2),
            cached_input_tokens=cached,
            output_tokens=max(usage.output_tokens, output_tokens // 2),
        )

    async def _counted(
        self,
        events: AsyncIterator[ResponseEvent],
        prompt: Prompt,
        reservation: Reservation,
    ) -> AsyncGenerator[ResponseEvent]:
        """Pass the events on, and keep in the reservation what the response has used so far.

        Raises the error of the limit that cut the answer short, if one did.
        """
        output_tokens = 0
        answer = ""
        try:
            async for event in events:
                match event:
                    case Completed(usage=usage):
                        reservation.used = self._keep(usage, prompt, answer)
                        reservation.responses = 1
                    case Created():
                        pass
                    case _:
                        if isinstance(event, OutputItemDone):
                            output_tokens += estimated_tokens([event.item.encoded()])
                            answer += _text_of(event.item)
                        # This estimate counts if the stream breaks off.
                        reservation.used = replace(
                            reservation.expected, output_tokens=output_tokens
                        )
                yield event
        except ModelError as error:
            if error.code == "incomplete" and reservation.cut_by is not None:
                reservation.used = reservation.expected
                self._budget.release(reservation)
                raise self._budget.stop(reservation.cut_by.error()) from error
            raise


def _text_of(item: ResponseItem) -> str:
    """Return the text that the model wrote: a message, or the arguments of a call."""
    match item:
        case Message():
            return item.text
        case FunctionCall(arguments=text) | CustomToolCall(input=text):
            return text
        case _:
            return ""
