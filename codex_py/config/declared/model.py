"""Declares the keys about models and their providers. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_py.config.declared.kinds import (
    Count,
    Price,
    Secret,
    Variable,
)
from codex_py.config.declared.section import Section, key, no_effect, rest, table


class ProviderAuth(Section):
    """`[model_providers.*.auth]`"""

    command: str | None = key("A program that prints the key.")
    args: tuple[str, ...] | None = key("The arguments of the program.")
    cwd: Path | None = key("The working directory of the program.")
    timeout_ms: Count | None = key("The time limit of the program, in milliseconds.")
    refresh_interval_ms: Count | None = no_effect()


class ProviderProfile(Section):
    """`[model_providers.*.profile]`"""

    extra_body: Mapping[str, Any] = table(
        "Fields of every request; they replace those of the API."
    )
    left_out: tuple[str, ...] | None = key(
        "Fields that the server refuses; no request has them."
    )
    others: Mapping[str, Any] = rest("Other special features of the API.")


class ModelProvider(Section):
    """`[model_providers.*]`"""

    name: str | None = key("The name of the provider in messages.")
    base_url: str | None = key(
        "The address of the API, without its last part such as `/responses`."
    )
    env_key_instructions: str | None = key(
        "The advice in the message if the variable is not set."
    )
    env_key: Variable | None = key("The NAME of the variable that holds the key.")
    experimental_bearer_token: Secret | None = key(
        "The key itself. A command can read it in the file: prefer `env_key`."
    )
    auth: ProviderAuth = table()
    aws: Mapping[str, Any] | None = no_effect()
    wire_api: str | None = key("The API: `responses`, `chat`, `anthropic` or `text`.")
    key_header: str | None = key(
        "The way to send the key: `bearer`, `x-api-key` or `api-key`."
    )
    profile: ProviderProfile = table()
    query_params: Mapping[str, Secret] = table(
        "A parameter of the query of every request."
    )
    http_headers: Mapping[str, Secret] = table("A header of every request.")
    env_http_headers: Mapping[str, Variable] = table(
        "A header of every request: the NAME of the variable that holds its value."
    )
    request_max_retries: Count | None = key(
        "The number of retries of a failed request (4)."
    )
    stream_max_retries: Count | None = key(
        "The number of retries of a broken stream (5; in the terminal 10)."
    )
    stream_idle_timeout_ms: Count | None = key(
        "The longest silence of a stream, in milliseconds."
    )
    websocket_connect_timeout_ms: Count | None = no_effect()
    supports_websockets: bool | None = no_effect(False)
    requires_openai_auth: bool | None = key("Use the key or the login for OpenAI.")
    capabilities: Mapping[str, Any] | None = no_effect({})


class ModelFallback(Section):
    """`[model_fallbacks]`"""

    provider: str | None = key()
    model: str | None = key()


class ModelPrice(Section):
    """`[model_prices.*]`"""

    input: Price | None = key("Dollars for a million tokens of input.")
    cached_input: Price | None = key(
        "Dollars for a million tokens of input that the provider had in its cache."
    )
    output: Price | None = key("Dollars for a million tokens of output.")
    same_as: str | None = key("The prices are those of this model, `PROVIDER/MODEL`.")
