"""Which variables reach the program, and which reach the commands that it runs."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.program import KEY, Workplace, run_codex_py
from tests.support.repository import make_repository
from tests.support.server import ScriptedServer

SECRETS = {
    "TENANT": "tenant-7d0c",
    "MCP_TOKEN": "token-51aa",
    "MCP_HEADER": "header-93fe",
}


def commands(script: str) -> ScriptedServer:
    return ScriptedServer(
        [
            [*ev_function_call("c1", "exec_command", {"cmd": script}), ev_completed()],
            [*ev_message("done"), ev_completed()],
        ]
    )


def seen_by_commands(place: Workplace, settings: str) -> set[str]:
    with commands("env") as server:
        place.configure(server)
        config = place.home / "config.toml"
        config.write_text(
            f"{config.read_text(encoding='utf-8')}"
            f"env_http_headers = {{ x-tenant = 'TENANT' }}\n{settings}\n"
            "[mcp_servers.remote]\nurl = 'http://127.0.0.1:9/'\nenabled = false\n"
            "bearer_token_env_var = 'MCP_TOKEN'\nenv_http_headers = { x = 'MCP_HEADER' }\n",
            encoding="utf-8",
        )
        outcome = place.rerun(env=SECRETS)
    assert server.requests[0].headers["x-tenant"] == SECRETS["TENANT"]
    return set(outcome.items[0]["aggregated_output"].splitlines())


def lines(variables: Mapping[str, str]) -> set[str]:
    return {f"{name}={value}" for name, value in variables.items()}


def test_commands_do_not_see_the_variables_that_keys_come_from(
    place: Workplace,
) -> None:
    seen = seen_by_commands(place, "")
    assert seen & lines({**SECRETS, "MOCK_KEY": KEY}) == set()
    assert "SHELL=/bin/bash" in seen


@pytest.mark.parametrize(
    "policy",
    [
        "include_only = ['TENANT', 'MCP_TOKEN', 'MCP_HEADER']",
        "set = { TENANT = 'tenant-7d0c', MCP_TOKEN = 'token-51aa', MCP_HEADER = 'header-93fe' }",
    ],
)
def test_unless_the_user_asks_for_it(place: Workplace, policy: str) -> None:
    seen = seen_by_commands(place, f"[shell_environment_policy]\n{policy}")
    assert seen >= lines(SECRETS)
    assert f"MOCK_KEY={KEY}" not in seen


def test_the_key_of_a_built_in_provider_is_not_for_commands(place: Workplace) -> None:
    with commands("echo [$ANTHROPIC_API_KEY]") as server:
        text = f'[model_providers.anthropic]\nbase_url = "{server.base_url}"\n'
        (place.home / "config.toml").write_text(text, encoding="utf-8")
        outcome = place.rerun(
            "-m", "anthropic/m", "go", env={"ANTHROPIC_API_KEY": "key-77e1"}
        )
    assert outcome.items[-2]["aggregated_output"] == "[]\n"
    assert server.requests[0].headers["x-api-key"] == "key-77e1"


def test_a_profile_does_not_bring_keys_back(place: Workplace) -> None:
    profile = place.home.parent / ".bash_profile"
    profile.write_text(
        "export MOCK_KEY=again OTHER_KEY=again HANDED=again KEPT=kept", "ascii"
    )
    settings = (
        "[model_providers.other]\nname = 'o'\nbase_url = 'http://127.0.0.1:9'\nenv_key = 'OTHER_KEY'\n"
        "[mcp_servers.local]\ncommand = 'true'\nenabled = false\nenv_vars = ['HANDED', 'JAVA_HOME']\n"
    )
    script = "echo [$MOCK_KEY$OTHER_KEY$HANDED] $KEPT $JAVA_HOME"
    with commands(script) as server:
        place.configure(server)
        config = place.home / "config.toml"
        config.write_text(config.read_text("utf-8") + settings, "utf-8")
        outcome = place.rerun(env={"OTHER_KEY": "o", "HANDED": "h", "JAVA_HOME": "/j"})
    item = outcome.items[0]
    assert item["aggregated_output"] == "[] kept /j\n"
    assert item["command"] == f"/bin/bash -lc '{script}'"
    done = run_codex_py(
        ["sandbox", "--", "/bin/bash", "-lc", script],
        place.home,
        place.cwd,
        {"HANDED": "h"},
    )
    assert done.stdout == b"[] kept\n"


def test_env_files_are_not_read(place: Workplace, tmp_path: Path) -> None:
    # Nothing listens there.
    text = "".join(
        f"{name}=http://127.0.0.1:9/\n"
        for name in (
            "OPENAI_BASE_URL",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
        )
    )
    text += (
        "OPENAI_API_KEY=sk-evil\nCODEX_API_KEY=sk-evil\nMOCK_KEY=sk-evil\nMARK=evil\n"
    )
    make_repository(place.cwd)
    for folder in (place.cwd, place.home, place.home.parent, tmp_path):
        (folder / ".env").write_text(text, encoding="utf-8")
    with commands("env; echo ${MARK-unset}") as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.messages) == (0, ["done"])
    assert [request.headers["authorization"] for request in server.requests] == [
        f"Bearer {KEY}",
        f"Bearer {KEY}",
    ]
    assert "evil" not in outcome.items[0]["aggregated_output"]
    assert outcome.items[0]["aggregated_output"].endswith("unset\n")
