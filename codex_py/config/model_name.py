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
    """The provider and the model that the setting `model` names together.

    None if it names only a model, and also if the same layer or a stronger one sets
    `model_provider`; here, options and `-c` are one layer. A project does not decide where requests
    go: it names a model of the provider that would be used without it.

    Args:
        providers: the ids that a name may begin with.
    """
    naming = [layer for layer in layers.layers if layer.sets(("model",))]
    layer = next((layer for layer in naming if layer.name != "project"), None)
    if layer is None:
        return None
    rivals = [*layers.layers[: layers.layers.index(layer) + 1]]
    if layer.name in _COMMAND_LINE:
        rivals += [other for other in layers.layers if other.name in _COMMAND_LINE]
    if any(rival.sets(("model_provider",)) for rival in rivals):
        return None
    named = split_model(layer.values["model"], providers)
    if named is None or naming[0] is layer:
        return named
    return named[0], naming[0].values["model"]


def split_model(name: str, providers: Collection[str]) -> tuple[str, str] | None:
    """Split `provider/model`; None if the first part is not a provider."""
    provider, _, model = name.partition("/")
    if model and provider in providers:
        return (provider, model)
    return None


def fallback_model(entry: str | ModelFallback) -> tuple[str, str]:
    """The provider and the model of an entry of `model_fallbacks`: `provider/model`, or a table of both.

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
