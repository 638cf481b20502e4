"""What `exec` says of its command line, its input and its surroundings.

Tests `command_line/configuration.py`.
"""

import json

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer


def test_options_without_effect_are_told(place: Workplace) -> None:
    with ScriptedServer([[*ev_message("done"), ev_completed()]]) as server:
        outcome = place.run(server, "--local-provider", "ollama", "go")
    assert outcome.code == 0
    assert [item["message"] for item in outcome.items if item["type"] == "error"] == [
        "--local-provider has no effect without --oss.",
    ]


_TOOK = ": -i takes every word up to the next option; put the prompt before it, or behind --"
_LONG = "/" + "n" * 300
"""No file system has so long a name."""
_NO_IMAGE = "it is not a PNG, JPEG, GIF or WebP image"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["-i", "a.png", "look at it"], f"there is no image 'CWD/look at it'{_TOOK}"),
        (["look", "-i", "nope.png"], "there is no image 'CWD/nope.png'"),
        (["look", "-i", "a.png,nope.png"], "there is no image 'CWD/nope.png'"),
        (["-i", "nope.png"], "there is no image 'CWD/nope.png'"),
        (["look", "-i", "."], "there is no image 'CWD'"),
        (
            ["look", "-i", "a.png"],
            f"-i/--image: 'CWD/a.png' cannot be sent: {_NO_IMAGE}",
        ),
        (
            ["look", "-i", "/etc/passwd"],
            f"-i/--image: '/etc/passwd' cannot be sent: {_NO_IMAGE}",
        ),
        (
            ["look", "-i", "/dev/zero"],
            "-i/--image: '/dev/zero' cannot be sent: it is not a regular file",
        ),
        (["look", "--max-diff-lines", "x"], "--max-diff-lines: 'x' is no whole number"),
        (["--add-dir", "/nope", "go"], "--add-dir: there is no folder '/nope'"),
        (["--add-dir", "a.png", "go"], "--add-dir: there is no folder 'a.png'"),
        (["--add-dir", _LONG, "go"], f"--add-dir: there is no folder {_LONG!r}"),
        (["go", "-i", _LONG], f"there is no image {_LONG!r}"),
    ],
)
def test_a_path_of_an_option_has_to_exist_and_be_of_the_right_kind(
    place: Workplace, argv: list[str], message: str
) -> None:
    (place.cwd / "a.png").touch()
    with ScriptedServer() as server:
        outcome = place.run(server, *argv)
    message = f"Error: {message.replace('CWD', str(place.cwd))}\n"
    assert (outcome.code, outcome.events, outcome.err) == (2, [], message)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["-m", "/x", "-c", "model_provider=openai"],
            "command line: `model`: '/x' names no model",
        ),
        (["-m", ""], "command line: `model`: '' names no model"),
        (["-m", "mock/"], "command line: `model`: 'mock/' names no model"),
        (["-c", "model="], "-c: `model`: '' names no model"),
        (["-c", 'model="mock/"'], "-c: `model`: 'mock/' names no model"),
        (
            ["-c", "model_reasoning_effort=extreme"],
            "-c: `model_reasoning_effort`: gpt-5.5 has no effort 'extreme'; use one of none, minimal,"
            " low, medium, high, xhigh, max, ultra",
        ),
        (
            ["-c", "plan_mode_reasoning_effort=hihg"],
            "-c: `plan_mode_reasoning_effort`: gpt-5.5 has no effort 'hihg'; use one of none,"
            " minimal, low, medium, high, xhigh, max, ultra",
        ),
    ],
)
def test_a_setting_that_no_model_has_is_refused_before_a_request(
    place: Workplace, argv: list[str], message: str
) -> None:
    with ScriptedServer() as server:
        outcome = place.run(server, *argv, "go")
        assert server.requests == []
    code = 2 if message.startswith("command line") else 78
    assert (outcome.code, outcome.events, outcome.err) == (
        code,
        [],
        f"Error: {message}\n",
    )


def test_a_model_of_the_users_own_has_any_name_and_effort(place: Workplace) -> None:
    with ScriptedServer([[*ev_message("done"), ev_completed()]]) as server:
        outcome = place.run(
            server, "-m", "/models/x", "-c", "model_reasoning_effort=deep", "go"
        )
        assert server.requests[0].body["model"] == "/models/x"
    assert outcome.code == 0
    warning = next(item["message"] for item in outcome.items if item["type"] == "error")
    assert warning.endswith(
        " A window of 272,000 tokens is assumed; `model_context_window` sets it."
    )


def test_a_key_in_the_place_of_a_variable_is_shown_nowhere(place: Workplace) -> None:
    key = "sk-proj-secretsecretsecret"
    with ScriptedServer() as server:
        outcome = place.run(server, env_key=key)
        others = [
            run_codex_py(argv.split(), place.home, place.cwd)
            for argv in (
                "doctor --json --all",
                "providers list",
                "config explain model_providers.mock",
            )
        ]
    path = place.home / "config.toml"
    line = path.read_text(encoding="utf-8").split("env_key")[0].count("\n") + 1
    assert (outcome.code, outcome.events) == (78, [])
    assert outcome.err == (
        f"Error loading config.toml: {path}:{line}: `model_providers.mock.env_key` must be the NAME of"
        " an environment variable, not its value\n"
    )
    for done in others:
        assert done.returncode != 0
        assert key.encode() not in done.stdout + done.stderr
        assert b"the NAME of an environment variable" in done.stdout + done.stderr


def test_a_missing_key_says_whose_it_is_and_where_it_was_configured(
    place: Workplace,
) -> None:
    with ScriptedServer() as server:
        outcome = place.run(server, env={"MOCK_KEY": ""})
    path = place.home / "config.toml"
    line = path.read_text(encoding="utf-8").split("env_key")[0].count("\n") + 1
    assert outcome.code == 77
    assert outcome.error["message"] == (
        "Missing environment variable: `MOCK_KEY`. It is set, but empty. It holds the key of the provider `mock`"
        f" ({path}:{line}); `codex-py doctor` checks the setup."
    )


def test_a_long_prompt_is_not_repeated_whole(place: Workplace) -> None:
    with ScriptedServer([[*ev_message("done"), ev_completed()]]) as server:
        place.configure(server)
        done = run_codex_py(
            ["exec", "--skip-git-repo-check", "look"],
            place.home,
            place.cwd,
            stdin=b"x" * 10**6,
        )
        assert "x" * 10**6 in json.dumps(server.requests[0].input)
    assert done.returncode == 0
    assert len(done.stderr) < 30_000
    assert b"characters are not shown" in done.stderr


def test_certificates_that_are_not_there_are_an_error_of_the_configuration(
    place: Workplace,
) -> None:
    with ScriptedServer([]) as server:
        outcome = place.run(
            server,
            *("-c", "model_providers.mock.base_url=https://127.0.0.1:9/v1"),
            "go",
            env={"SSL_CERT_FILE": "/nope"},
        )
    assert outcome.code == 78
    assert "certificates cannot be read from /nope" in outcome.error["message"]
