"""The tokens and the cost of a session, as a table and as JSON."""

from dataclasses import asdict
from typing import Any

from codex_py.app.prices import price_of, unknown_price
from codex_py.config.config import Config
from codex_py.protocol.stream import Usage
from codex_py.rollout.details import LargeOutput, SessionUsage, UsageRow
from codex_py.streams.plain_text import cut
from codex_py.streams.terminal import aligned, on_one_line, printable

_SHOWN_CHARACTERS = 40
_PROMPT_CHARACTERS = 24
"""The characters of a prompt; usual tables then fit 80 columns."""
_BYTES_PER_TOKEN = 4
_PLAN = "plan"
"""The cost of tokens that a ChatGPT plan has paid."""
_HEADINGS = (
    "TURN",
    "INPUT",
    "CACHED",
    "",
    "OUTPUT",
    "REASONING",
    "COST",
    "PROMPT",
)
"""The headings of the table. The column without one has the share of cached tokens."""
_NUMBER_COLUMNS = range(1, 7)


class CostReport:
    """Puts prices on the token usage of a session.

    Args:
        provider: the provider of the session; its prices are used.
    """

    def __init__(
        self,
        usage: SessionUsage,
        config: Config,
        provider: str,
    ) -> None:
        self._usage = usage
        self._provider = provider
        priced = [row for row in usage.rows if not row.paid_by_plan]
        models = {row.model for row in priced if row.model is not None}
        self._prices = {
            model: price_of(config, model, provider) for model in sorted(models)
        }
        self._rows = [(row, self._cost(row)) for row in usage.rows]
        self._tokens = sum((row.usage for row in usage.rows), Usage())
        # A ChatGPT plan has paid for a part of the tokens.
        self._has_plan = len(priced) < len(usage.rows)
        costs = [self._cost(row) for row in priced]
        known = [cost for cost in costs if cost is not None]
        self._dollars = None
        if len(known) == len(costs) and (costs or not self._has_plan):
            self._dollars = sum(known)

    def lines(self) -> list[str]:
        """Return the table, and a hint if a price is unknown. Safe for a terminal."""
        rows = [self._shown_row(row, cost) for row, cost in self._rows]
        total = ("total", *_cells(self._tokens, self._shown_total()), "")
        lines = aligned([_HEADINGS, *rows, total], right=_NUMBER_COLUMNS)
        if self._usage.outputs:
            head = ("BYTES", "TOKENS", "TOOL", "LARGEST OUTPUTS")
            outputs = [
                (
                    f"{each.size:,}",
                    f"~{_estimate(each):,}",
                    _short(each.tool),
                    _short(each.what),
                )
                for each in self._usage.outputs
            ]
            table = aligned([head, *outputs], right=range(2))
            lines += ["", *table]
        for model, price in self._prices.items():
            if price is None:
                hint = printable(unknown_price(model, self._provider))
                sentence = hint[0].upper() + hint[1:]
                lines += ["", *sentence.splitlines()]
        return [line.rstrip() for line in lines]

    def data(self) -> dict[str, Any]:
        """Return the report for `--json`.

        Costs are in dollars, null if a price is unknown or a ChatGPT plan has paid. The total has
        the cost of the tokens that no plan has paid.
        """
        outputs = self._usage.outputs
        return {
            "rows": [{**asdict(row), "cost": cost} for row, cost in self._rows],
            "total": {"usage": asdict(self._tokens), "cost": self._dollars},
            "cache_share": _share(self._tokens),
            "largest_outputs": [
                {**asdict(each), "tokens": _estimate(each)} for each in outputs
            ],
        }

    def _shown_row(self, row: UsageRow, cost: float | None) -> tuple[str, ...]:
        shown = _shown(cost)
        if row.paid_by_plan:
            shown = _PLAN
        prompt = _short(row.prompt, _PROMPT_CHARACTERS)
        return (self._label(row), *_cells(row.usage, shown), prompt)

    def _label(self, row: UsageRow) -> str:
        label = "-" if row.turn is None else str(row.turn)
        if len(self._prices) > 1:
            return f"{label} {_short(row.model or '')}"
        return label

    def _cost(self, row: UsageRow) -> float | None:
        price = self._prices.get(row.model or "")
        if price is None or row.paid_by_plan:
            return None
        return price.of(row.usage)

    def _shown_total(self) -> str:
        if not self._has_plan:
            return _shown(self._dollars)
        if all(row.paid_by_plan for row, _ in self._rows):
            return _PLAN
        return f"{_shown(self._dollars)} + {_PLAN}"


def _shown(cost: float | None) -> str:
    return "-" if cost is None else f"${cost:.4f}"


def _cells(usage: Usage, cost: str) -> tuple[str, ...]:
    share = _share(usage)
    return (
        f"{usage.input_tokens:,}",
        f"{usage.cached_input_tokens:,}",
        "" if share is None else f"{share:.0%}",
        f"{usage.output_tokens:,}",
        f"{usage.reasoning_output_tokens:,}",
        cost,
    )


def _estimate(output: LargeOutput) -> int:
    return output.size // _BYTES_PER_TOKEN


def _share(usage: Usage) -> float | None:
    """Return the part of the input that came from the cache, 0 to 1."""
    if usage.input_tokens:
        return usage.cached_input_tokens / usage.input_tokens
    return None


def _short(text: str, longest: int = _SHOWN_CHARACTERS) -> str:
    return on_one_line(cut(" ".join(text.split()), longest))
