"""The providers and the models that this program knows, for `codex-py providers` and `codex-py models`."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from codex_py.app.model import named_provider, provider_key
from codex_py.app.prices import price_of
from codex_py.app.providers.local_servers import listed_models
from codex_py.config.config import Config
from codex_py.config.model_name import split_model
from codex_py.errors import ConfigError, ModelError
from codex_py.instructions import instruction_text
from codex_py.model.catalog import catalog_models, in_form_of_codex, model_info
from codex_py.model.known_models import known_models, table_date
from codex_py.model.providers import Provider
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS, LOCAL_PROVIDERS

_FACTS: Final = ("name", "wire_api", "base_url", "key", "has_key", "answers", "problem")


def listed_providers(config: Config, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """All providers. Asks those on this machine whether they run, which takes a second or two at most.

    `key` is where its key is looked for, a variable or the kind of another place, and None if it needs none. `has_key`
    is None then too, and where it is not known before a request; `answers` for servers that are not on this machine.
    `problem` is why it cannot be used, in one sentence; all but the `id` may be None then.
    """
    names = dict.fromkeys([*BUILT_IN_PROVIDERS, *config.model_providers])
    with ThreadPoolExecutor(len(LOCAL_PROVIDERS)) as pool:
        return list(pool.map(partial(_listed, config, environment), names))


def listed_models_of_all(config: Config) -> list[dict[str, Any]]:
    """The models that something is known of, those of the catalogue first, and those with prices of the user.

    `tools` is how `apply_patch` is offered, `freeform` or `functions`; `reasoning` the effort that is asked for unless
    the user sets one; `date` the day of the table of prices, or `config` if the user set them.

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
    rows: list[dict[str, Any]] = []
    for name, provider in owners.items():
        info, prices = model_info(name, config.model_catalog_json), price_of(config, name, provider)
        rows.append(
            {
                "id": name.removeprefix(f"{provider}/"),
                "provider": provider,
                "context_window": info.context_window,
                "max_output_tokens": info.max_output_tokens or outputs.get(name),
                "tools": "freeform" if info.freeform_apply_patch else "functions",
                "images": info.images,
                "reasoning": info.default_reasoning_effort,
                "prices": prices and asdict(prices),
                "date": "config" if name in config.model_prices else str(table_date()),
            }
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


def _listed(config: Config, environment: Mapping[str, str], name: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"id": name, **dict.fromkeys(_FACTS)}
    try:
        provider = named_provider(config, name, environment)
        facts |= {"name": provider.name, "wire_api": provider.wire_api}
        facts["base_url"] = provider.shown_url
        facts["key"], facts["has_key"] = _key(config, provider, environment)
        if name in LOCAL_PROVIDERS:
            facts["answers"] = False
            listed_models(provider, config, environment)
            facts["answers"] = True
    except (ConfigError, ModelError) as error:
        facts["problem"] = str(error)
    return facts


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
