"""The price of a model at a provider. LIGHT: the table of known models is read only if the configuration has no price."""

from dataclasses import replace

from codex_py.config.config import Config
from codex_py.model.known_models import Price, known_model


def price_of(config: Config, model: str, provider: str) -> Price | None:
    """The price in `[model_prices."MODEL"]`, over that of the table; None if `input` or `output` is unknown.

    The table has the prices of the providers that make or serve the models: others may ask for more, unless the user says so.
    """
    own = config.model_prices.get(model, {})
    if "input" in own:
        own = {"cached_input": own["input"], **own}
    if {"input", "output"} <= own.keys():
        return Price(**own)
    known = known_model(model)
    if known is None or not (own or known.provider == provider):
        return None
    return replace(known.prices, **own)
