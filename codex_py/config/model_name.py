"""Reads `provider/model` in settings that name a model. LIGHT."""

from collections.abc import Collection

from codex_py.config.declared.model import ModelFallback
from codex_py.config.declared.section import raw
from codex_py.config.layers import Layers
from codex_py.errors import ConfigError

_COMMAND_LINE = {"command line", "-c"}


def named_provider(
    layers: Layers, providers: Collection[str]
) -> tuple[str, str] | None:
    """Return the provider and the model that the setting `model` names together.

    None if it names only a model, and also if the same layer or a stronger one sets
    `model_provider`. Options and `-c` count as one layer for this. A project does not decide where
    requests go: it names a model of the provider that would be used without it.

    Args:
        providers: the ids that a name may begin with.
    """
    naming = [layer for layer in layers.layers if layer.sets(("model",))]
    decisive = next((layer for layer in naming if layer.name != "project"), None)
    if decisive is None:
        return None
    place = layers.layers.index(decisive)
    rivals = list(layers.layers[: place + 1])
    if decisive.name in _COMMAND_LINE:
        rivals += [layer for layer in layers.layers if layer.name in _COMMAND_LINE]
    if any(layer.sets(("model_provider",)) for layer in rivals):
        return None
    named = split_model(decisive.values["model"], providers)
    if named is None:
        return None
    strongest = naming[0]
    if strongest is decisive:
        return named
    # A project names another model of this provider.
    provider, _ = named
    return provider, strongest.values["model"]


def split_model(name: str, providers: Collection[str]) -> tuple[str, str] | None:
    """Split `provider/model`; None if the first part is not a provider."""
    provider, _, model = name.partition("/")
    if model and provider in providers:
        return provider, model
    return None


def fallback_model(entry: str | ModelFallback) -> tuple[str, str]:
    """Return the provider and the model of an entry of `model_fallbacks`.

    Raises:
        ConfigError: one of them is missing.
    """
    if isinstance(entry, str):
        provider, _, model = entry.partition("/")
        shown = repr(entry)
    else:
        provider = entry.provider
        model = entry.model
        shown = repr(raw(entry))
    if not provider or not model:
        raise ConfigError(
            f'model_fallbacks: {shown} names no provider or no model; write "provider/model"',
            key=("model_fallbacks",),
        )
    return provider, model
