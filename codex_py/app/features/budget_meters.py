"""What is used of each limit on responses, tokens and money. LIGHT."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from codex_py.config.budget import Budget
from codex_py.errors import CodexError, ExitCode
from codex_py.protocol.frozen import frozen
from codex_py.protocol.stream import Usage

_ROUNDING = 1e-6


@frozen
class Rates:
    """What a request takes of a limit: for its response, and for each token."""

    response: float = 0
    input: float = 0
    cached_input: float = 0
    output: float = 0

    def of(self, usage: Usage) -> float:
        """What the tokens take."""
        fresh = usage.input_tokens - usage.cached_input_tokens
        cached = usage.cached_input_tokens * self.cached_input
        return fresh * self.input + cached + usage.output_tokens * self.output


@dataclass(slots=True, eq=False)
class Meter:
    key: str
    """The setting of the limit."""
    limit: float
    shown: str
    """Shows what is used, and the limit."""
    rates: Rates | None = None
    """None: the price of the model."""
    code: str = "token_budget"
    exit_code: ExitCode = ExitCode.BUDGET
    is_rollout: bool = False
    """It is expected that what was cached once is cached again."""
    used: float = 0
    held: list[float] = field(default_factory=list[float])
    """What the requests on their way may take."""

    @property
    def state(self) -> str:
        return self.shown.format(self.used, self.limit)

    def expected(self, rates: Rates, usage: Usage) -> float:
        """The most that a request takes, if `usage` is its input and its longest output."""
        if not self.is_rollout:
            usage = replace(usage, cached_input_tokens=0)
        return rates.response + rates.of(usage)

    def room(self, rates: Rates, usage: Usage, *, shared: bool = False) -> float:
        """The tokens of output for which a request fits; below 0: for none.

        Args:
            usage: the input of the request.
            shared: without what other requests may take.
        """
        left = self.limit - self.used - self.expected(rates, usage)
        left -= sum(self.held) if shared else 0
        if left < -_ROUNDING or not rates.output:
            return inf if left >= -_ROUNDING else -1
        return left / rates.output + _ROUNDING

    def error(self) -> CodexError:
        reason = f"{self.state} are used, and the next request does not fit into `{self.key}`"
        return limit_reached(reason, self.code, self.exit_code)


class Reservation:
    """What a request on its way may take of each limit.

    Attributes:
        expected: its input, and the most output.
        cut_by: the limit that makes the answer shorter than the model could; None if none does.
        used: the tokens that count when it is released; None: none.
    """

    def __init__(
        self, pairs: Sequence[tuple[Meter, Rates]], expected: Usage, cut_by: Meter | None
    ) -> None:
        self.expected = expected
        self.cut_by = cut_by
        self.used: Usage | None = None
        self.responses = 0
        self._held = [(meter, rates, meter.expected(rates, expected)) for meter, rates in pairs]
        for meter, _, amount in self._held:
            meter.held.append(amount)

    def release(self) -> None:
        held, self._held = self._held, []
        for meter, rates, amount in held:
            meter.held.remove(amount)
            meter.used += rates.response * self.responses + rates.of(self.used or Usage())


def limit_reached(reason: str, code: str, exit_code: ExitCode) -> CodexError:
    text = f"budget reached: {reason}; to go on, resume the session with a higher limit"
    return CodexError(text, code=code, exit_code=exit_code)


def meters(budget: Budget) -> Iterator[Meter]:
    """A meter for each limit of a budget but that on the time."""
    if budget.max_turns is not None:
        shown, exit_code = "{:.0f} of {} responses", ExitCode.TURN_LIMIT
        yield Meter("max_turns", budget.max_turns, shown, Rates(1), "turn_limit", exit_code)
    if budget.max_tokens is not None:
        shown = "{:,.0f} of {:,} tokens"
        yield Meter("max_tokens", budget.max_tokens, shown, Rates(0, 1, 1, 1))
    if budget.max_cost is not None:
        yield Meter("max_cost", budget.max_cost, "${:.4f} of ${:.4f}", None, "cost_budget")
    if (its := budget.rollout) is not None:
        shown, weights = (
            "{:,.0f} of {:,} weighted tokens",
            Rates(0, its.input_weight, 0, its.output_weight),
        )
        yield Meter("limit_tokens", its.limit_tokens, shown, weights, is_rollout=True)
