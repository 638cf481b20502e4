"""Finds the providers whose key is set, for users who have chosen no provider yet. LIGHT."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from codex_py.config.config import Config
from codex_py.errors import ConfigError
from codex_py.model.known_models import known_models
from codex_py.model.providers import resolve_provider
from codex_py.protocol.frozen import frozen
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS

_WITH_OTHER_TOKENS: Final = {"github"}
"""Providers whose key has a variable that is usually set for other programs."""


@frozen
class SetKey:
    """A provider whose key is set."""

    provider: str
    variable: str
    model: str | None
    """A model to begin with; None if the table of models suggests none for this provider."""

    @property
    def choice(self) -> str:
        """A value of `-m`, with a placeholder if no model is suggested."""
        return f"{self.provider}/{self.model or 'MODEL'}"


def set_keys(
    config: Config,
    environment: Mapping[str, str],
) -> Sequence[SetKey]:
    """Return the built-in providers whose key is in the environment, in alphabetical order.

    OpenAI is left out.
    """
    suggestions = (model for model in known_models() if model.suggested)
    suggested = {model.provider: model.slug for model in suggestions}
    found: list[SetKey] = []
    for name in sorted({*BUILT_IN_PROVIDERS} - {"openai"} - _WITH_OTHER_TOKENS):
        # Azure also has an address that must be set.
        with suppress(ConfigError):
            provider = resolve_provider(
                name,
                config.model_providers,
                openai_base_url=None,
                environment=environment,
            )
            variable = provider.env_key or ""
            if environment.get(variable, "").strip():
                found.append(SetKey(name, variable, suggested.get(name)))
    return found


def advice(
    config: Config,
    environment: Mapping[str, str],
) -> str:
    """Return sentences that explain how to use the keys that are set; empty without any."""
    keys = set_keys(config, environment)
    texts = [f"{key.variable} is set; to use it: -m {key.choice}." for key in keys]
    return " ".join(texts)
