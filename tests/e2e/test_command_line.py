"""What `exec` says of its command line, its input and its surroundings."""

import json

from codex_py.testing import ScriptedServer, ev_completed, ev_message
from tests.support.program import Workplace, run_codex_py


def test_options_without_effect_are_told(place: Workplace) -> None:
    with ScriptedServer([[*ev_message("done"), ev_completed()]]) as server:
        outcome = place.run(server, "--add-dir", "/nope", "--local-provider", "ollama", "go")
    assert outcome.code == 0
    assert [item["message"] for item in outcome.items if item["type"] == "error"] == [
        "--add-dir /nope: there is no such folder, so nothing can be written there.",
        "--local-provider has no effect without --oss.",
    ]


def test_a_long_prompt_is_not_repeated_whole(place: Workplace) -> None:
    with ScriptedServer([[*ev_message("done"), ev_completed()]]) as server:
        place.configure(server)
        done = run_codex_py(
            ["exec", "--skip-git-repo-check", "look"], place.home, place.cwd, stdin=b"x" * 10**6
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
