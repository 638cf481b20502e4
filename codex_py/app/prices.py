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
        own = {"cached_input": own["input"], **own}
    if same_as is None and {"input", "output"} <= own.keys():
        return Price(**own)
    known = known_model(same_as or model)
    if same_as is not None and (
        known is None or same_as != f"{known.provider}/{known.slug}"
    ):
        key = ("model_prices", name, "same_as")
        text = f"`{dotted(key)}`: {same_as!r} is no PROVIDER/MODEL of `codex-py models list`"
        raise config.layers.located(ConfigError(text, key=key))
    if known is None or not (own or same_as or known.provider == provider):
        return None
    return replace(known.prices, **own)


def unknown_price(model: str, provider: str) -> str:
    """Return a clause that tells how to set a price that `price_of` does not know."""
    known = known_model(model)
    if known is not None and known.provider != provider:
        table = dotted(("model_prices", f"{provider}/{model}"))
        return (
            f"the price of {model!r} at {provider!r} is not known; if it is that of {known.provider}, write"
            f' into config.toml:\n[{table}]\nsame_as = "{known.provider}/{known.slug}"'
        )
    return (
        f"the price of {model!r} is not known; write it into config.toml:"
        f" [{dotted(('model_prices', model))}] with `input = 2.0`, `cached_input = 0.2` and `output = 10.0`,"
        " in dollars for a million tokens"
    )
