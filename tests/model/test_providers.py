import math
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from codex_py.errors import ConfigError, ModelError
from codex_py.model.auth import find_key
from codex_py.model.providers import (
    Provider,
    TokenCommand,
    key_variable,
    resolve_provider,
)
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS, LOCAL_PROVIDERS

FULL: dict[str, Any] = {
    "name": "Mock",
    "base_url": "http://127.0.0.1:1/v1/",
    "env_key": "MOCK_KEY",
    "env_key_instructions": "Get one.",
    "experimental_bearer_token": "t",
    "auth": {"command": "print-key", "args": ["-a"], "cwd": "/x", "timeout_ms": 7},
    "wire_api": "responses",
    "query_params": {"api-version": "1"},
    "http_headers": {"x-a": "b"},
    "env_http_headers": {"x-c": "C"},
    "request_max_retries": 1,
    "stream_max_retries": 2,
    "stream_idle_timeout_ms": 3,
    "requires_openai_auth": True,
}


def test_a_table_becomes_a_provider() -> None:
    assert resolve_provider("mock", {"mock": FULL}) == Provider(
        id="mock",
        name="Mock",
        base_url="http://127.0.0.1:1/v1",
        env_key="MOCK_KEY",
        env_key_instructions="Get one.",
        bearer_token="t",
        auth=TokenCommand("print-key", ("-a",), Path("/x"), 7),
        wire_api="responses",
        query_params={"api-version": "1"},
        http_headers={"x-a": "b"},
        env_http_headers={"x-c": "C"},
        request_max_retries=1,
        stream_max_retries=2,
        stream_idle_timeout_ms=3,
        requires_openai_auth=True,
        tokens_url="http://127.0.0.1:1/v1",
    )


def test_the_built_in_providers_need_no_table() -> None:
    assert resolve_provider("openai", {}) == Provider(
        id="openai",
        name="OpenAI",
        base_url="https://api.openai.com/v1",
        requires_openai_auth=True,
        tokens_url="https://chatgpt.com/backend-api/codex",
    )
    assert resolve_provider("ollama", {}).base_url == "http://localhost:11434/v1"
    assert resolve_provider("lmstudio", {}).base_url == "http://localhost:1234/v1"


def test_the_address_of_openai_can_be_set_and_the_setting_wins() -> None:
    environment = {"OPENAI_BASE_URL": "http://env/v1"}
    setting = "http://set/v1"
    of_both = resolve_provider(
        "openai", {}, openai_base_url=setting, environment=environment
    )
    of_one = resolve_provider("openai", {}, environment=environment)
    other = resolve_provider(
        "ollama", {}, openai_base_url=setting, environment=environment
    )
    assert (of_both.base_url, of_one.base_url) == ("http://set/v1", "http://env/v1")
    assert other.base_url == "http://localhost:11434/v1"


@pytest.mark.parametrize(
    ("wire_api", "given", "used"),
    [
        ("responses", "https://a/v1/responses", "https://a/v1"),
        ("responses", "https://a/responses/", "https://a"),
        ("chat", "https://a/v1/chat/completions", "https://a/v1"),
        ("text", "https://a/v1/chat/completions", "https://a/v1"),
        ("anthropic", "https://a", "https://a/v1"),
        ("anthropic", "https://a/v1/", "https://a/v1"),
        ("anthropic", "https://a/anthropic", "https://a/anthropic/v1"),
        ("anthropic", "https://a/v1beta", "https://a/v1beta"),
        ("anthropic", "https://a/v1/messages", "https://a/v1"),
        ("anthropic", "https://a/api/messages", "https://a/api"),
        ("responses", "https://a", "https://a"),
        ("responses", " https://a/v1 ", "https://a/v1"),
    ],
)
def test_an_address_may_have_the_endpoint_and_for_messages_no_version(
    wire_api: str, given: str, used: str
) -> None:
    table = {"m": {"name": "m", "base_url": given, "wire_api": wire_api}}
    assert resolve_provider("m", table).base_url == used


@pytest.mark.parametrize(
    ("provider_id", "table", "message"),
    [
        ("nope", {}, "Model provider `nope` not found; known are: anthropic, azure,"),
        ("ollama", {"ollama": FULL}, "cannot be redefined"),
        (
            "azure",
            {},
            "Azure OpenAI has no fixed address: set AZURE_OPENAI_ENDPOINT, or",
        ),
        ("openai", {"openai": FULL}, "cannot be redefined"),
        ("m", {"m": {"name": "m"}}, "model_providers.m.base_url is missing"),
        (
            "m",
            {"m": {**FULL, "base_url": "example.com"}},
            "no http:// or https:// address",
        ),
        (
            "m",
            {"m": {**FULL, "base_url": "http://h:port/"}},
            "no http:// or https:// address",
        ),
        (
            "m",
            {"m": {**FULL, "base_url": "http://[h/"}},
            "no http:// or https:// address",
        ),
        (
            "m",
            {"m": {**FULL, "base_url": "https://a/v1/chat/completions"}},
            "base_url: /chat/completions is asked by the `wire_api` 'chat', and this one is 'responses'",
        ),
        (
            "m",
            {"m": {**FULL, "wire_api": "soap"}},
            "m.wire_api: 'soap' is not supported",
        ),
        ("m", {"m": {**FULL, "auth": {"args": []}}}, "m.auth.command is missing"),
    ],
)
def test_an_unusable_provider_is_a_config_error(
    provider_id: str, table: dict[str, dict[str, Any]], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_provider(provider_id, table or {"m": FULL})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("profile", "problem"),
    [
        (
            {"tools": "maybe"},
            "profile.tools: 'maybe' is not supported; use one of native, text",
        ),
        ({"toolz": "text"}, "profile.toolz: no such setting"),
        ({"openai_fields": "yes"}, "profile.openai_fields: 'yes' is not a boolean"),
        (
            {"extra_body": {"day": date(2026, 1, 1)}},
            "profile.extra_body: JSON has no dates",
        ),
        (
            {"extra_body": {"list": [math.nan]}},
            "profile.extra_body: JSON has no dates, no nan",
        ),
    ],
)
def test_a_profile_that_cannot_be_is_a_config_error(
    profile: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        resolve_provider("m", {"m": {**FULL, "profile": profile}})


def test_the_text_wire_writes_calls_as_text_and_anthropic_has_a_key_header_of_its_own() -> (
    None
):
    text = resolve_provider("m", {"m": {**FULL, "wire_api": "text"}})
    anthropic = resolve_provider("m", {"m": {**FULL, "wire_api": "anthropic"}})
    assert (text.profile.tools, text.key_header) == ("text", "bearer")
    assert (anthropic.profile.tools, anthropic.key_header) == ("native", "x-api-key")


@pytest.mark.parametrize("provider_id", BUILT_IN_PROVIDERS)
def test_a_built_in_provider_needs_no_table_but_a_key(provider_id: str) -> None:
    environment = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/"}
    provider = resolve_provider(provider_id, {}, environment=environment)
    is_local = provider_id in LOCAL_PROVIDERS
    assert (provider.env_key is None) is (is_local or provider_id == "openai")
    assert provider.base_url.startswith("http://localhost:" if is_local else "https://")
    assert key_variable(provider_id, {}) == provider.env_key
    if provider.env_key is not None:
        with pytest.raises(ModelError, match=rf"`{provider.env_key}`\. .*https://"):
            find_key(provider, environment={}, home=Path("/nowhere"), start=Mock())


def test_a_table_that_codex_could_use_means_what_it_means_there() -> None:
    table = {"base_url": "https://openrouter.example/v1", "env_key": "K"}
    assert resolve_provider("openrouter", {"openrouter": table}).wire_api == "responses"
    chat = {**table, "wire_api": "chat"}
    assert resolve_provider("openrouter", {"openrouter": chat}).wire_api == "chat"


def test_a_table_overrides_fields_of_a_built_in_provider() -> None:
    own = {"base_url": "http://127.0.0.1:1/v1", "profile": {"tool_ids": "verbatim"}}
    provider = resolve_provider("mistral", {"mistral": own})
    assert (provider.base_url, provider.env_key) == (
        "http://127.0.0.1:1/v1",
        "MISTRAL_API_KEY",
    )
    assert (provider.profile.tool_ids, provider.profile.tool_choice) == (
        "verbatim",
        "any",
    )


def test_a_key_of_another_kind_takes_the_place_of_the_variable() -> None:
    own = {"base_url": "https://a/openai/v1", "experimental_bearer_token": "t"}
    provider = resolve_provider("azure", {"azure": own})
    assert (provider.env_key, provider.bearer_token, provider.key_header) == (
        None,
        "t",
        "bearer",
    )


@pytest.mark.parametrize(
    "endpoint", ["https://a.openai.azure.com", "https://a.openai.azure.com/openai/v1/"]
)
def test_azure_is_found_by_its_variable(endpoint: str) -> None:
    provider = resolve_provider(
        "azure", {}, environment={"AZURE_OPENAI_ENDPOINT": endpoint}
    )
    assert provider.base_url == "https://a.openai.azure.com/openai/v1"
    assert (provider.wire_api, provider.key_header) == ("responses", "api-key")


def test_variables_of_codex_say_where_its_local_servers_are() -> None:
    url = {"CODEX_OSS_BASE_URL": "http://127.0.0.1:9/v1", "CODEX_OSS_PORT": "1"}
    assert (
        resolve_provider("ollama", {}, environment=url).base_url
        == "http://127.0.0.1:9/v1"
    )
    port = {"CODEX_OSS_PORT": "1"}
    assert (
        resolve_provider("lmstudio", {}, environment=port).base_url
        == "http://localhost:1/v1"
    )
    assert (
        resolve_provider("vllm", {}, environment=port).base_url
        == "http://localhost:8000/v1"
    )
