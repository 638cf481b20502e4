import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.user_programs import Start
from codex_py.errors import CodexError, ConfigError, ExitCode, ModelError
from codex_py.model import auth
from codex_py.model.auth import ProviderKey
from codex_py.model.providers import Provider, TokenCommand


def provider(**values: Any) -> Provider:
    return Provider(id="mock", name="Mock", base_url="http://127.0.0.1:1", **values)


OPENAI = provider(requires_openai_auth=True)


def find_key(
    asked: Provider, *, environment: Mapping[str, str], home: Path
) -> ProviderKey | None:
    def start(command: TokenCommand) -> subprocess.Popen[bytes]:
        started = Start([command.command, *command.args], home, environment)
        return started.detached(subprocess.PIPE)

    return auth.find_key(asked, environment=environment, home=home, start=start)


def test_a_provider_that_asks_for_no_key_gets_none(tmp_path: Path) -> None:
    environment = {"OPENAI_API_KEY": "not-for-you"}
    assert find_key(provider(), environment=environment, home=tmp_path) is None


def test_the_variable_of_the_provider_is_read(tmp_path: Path) -> None:
    key = find_key(
        provider(env_key="K"), environment={"K": " secret\r\n"}, home=tmp_path
    )
    assert key == ProviderKey("secret", "environment variable K")
    assert "secret" not in repr(key)


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        ({}, ""),
        ({"K": ""}, " It is set, but empty."),
        ({"K": " \n"}, " It is set, but empty."),
    ],
)
def test_a_missing_variable_is_named_with_its_instructions(
    environment: dict[str, str], state: str, tmp_path: Path
) -> None:
    asking = provider(
        env_key="K",
        env_key_instructions="Get one at the desk.",
        env_key_place="/a/config.toml:3",
    )
    with pytest.raises(ModelError) as caught:
        find_key(asking, environment=environment, home=tmp_path)
    error = caught.value
    assert str(error) == (
        f"Missing environment variable: `K`.{state} Get one at the desk. It holds the key of the provider"
        " `mock` (/a/config.toml:3); `codex-py doctor` checks the setup."
    )
    assert (error.code, error.exit_code) == ("missing_key", ExitCode.AUTHENTICATION)


def test_a_token_in_the_configuration_is_used(tmp_path: Path) -> None:
    key = find_key(provider(bearer_token="t"), environment={}, home=tmp_path)
    assert key == ProviderKey("t", "model_providers.mock.experimental_bearer_token")


def test_openai_keys_are_looked_for_in_order(tmp_path: Path) -> None:
    environment = {"CODEX_API_KEY": "1", "OPENAI_API_KEY": "2"}
    path = tmp_path / "auth.json"
    path.write_text('{"OPENAI_API_KEY": "3", "tokens": null}', encoding="utf-8")
    found: list[ProviderKey | None] = [
        find_key(OPENAI, environment=environment, home=tmp_path)
    ]
    del environment["CODEX_API_KEY"]
    found.append(find_key(OPENAI, environment=environment, home=tmp_path))
    found.append(find_key(OPENAI, environment={}, home=tmp_path))
    assert found == [
        ProviderKey("1", "environment variable CODEX_API_KEY"),
        ProviderKey("2", "environment variable OPENAI_API_KEY"),
        ProviderKey("3", str(path)),
    ]


def test_openai_without_a_key_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="set the environment variable OPENAI_API_KEY"):
        find_key(OPENAI, environment={}, home=tmp_path)


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        ('{"OPENAI_API_KEY": "sec\nret', ConfigError, "line 1: not valid JSON"),
        ("[]", ConfigError, "not a JSON object"),
        ("\xff", ConfigError, "not valid JSON"),
        ('{"tokens": {"access_token": "secret"}}', ModelError, "ChatGPT login"),
        ('{"OPENAI_API_KEY": null}', ModelError, "No API key"),
    ],
)
def test_an_auth_file_without_a_key_is_explained(
    content: str, kind: type[CodexError], message: str, tmp_path: Path
) -> None:
    (tmp_path / "auth.json").write_text(content, encoding="latin-1")
    with pytest.raises(kind, match=message) as caught:
        find_key(OPENAI, environment={}, home=tmp_path)
    assert "ret" not in str(caught.value).replace("secret", "")


@pytest.mark.parametrize("value", ["käse€", "two\nlines", "a\x00b"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(
    value: str, tmp_path: Path
) -> None:
    with pytest.raises(
        ModelError, match="environment variable K holds characters"
    ) as caught:
        find_key(provider(env_key="K"), environment={"K": value}, home=tmp_path)
    assert value not in str(caught.value)


def by_command(code: str, timeout_ms: int = 20_000) -> Provider:
    return provider(
        auth=TokenCommand(sys.executable, ("-c", code), timeout_ms=timeout_ms)
    )


def test_a_command_prints_the_key(tmp_path: Path) -> None:
    asking = by_command("import os; print(os.environ['T'])")
    key = find_key(asking, environment={"T": "token"}, home=tmp_path)
    assert key == ProviderKey("token", "the command of model_providers.mock.auth")


@pytest.mark.parametrize("code", ["print('token'); exit(3)", "print()"])
def test_a_command_that_gives_no_key_is_an_error(code: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="gave none") as caught:
        find_key(by_command(code), environment={}, home=tmp_path)
    assert "token" not in str(caught.value).replace("print('token')", "")


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    # The grandchild holds the pipe open.
    code = "import subprocess as s, sys; s.run([sys.executable, '-c', 'input()'], stdin=s.PIPE)"
    hanging = by_command(f"{code}; import time; time.sleep(60)", timeout_ms=300)
    with pytest.raises(ModelError, match="gave none in 300 ms"):
        find_key(hanging, environment={}, home=tmp_path)


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    asking = provider(auth=TokenCommand(str(tmp_path / "nothing")))
    with pytest.raises(ModelError, match="nothing"):
        find_key(asking, environment={}, home=tmp_path)


@pytest.mark.parametrize("value", ["", " ", "\n"])
def test_an_openai_key_that_is_set_but_empty_is_said_to_be_empty(
    value: str, tmp_path: Path
) -> None:
    asking = provider(requires_openai_auth=True)
    with pytest.raises(ModelError, match=r"OPENAI_API_KEY \(it is set, but empty\)\."):
        find_key(asking, environment={"OPENAI_API_KEY": value}, home=tmp_path)


@pytest.mark.parametrize("kind", ["a named pipe", "a folder", "a device"])
def test_a_login_file_that_is_not_regular_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "auth.json"
    match kind:
        case "a named pipe":
            os.mkfifo(path)
        case "a folder":
            path.mkdir()
        case _:
            path.symlink_to("/dev/zero")
    with pytest.raises(ConfigError) as raised:
        find_key(OPENAI, environment={}, home=tmp_path)
    assert str(raised.value) == f"{path} cannot be read: it is {kind}"


@pytest.mark.parametrize("where", ["variable", "personal", "login", "account"])
def test_a_token_that_is_not_ascii_is_refused_without_being_quoted(
    where: str, tmp_path: Path
) -> None:
    environment: dict[str, str] = {}
    token = "at-\u00e9secret"
    stored: dict[str, object] = {}
    if where == "variable":
        environment["CODEX_ACCESS_TOKEN"] = token
    elif where == "personal":
        stored = {"personal_access_token": token}
    elif where == "login":
        stored = {"auth_mode": "chatgpt", "tokens": {"access_token": token}}
    else:
        tokens = {"access_token": "good", "account_id": token}
        stored = {"auth_mode": "chatgpt", "tokens": tokens}
    (tmp_path / "auth.json").write_text(json.dumps(stored), "utf-8")
    asking = provider(requires_openai_auth=True, tokens_url="http://127.0.0.1:1")
    with pytest.raises(ModelError, match="no key can have") as caught:
        find_key(asking, environment=environment, home=tmp_path)
    assert "secret" not in str(caught.value)
