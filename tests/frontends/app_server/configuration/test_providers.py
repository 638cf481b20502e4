"""Providers of models, listed and changed by a client. Shapes and words are those of `codex app-server` 0.171.

Tests `app/providers/summaries.py`, `frontends/app_server/configuration/provider_patches.py` and
`frontends/app_server/configuration/providers.py`.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import ConfigError
from codex_py.frontends.app_server.configuration.providers import ProviderMethods
from codex_py.protocol.checked import WrongValue
from tests.support.app_server import AppServer
from tests.support.app_server_groups import Groups
from tests.support.codex import ask_app_server, needs_codex
from tests.support.program import Workplace, environment

MINE = """\
# mine
model = "gpt-5.5"

[model_providers.mine] # my own
name = "Mine"
base_url = "https://mine.example/v1" # the address
env_key = "THE_KEY"

[model_providers.token]
name = "Token"
base_url = "https://me:password@token.example/v1"
experimental_bearer_token = "secret"
"""


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """The administrator's folder."""
    folder = tmp_path / "etc"
    folder.mkdir()
    return folder


@pytest.fixture
def client(place: Workplace, system: Path) -> Groups:
    write(place, MINE)
    return Groups(place.home, place.cwd, system, ProviderMethods)


def write(place: Workplace, text: str) -> Path:
    path = place.home / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def text_of(place: Workplace) -> str:
    return (place.home / "config.toml").read_text("utf-8")


def gateway(**settings: Any) -> dict[str, Any]:
    return {"settings": {"type": "customGateway", **settings}}


def put(client: Groups, **settings: Any) -> Mapping[str, Any]:
    return client.ask("modelProvider/config/write", **gateway(**settings))["provider"]


def test_providers_are_listed_without_credentials(
    client: Groups, place: Workplace
) -> None:
    write(
        place,
        """\
model_provider = "key"
[model_providers.key]
name = "Key"
base_url = "https://key.example/v1"
env_key = "THE_KEY"
[model_providers.hidden]
base_url = "https://me:password@hidden.example/v1"
[model_providers.token]
base_url = "https://token.example/v1"
experimental_bearer_token = "secret"
wire_api = "chat"
[model_providers.header]
base_url = "https://header.example/v1"
env_key = "THE_KEY"
http_headers = { Authorization = "secret" }
[model_providers.broken]
name = "No address"
""",
    )
    answer = client.ask("modelProvider/list")
    assert answer["defaultProviderId"] == "key"
    assert answer["canChangeDefault"] is True
    assert "secret" not in json.dumps(answer)
    assert "password" not in json.dumps(answer)
    found = {each["id"]: each for each in answer["data"]}
    assert {"openai", "anthropic", "ollama"} < set(found)
    assert {"broken", "azure"}.isdisjoint(found)
    assert found["openai"] == {
        "id": "openai",
        "name": "OpenAI",
        "canEdit": False,
        "baseUrl": None,
        "settings": {"type": "openai"},
    }
    assert found["hidden"]["baseUrl"] is None
    assert found["key"]["baseUrl"] == "https://key.example/v1"
    keys = {
        name: found[name]["settings"]["auth"]
        for name in ("key", "hidden", "token", "header", "ollama")
    }
    assert keys == {
        "key": {"mode": "environmentVariable", "envKey": "THE_KEY"},
        "hidden": {"mode": "none"},
        "token": {"mode": "externallyConfigured", "envKey": None},
        "header": {"mode": "externallyConfigured", "envKey": "THE_KEY"},
        "ollama": {"mode": "none"},
    }


def test_the_administrator_may_choose_the_provider(
    client: Groups, system: Path
) -> None:
    (system / "managed_config.toml").write_text('model_provider = "ollama"\n', "utf-8")
    answer = client.ask("modelProvider/list")
    assert answer["defaultProviderId"] == "ollama"
    assert answer["canChangeDefault"] is False


@pytest.mark.parametrize(
    ("provider", "searches"),
    [("openai", True), ("anthropic", False), ("ollama", False)],
)
def test_capabilities_are_those_of_the_provider(
    client: Groups, place: Workplace, provider: str, searches: bool
) -> None:
    write(place, f'model_provider = "{provider}"\n')
    answer = client.ask("modelProvider/capabilities/read")
    assert answer == {"imageGeneration": False, "webSearch": searches}


def test_an_unusable_provider_has_no_capabilities(
    client: Groups, place: Workplace
) -> None:
    write(place, 'model_provider = "azure"\n')
    with pytest.raises(ConfigError, match="AZURE_OPENAI_ENDPOINT"):
        client.ask("modelProvider/capabilities/read")


def test_the_default_is_set(client: Groups, place: Workplace) -> None:
    answer = client.ask("modelProvider/default/set", providerId="mine")
    assert answer["status"] == "ok"
    model = 'model = "gpt-5.5"\n'
    assert text_of(place) == MINE.replace(model, f'{model}model_provider = "mine"\n')
    client.ask("modelProvider/default/set", providerId="ollama")
    error = client.refused("modelProvider/default/set", providerId="nobody")
    assert str(error) == "Model provider `nobody` is not configured."
    assert error.data == {"config_write_error_code": "configValidationError"}
    assert 'model_provider = "ollama"' in text_of(place)


def test_a_new_provider_gets_an_id(client: Groups, place: Workplace) -> None:
    added = put(client, name="My Gateway", baseUrl="https://n/v1", envKey="NEW_KEY")
    assert added == {
        "id": "my-gateway",
        "name": "My Gateway",
        "canEdit": True,
        "baseUrl": "https://n/v1",
        "settings": {
            "type": "customGateway",
            "auth": {"mode": "environmentVariable", "envKey": "NEW_KEY"},
        },
    }
    assert text_of(place) == (
        f"{MINE}\n[model_providers.my-gateway]\n"
        'base_url = "https://n/v1"\nenv_key = "NEW_KEY"\nname = "My Gateway"\n'
        'wire_api = "responses"\n'
    )
    for name, expected in (
        ("my gateway!", "my-gateway-2"),
        ("My/Gateway", "my-gateway-3"),
        ("OpenAI", "openai-2"),
        ("日本", "provider"),
    ):
        added = put(client, name=name, baseUrl="https://n/v1", providerId=None)
        assert added["id"] == expected
        assert added["settings"]["auth"] == {"mode": "none"}


def test_a_provider_is_changed_and_all_else_stays(
    client: Groups, place: Workplace
) -> None:
    assert put(client, providerId="mine", name="New")["name"] == "New"
    put(client, providerId="mine", baseUrl="https://new.example/v1", envKey=None)
    after = MINE.replace('"Mine"', '"New"').replace("mine.example", "new.example")
    assert text_of(place) == after.replace('env_key = "THE_KEY"\n', "")
    # The key of the other one is not shown, and stays.
    changed = put(client, providerId="token", name="Secretive")
    assert (changed["baseUrl"], changed["settings"]["auth"]) == (
        None,
        {"mode": "externallyConfigured", "envKey": None},
    )
    assert 'experimental_bearer_token = "secret"' in text_of(place)


def test_a_provider_without_an_address_gets_one(
    client: Groups, place: Workplace
) -> None:
    write(place, '[model_providers.mine]\nname = "Mine"\n')
    assert put(client, providerId="mine", baseUrl="https://h/v1")["canEdit"] is True


def test_a_provider_of_another_file_is_not_edited(
    client: Groups, place: Workplace, system: Path
) -> None:
    theirs = '[model_providers.theirs]\nbase_url = "https://h/v1"\n'
    (system / "config.toml").write_text(theirs, "utf-8")
    found = client.ask("modelProvider/list")["data"]
    edits = {each["id"]: each["canEdit"] for each in found}
    assert (edits["mine"], edits["theirs"], edits["openai"]) == (True, False, False)
    asked = gateway(providerId="theirs", name="X")
    error = client.refused("modelProvider/config/write", **asked)
    assert str(error) == "Unknown provider ID."
    assert text_of(place) == MINE


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "Enter a provider name."),
        ({"name": " ", "baseUrl": "https://h"}, "Enter a provider name."),
        ({"name": "x" * 300, "baseUrl": "https://h"}, "Enter a provider name."),
        ({"name": "X"}, "A base URL is required to create a custom provider."),
        ({"name": "X", "baseUrl": None}, "A base URL is required"),
        ({"name": "X", "baseUrl": "h"}, "Enter an HTTP(S) base URL without"),
        ({"name": "X", "baseUrl": "ftp://h"}, "Enter an HTTP(S) base URL without"),
        ({"name": "X", "baseUrl": "https://a:b@h"}, "Enter an HTTP(S) base URL"),
        ({"name": "X", "baseUrl": "https://h?a=b"}, "Enter an HTTP(S) base URL"),
        ({"name": "X", "baseUrl": 5}, "Enter an HTTP(S) base URL without"),
        ({"name": "X", "baseUrl": "https://h", "envKey": "a b"}, "Invalid API key"),
        ({"name": "X", "baseUrl": "https://h", "envKey": ""}, "Invalid API key"),
        ({"name": "X", "baseUrl": "https://h", "envKey": 5}, "Invalid API key"),
        ({"providerId": "nobody", "name": "X"}, "Unknown provider ID."),
        ({"providerId": "openai", "name": "X"}, "cannot use a built-in provider ID."),
        ({"providerId": "token", "envKey": "X"}, "is configured externally."),
        ({"providerId": "mine", "baseUrl": None}, "base_url is missing"),
    ],
)
def test_a_patch_that_makes_no_provider_is_refused(
    client: Groups, place: Workplace, settings: Mapping[str, Any], problem: str
) -> None:
    error = client.refused("modelProvider/config/write", **gateway(**settings))
    assert problem in str(error)
    assert text_of(place) == MINE


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"settings": None},
        {"settings": {"type": "bedrock", "providerId": "amazon-bedrock"}},
        gateway(name="X", baseUrl="https://h", headers={"a": "b"}),
    ],
)
def test_other_settings_of_providers_are_not_served(
    client: Groups, asked: Mapping[str, Any]
) -> None:
    with pytest.raises(WrongValue):
        client.ask("modelProvider/config/write", **asked)


def test_a_client_adds_a_provider_and_uses_it(place: Workplace) -> None:
    write(place, MINE)
    with AppServer(place.home, place.cwd) as server:
        asked = gateway(name="Mine too", baseUrl="https://h/v1")
        added = server.ask("modelProvider/config/write", asked)["provider"]
        chosen = {"providerId": added["id"]}
        assert server.ask("modelProvider/default/set", chosen)["status"] == "ok"
        assert server.ask("modelProvider/list")["defaultProviderId"] == "mine-too"
        abilities = server.ask("modelProvider/capabilities/read")
        assert abilities == {"imageGeneration": False, "webSearch": True}


@needs_codex
def test_codex_changes_providers_in_the_same_way(place: Workplace) -> None:
    changes = [
        ("modelProvider/config/write", gateway(name="A b", baseUrl="https://n/v1")),
        ("modelProvider/config/write", gateway(name="A b", baseUrl="https://n/v1")),
        ("modelProvider/config/write", gateway(providerId="mine", envKey=None)),
        ("modelProvider/config/write", gateway(providerId="mine", envKey="OTHER")),
        ("modelProvider/config/write", gateway(providerId="token", name="X")),
        ("modelProvider/default/set", {"providerId": "a-b"}),
    ]
    path = write(place, MINE)
    theirs = ask_app_server(environment(place.home), place.cwd, *changes)
    text = path.read_text("utf-8")
    write(place, MINE)
    with AppServer(place.home, place.cwd) as server:
        ours = [server.ask(*change) for change in changes]
    assert ours == theirs
    assert tomllib.loads(text) == tomllib.loads(path.read_text("utf-8"))
