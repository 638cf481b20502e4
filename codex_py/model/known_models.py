"""The table of models in `models.toml`: windows, limits, abilities and prices. It is read on first
use. LIGHT."""

import tomllib
from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal

from codex_py.protocol.frozen import frozen
from codex_py.protocol.stream import Usage

_BEHIND_A_NAME = {"", "-", ":", "@", "_"}


@frozen
class Price:
    """The price of a model in dollars for a million tokens."""

    input: float
    cached_input: float
    output: float

    def of(self, usage: Usage) -> float:
        """The price of these tokens in dollars."""
        fresh = usage.input_tokens - usage.cached_input_tokens
        dollars = fresh * self.input + usage.cached_input_tokens * self.cached_input
        return (dollars + usage.output_tokens * self.output) / 1_000_000


@frozen(kw_only=True)
class KnownModel:
    provider: str
    slug: str
    window: int | None = None
    """The size of the window in tokens; None for OpenAI's models."""
    output: int | None = None
    """The most tokens of a response; None if only the window limits it."""
    prices: Price
    about: str = ""
    """The purpose of the model in a few words; empty if unknown."""
    images: bool = True
    effort: str | None = None
    thinking: Literal["budget"] | None = None
    suggested: bool = False
    """The model to begin with for a user who has a key of its provider and has chosen no model."""


def known_models() -> Sequence[KnownModel]:
    """All models of the table, in its order."""
    return _table()[0]


def table_date() -> date:
    """The date on which the table was correct."""
    return _table()[1]


def known_model(name: str) -> KnownModel | None:
    """The entry with the longest slug that a name begins with after its last slash.

    Services write `4.6` or `4-6`, and some write a colon before the size. `gpt-5.6` does not match
    `gpt-5`.
    """
    name = name.rpartition("/")[2]
    plain = _plain(name)
    fitting = [
        model
        for model in known_models()
        if plain.startswith(_plain(model.slug))
        and name[len(model.slug) :][:1] in _BEHIND_A_NAME
    ]
    return max(fitting, key=lambda model: len(model.slug), default=None)


@cache
def _table() -> tuple[Sequence[KnownModel], date]:
    data: dict[str, Any] = tomllib.loads(
        Path(__file__).with_name("models.toml").read_text(encoding="utf-8")
    )
    day: date = data.pop("date")
    models = [
        KnownModel(
            provider=provider, slug=slug, prices=Price(*entry.pop("prices")), **entry
        )
        for provider, entries in data.items()
        for slug, entry in entries.items()
    ]
    return models, day


def _plain(name: str) -> str:
    return name.lower().replace(".", "-").replace(":", "-")
