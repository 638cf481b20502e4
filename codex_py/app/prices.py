"""The price of a model at a provider. LIGHT.

The table of known models is read only if the configuration has no price.
"""

from dataclasses import replace
from typing import Any

from codex_py.config.check import dotted
from codex_py.config.config import Config
from codex_py.config.declared.section import raw
from codex_py.errors import ConfigError
from codex_py.model.known_models import Price, known_model


def price_of(
    config: Config,
    model: str,
    provider: str,
) -> Price | None:
    """Return the price of a model; None if unknown.

    The price in `[model_prices."PROVIDER/MODEL"]` comes first, then `[model_prices."MODEL"]`, then
    the table. The table has the prices of the providers that make or serve the models: others may
    ask for more, unless the user says otherwise.

    Raises:
        ConfigError: `same_as` names no model of the table.
    """
    prices = config.settings.model_prices
    full = f"{provider}/{model}"
    name = full if full in prices else model
    own: dict[str, Any] = {}
    same_as = None
    if name in prices:
        own = {**raw(prices[name])}
        own.pop("same_as", None)
        same_as = prices[name].same_as
    if "input" in own:
        own.setdefault("cached_input", own["input"])
    if same_as is not None:
        return replace(_same_price(config, name, same_as), **own)
    is_complete = {"input", "output"} <= own.keys()
    if is_complete:
        return Price(**own)
    # Other fields come from the table.
    known = known_model(model)
    if known is None:
        return None
    if not own and known.provider != provider:
        # Another provider may ask for more.
        return None
    return replace(known.prices, **own)


def _same_price(config: Config, name: str, same_as: str) -> Price:
    """The price of the model `same_as`, which the table `[model_prices.NAME]` names.

    Raises a `ConfigError` if there is no such model.
    """
    known = known_model(same_as)
    if known is not None and same_as == f"{known.provider}/{known.slug}":
        return known.prices
    key = ("model_prices", name, "same_as")
    raise config.layers.located(
        ConfigError(
            f"`{dotted(key)}`: {same_as!r} is no PROVIDER/MODEL of `codex-py models list`",
            key=key,
        )
    )


def unknown_price(model: str, provider: str) -> str:
    """Return a clause that tells how to set a price that `price_of` does not know."""
    known = known_model(model)
    if known is not None and known.provider != provider:
        table = dotted(("model_prices", f"{provider}/{model}"))
        return (
            f"the price of {model!r} at {provider!r} is not known; if it is that of"
            f" {known.provider}, write into config.toml:\n[{table}]\n"
            f'same_as = "{known.provider}/{known.slug}"'
        )
    table = dotted(("model_prices", model))
    return (
        f"the price of {model!r} is not known; write it into config.toml: [{table}] with"
        " `input = 2.0`, `cached_input = 0.2` and `output = 10.0`, in dollars for a million tokens"
    )
