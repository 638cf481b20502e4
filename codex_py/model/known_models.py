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

_AFTER_SLUG = {"", "-", ":", "@", "_"}
"""The characters that may follow a slug in the name of the same model."""


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
    """A row of the table."""

    provider: str
    """The id of the provider that serves the model under `slug`."""
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
    """The effort if the user chooses none; None: no effort is sent."""
    thinking: Literal["budget"] | None = None
    """See `ModelInfo.thinking`."""
    suggested: bool = False
    """The model to begin with for a user who has a key of its provider and has chosen no model."""


def known_models() -> Sequence[KnownModel]:
    """All models of the table, in its order."""
    models, _ = _table()
    return models


def table_date() -> date:
    """The date on which the table was correct."""
    _, day = _table()
    return day


def known_model(name: str) -> KnownModel | None:
    """The entry with the longest slug that a name begins with after its last slash.

    Services write `4.6` or `4-6`, and some write a colon before the size. `gpt-5.6` does not match
    `gpt-5`.
    """
    name = name.rpartition("/")[2]
    plain = _plain(name)
    fitting: list[KnownModel] = []
    for model in known_models():
        length = len(model.slug)
        next_character = name[length : length + 1]
        if plain.startswith(_plain(model.slug)) and next_character in _AFTER_SLUG:
            fitting.append(model)
    return max(fitting, key=lambda model: len(model.slug), default=None)


@cache
def _table() -> tuple[Sequence[KnownModel], date]:
    """The models of `models.toml`, and its date."""
    text = Path(__file__).with_name("models.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    day: date = data.pop("date")
    models: list[KnownModel] = []
    for provider, entries in data.items():
        for slug, entry in entries.items():
            prices = Price(*entry.pop("prices"))
            models.append(
                KnownModel(provider=provider, slug=slug, prices=prices, **entry)
            )
    return models, day


def _plain(name: str) -> str:
    """The name as services agree on it."""
    return name.lower().replace(".", "-").replace(":", "-")
