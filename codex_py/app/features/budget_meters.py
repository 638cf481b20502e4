"""Meters of the limits on responses, tokens and money. LIGHT."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from codex_py.config.limits import Budget
from codex_py.errors import CodexError, ExitCode
from codex_py.model.known_models import Price
from codex_py.protocol.stream import Usage

_ROUNDING = 1e-6
WARN_AT = 0.8
"""The share of a limit from which on it is near."""
_MILLION = 1_000_000


@dataclass(slots=True, eq=False)
class Meter:
    """One limit, and how much of it is used. A price says what a request uses of it."""

    key: str
    """The configuration key of the limit."""
    limit: float
    shown: str
    """The format of the used amount and the limit."""
    price: Price | None = None
    """The share of the limit that a million tokens use; None: the price of the model."""
    per_response: int = 0
    """The amount that each response uses, whatever its length."""
    code: str = "token_budget"
    exit_code: ExitCode = ExitCode.BUDGET
    is_rollout: bool = False
    """True for the rollout budget. It expects cached input to be cached again, and has reminders of
    its own."""
    used: float = 0
    held: float = 0
    """The amount that running requests have reserved."""

    @property
    def state(self) -> str:
        """The used amount and the limit, in words."""
        return self.shown.format(self.used, self.limit)

    def expected(self, price: Price, usage: Usage) -> float:
        """Return the most that a request uses of the limit.

        `usage` is its input and its longest output.
        """
        if not self.is_rollout:
            usage = replace(usage, cached_input_tokens=0)
        return self.per_response + price.of(usage)

    def room(
        self,
        price: Price,
        usage: Usage,
        *,
        shared: bool = False,
    ) -> float:
        """Return the longest output, in tokens, with which a request fits.

        It is negative if the request does not fit at all.

        Args:
            usage: the input of the request.
            shared: subtract the amounts that running requests have reserved.
        """
        left = self.limit - self.used - self.expected(price, usage) + _ROUNDING
        if shared:
            left -= self.held
        if price.output:
            return left / price.output * _MILLION
        # Free output has no limit if the input fits.
        if left >= 0:
            return inf
        return left * _MILLION

    def is_near(
        self,
        price: Price,
        ahead: Sequence[Usage],
    ) -> bool:
        """True if the first of three requests takes the usage over 80 %, or the last might not fit.

        A rollout budget is never near, because it has its own reminders.
        """
        if self.is_rollout:
            return False
        first, second, third = ahead
        used = self.used + self.per_response + price.of(first)
        if used > WARN_AT * self.limit:
            return True
        if self.per_response:
            return False
        later = price.of(second) + self.expected(price, third)
        return used + later > self.limit

    def error(self) -> CodexError:
        reason = f"{self.state} are used, and the next request does not fit into `{self.key}`"
        return limit_reached(reason, code=self.code, exit_code=self.exit_code)


class Reservation:
    """The most that a request under way may use of each limit.

    Attributes:
        expected: its input and its longest output.
        cut_by: the limit that makes the answer shorter than the model's maximum; None if no limit
            does.
        used: the tokens to count when it is released; None if none were used.
        responses: the number of complete responses to count then.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Meter, Price]],
        expected: Usage,
        cut_by: Meter | None,
    ) -> None:
        self.expected = expected
        self.cut_by = cut_by
        self.used: Usage | None = None
        self.responses = 0
        self._held: list[tuple[Meter, Price, float]] = []
        for meter, price in pairs:
            amount = meter.expected(price, expected)
            meter.held += amount
            self._held.append((meter, price, amount))

    def release(self) -> None:
        """Free the reserved amounts and count what was used. A second call does nothing."""
        held = self._held
        self._held = []
        for meter, price, amount in held:
            meter.held -= amount
            meter.used += meter.per_response * self.responses
            meter.used += price.of(self.used or Usage())


def limit_reached(reason: str, *, code: str, exit_code: ExitCode) -> CodexError:
    """Make the error that ends a turn at a limit."""
    text = f"budget reached: {reason}; to go on, resume the session with a higher limit"
    return CodexError(text, code=code, exit_code=exit_code)


def meters(budget: Budget) -> Iterator[Meter]:
    """Make a meter for each limit of a budget except the limit on time."""
    turns = budget.max_turns
    if turns is not None:
        yield Meter(
            "max_turns",
            turns,
            "{:.0f} of {} responses",
            price=Price(0, 0, 0),
            per_response=1,
            code="turn_limit",
            exit_code=ExitCode.TURN_LIMIT,
        )
    tokens = budget.max_tokens
    if tokens is not None:
        price = Price(_MILLION, _MILLION, _MILLION)
        yield Meter("max_tokens", tokens, "{:,.0f} of {:,} tokens", price)
    cost = budget.max_cost
    if cost is not None:
        yield Meter("max_cost", cost, "${:.4f} of ${:.4f}", code="cost_budget")
    rollout = budget.rollout
    if rollout is not None:
        per_input = rollout.input_weight * _MILLION
        per_output = rollout.output_weight * _MILLION
        yield Meter(
            "limit_tokens",
            rollout.limit_tokens,
            "{:,.0f} of {:,} weighted tokens",
            price=Price(per_input, 0, per_output),
            is_rollout=True,
        )
