"""The prices of models.

`price_of` returns the `Price` of a model at a provider, or None if it is not known; `Price.of` is the cost
of a `Usage`. `unknown_price` is a clause that says why nobody knows the price, and what to do.
"""

from codex_py.app.prices import price_of, unknown_price
from codex_py.model.known_models import Price

__all__ = ["Price", "price_of", "unknown_price"]
