"""The models of the ChatGPT plan that pays for requests. Only who lists models asks for them.

Part of the composition root.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import httpx

from codex_py.app.model import (
    in_region,
    named_provider,
    pays_by_plan,
    provider_key,
    token_source,
)
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.http.transport import http_client
from codex_py.model.catalog import ModelInfo
from codex_py.model.client import request_headers
from codex_py.model.models_of_plan import models_of_plan
from codex_py.model.program_names import own_names
from codex_py.model.providers import Provider

_TIMEOUT_S: Final = 3.0
"""The time after which the models that the program knows are listed instead."""


async def plan_models(
    config: Config, environment: Mapping[str, str]
) -> Sequence[ModelInfo] | None:
    """Return the models of the plan that pays for the requests to the configured provider.

    Returns None if no plan does, if the user has a catalogue, or if the endpoint gives no list
    within three seconds.

    Raises:
        ConfigError: the provider is unknown, or `auth.json` cannot be read.
    """
    provider = named_provider(config, config.model_provider, environment)
    has_own_catalog = config.settings.model_catalog_json is not None
    if has_own_catalog or not pays_by_plan(config, provider, environment):
        return None
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            found = await _listed(config, provider, environment)
    except (TimeoutError, CodexError, httpx.HTTPError, httpx.InvalidURL):
        # The next request to the model tells what is wrong.
        return None
    return found or None


async def _listed(
    config: Config, provider: Provider, environment: Mapping[str, str]
) -> Sequence[ModelInfo]:
    key = provider_key(config, provider, environment)
    assert key is not None
    key = await token_source(config, key, environment, lambda _: None).key()
    provider = in_region(config, provider).for_tokens()
    names = {**own_names(), "accept": "application/json"}
    headers = request_headers(provider, key, names, environment)
    async with http_client(environment=environment) as http:
        return await models_of_plan(http, provider.base_url, headers)
