"""The providers and the models that this program knows, for `codex-py providers` and `codex-py models`."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from codex_py.app.model import named_provider, provider_key
from codex_py.app.prices import price_of
from codex_py.app.providers.local_servers import listed_models
from codex_py.config.config import Config
from codex_py.config.model_name import split_model
from codex_py.errors import ConfigError, ModelError
from codex_py.instructions import instruction_text
from codex_py.model.catalog import catalog_models, in_form_of_codex, model_info
from codex_py.model.known_models import Price, known_models, table_date
from codex_py.model.providers import Provider
from codex_py.protocol.frozen import frozen
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS, LOCAL_PROVIDERS


@frozen(kw_only=True)
class ListedProvider:
    id: str
    name: str | None = None
    wire_api: str | None = None
    base_url: str | None = None
    key: str | None = None
    """Where its key is looked for: a variable, or the kind of another place. None: it needs none."""
    has_key: bool | None = None
    """None: it needs none, or it is not known before a request."""
    answers: bool | None = None
    """True if the server runs; None for those not on this machine."""
    problem: str | None = None
    """Why it cannot be used, in one sentence; all but the id may be None then."""


@frozen(kw_only=True)
class ListedModel:
    id: str
    provider: str
    context_window: int
    max_output_tokens: int | None
    tools: str
    """`freeform` or `functions`: how `apply_patch` is offered."""
    images: bool
    reasoning: str | None
    """The effort that is asked for unless the user sets one; None: none."""
    prices: Price | None
    date: str
    """The day of the table, or `config` if the user set the prices."""


def listed_providers(config: Config, environment: Mapping[str, str]) -> Sequence[ListedProvider]:
    """All providers. Asks those on this machine whether they run, which takes a second or two at most."""
    names = list(dict.fromkeys([*BUILT_IN_PROVIDERS, *config.model_providers]))

    def listed(name: str) -> ListedProvider:
        return _listed(config, name, environment)

    with ThreadPoolExecutor(len(LOCAL_PROVIDERS)) as pool:
        return list(pool.map(listed, names))


def listed_models_of_all(config: Config) -> Sequence[ListedModel]:
    """The models that something is known of, those of the catalogue first, and those with prices of the user.

    Raises:
        ConfigError: the configured catalogue cannot be read.
    """
    providers, own = {*BUILT_IN_PROVIDERS, *config.model_providers}, (config.model_provider, "")
    owners = {
        **{model.slug: "openai" for model in catalog_models(config.model_catalog_json)},
        **{model.slug: model.provider for model in known_models()},
        **{name: (split_model(name, providers) or own)[0] for name in config.model_prices},
    }
    outputs = {model.slug: model.output for model in known_models()}
    rows: list[ListedModel] = []
    for name, provider in owners.items():
        info = model_info(name, config.model_catalog_json)
        rows.append(
            ListedModel(
                id=name.removeprefix(f"{provider}/"),
                provider=provider,
                context_window=info.context_window,
                max_output_tokens=info.max_output_tokens or outputs.get(name),
                tools="freeform" if info.freeform_apply_patch else "functions",
                images=info.images,
                reasoning=info.default_reasoning_effort,
                prices=price_of(config, name, provider),
                date="config" if name in config.model_prices else str(table_date()),
            )
        )
    return rows


def catalogue_of_codex(config: Config, *, bundled: bool) -> dict[str, Any]:
    """`{"models": […]}`, as Codex has it: that of the configuration, or of this program where there is none or
    `bundled`.

    Raises:
        ConfigError: the configured catalogue cannot be read.
    """
    models = catalog_models(None if bundled else config.model_catalog_json)
    told = {"base_instructions": instruction_text("base.md")}
    return {"models": [in_form_of_codex(model) | told for model in models]}


def model_to_try(config: Config, provider: Provider, environment: Mapping[str, str]) -> str:
    """A model of a provider: the configured one, else one that it is known to have.

    Raises:
        ModelError: a server on this machine does not answer.
        ConfigError: none is known.
    """
    if config.model_provider == provider.id and "model" in config.values:
        return config.model
    if provider.id in LOCAL_PROVIDERS:
        if models := listed_models(provider, config, environment):
            return models[0].id
    elif found := [model.slug for model in known_models() if model.provider == provider.id]:
        return found[0]
    raise ConfigError(
        f"say which model to try: codex-py providers test {provider.id} --model MODEL"
    )


def _listed(config: Config, name: str, environment: Mapping[str, str]) -> ListedProvider:
    try:
        provider = named_provider(config, name, environment)
    except ConfigError as error:
        return ListedProvider(id=name, problem=str(error))
    key, has_key = _key(config, provider, environment)
    answers = problem = None
    if name in LOCAL_PROVIDERS:
        try:
            listed_models(provider, config, environment)
            answers = True
        except ModelError as error:
            answers, problem = False, str(error)
    return ListedProvider(
        id=name,
        name=provider.name,
        wire_api=provider.wire_api,
        base_url=provider.shown_url,
        key=key,
        has_key=has_key,
        answers=answers,
        problem=problem,
    )


def _key(
    config: Config, provider: Provider, environment: Mapping[str, str]
) -> tuple[str | None, bool | None]:
    if provider.env_key is None and provider.auth is not None:
        return "auth.command", None
    try:
        key = provider_key(config, provider, environment)
    except (ModelError, ConfigError):
        return provider.env_key or "OPENAI_API_KEY", False
    if provider.env_key is not None:
        return provider.env_key, True
    return (None, None) if key is None else (key.source.rpartition(" ")[2], True)
