"""Finds the model that a user most likely meant by another name. LIGHT."""

import re
from collections.abc import Collection, Iterable
from typing import Final

from codex_py.errors import nearest
from codex_py.model.catalog import catalog_models
from codex_py.model.known_models import KnownModel, known_model, known_models
from codex_py.model.providers import OPENAI_URL, Provider
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS

_MISSPELT: Final = 0.9
"""The similarity of two names from which one is taken for a misspelling: `anthropc`, but not
`mistralai`."""
_MISSPELT_AT_OPENAI: Final = 0.6
"""The same for a provider if OpenAI is asked, which has no model with a slash in its name."""


def similar_model(provider: str, name: str) -> str | None:
    """The slug of the provider's known model that an unknown name resembles.

    `gpt5` resembles `gpt-5`, `gqt-5.5` resembles `gpt-5.5`, and `opus` the newest model with this word.
    """
    own = [model for model in known_models() if model.provider == provider]
    for model in own:
        if _letters(model.slug) == _letters(name):
            return model.slug
    near = nearest(name, [model.slug for model in own], alike=_MISSPELT)
    if near is not None:
        return near
    with_word = _first_with_word(own, name)
    return None if with_word is None else with_word.slug


def doubted_provider(
    provider: Provider, model: str, known: Collection[str]
) -> str | None:
    """Return a sentence if the provider most likely has no such model, but another one has.

    OpenAI is known to have no model with a slash in its name, and none of another maker. Any other
    provider may have one: `mistralai/…` is not a misspelt `mistral/…`.

    Args:
        known: the ids of the user's own providers.
    """
    is_openai = provider.base_url == OPENAI_URL
    if is_openai and any(model.startswith(own.slug) for own in catalog_models(None)):
        # The table of other models, which takes 2 ms to read, is not needed.
        return None
    if is_openai:
        meant = _of_other_provider(model)
        if meant is not None:
            return f"OpenAI is asked for a model `{model}`; did you mean `{meant}`?"
    first, slash, rest = model.partition("/")
    if not slash:
        return None
    alike = _MISSPELT_AT_OPENAI if is_openai else _MISSPELT
    similar = nearest(first, {*BUILT_IN_PROVIDERS, *known}, alike=alike)
    is_misspelt = similar is not None and similar != first
    if not is_misspelt and not is_openai:
        return None
    if similar:
        hint = f"did you mean `{similar}/{rest}`?"
    else:
        hint = "`codex-py providers list` shows the providers."
    asked = "OpenAI" if is_openai else f"the provider `{provider.id}`"
    return (
        f"{asked} is asked for a model `{model}`, because it names no provider; {hint}"
    )


def _of_other_provider(name: str) -> str | None:
    """The choice `PROVIDER/MODEL` of another provider than OpenAI that a name stands for.

    The name is that of a provider, `PROVIDER:MODEL`, a known model, or a word of known models.
    """
    others = [model for model in known_models() if model.provider != "openai"]
    first, colon, rest = name.partition(":")
    if first in BUILT_IN_PROVIDERS and first != "openai":
        of_provider = [model for model in others if model.provider == first]
        suggested = next((each.slug for each in of_provider if each.suggested), "MODEL")
        return f"{first}/{rest if colon else suggested}"
    model = known_model(name)
    if model is None and similar_model("openai", name) is None:
        model = _first_with_word(others, name)
    if model is None or model.provider == "openai":
        return None
    return f"{model.provider}/{model.slug}"


def _first_with_word(models: Iterable[KnownModel], word: str) -> KnownModel | None:
    """The model with this word in its name: a suggested one, or the first of the table."""
    found = [model for model in models if word.lower() in model.slug.lower().split("-")]
    if not re.fullmatch(r"[A-Za-z]{4,}", word):
        return None
    suggested = [model for model in found if model.suggested]
    return next(iter([*suggested, *found]), None)


def _letters(name: str) -> str:
    """The letters and digits of a name, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
