"""What a client gets at most: tried with the program, since configuration, folder and options all count."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.mcp_agent import served, text_of, thread_of
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]


def add(place: Workplace, text: str, file: str = "config.toml") -> None:
    with (place.home / file).open("a", encoding="utf-8") as config:
        config.write(text)


def trusted(folder: Path, settings: str) -> str:
    """A line of the user's configuration; the folder gets settings of its own."""
    (folder / ".git").mkdir()
    (folder / ".codex").mkdir()
    (folder / ".codex" / "config.toml").write_text(settings, encoding="utf-8")
    return f'\n[projects.{json.dumps(str(folder))}]\ntrust_level = "trusted"\n'


READ_ONLY = ["-c", 'sandbox_mode="read-only"']
WRITE = ["-s", "workspace-write"]


REFUSED: list[tuple[list[str], list[tuple[dict[str, Any], str]]]] = [
    (
        READ_ONLY,
        [
            (
                {"sandbox": "danger-full-access"},
                "`sandbox`: danger-full-access is more than read-o",
            ),
            (
                {"config": {"sandbox_mode": "workspace-write"}},
                "`sandbox`: workspace-write is more",
            ),
        ],
    ),
    (
        [*WRITE, "-a", "untrusted"],
        [
            (
                {"sandbox": "danger-full-access"},
                "`sandbox`: danger-full-access is more than works",
            ),
            (
                {"config": {"sandbox_workspace_write.network_access": True}},
                "'sandbox_workspace_w",
            ),
            (
                {"config": {"sandbox_workspace_write": {"writable_roots": ["/"]}}},
                "'sandbox_works",
            ),
            (
                {"config": {"default_permissions": ":danger-full-access"}},
                "'default_permissions'",
            ),
            ({"cwd": "/"}, "`cwd`: / is outside of "),
            ({"cwd": "link"}, "`cwd`: "),
            (
                {"approval-policy": "never"},
                "`approval-policy`: never is looser than untrusted",
            ),
            (
                {"config": {"approval_policy": "on-failure"}},
                "`approval-policy`: on-failure is lo",
            ),
        ],
    ),
    (
        ["-a", "never"],
        [({"approval-policy": "on-request"}, "`approval-policy`: on-request is l")],
    ),
    (
        [],
        [
            (
                {"sandbox": "workspace-write"},
                "`sandbox`: workspace-write is more than read-only",
            ),
            (
                {"config": {"mcp_servers.x.command": "touch"}},
                "may not set 'mcp_servers'",
            ),
            ({"config": {"notify": ["touch", "F"]}}, "may not set 'notify'"),
            ({"config": {"hooks": {"Stop": []}}}, "'hooks'"),
            ({"config": {"model_provider": "ollama"}}, "'model_provider'"),
            (
                {"config": {"model_providers.mock.base_url": "http://x"}},
                "'model_providers'",
            ),
            (
                {"config": {"model_instructions_file": "/etc/passwd"}},
                "'model_instructions_file'",
            ),
            ({"config": {"model_catalog_json": "/etc/passwd"}}, "'model_catalog_json'"),
            (
                {"config": {"shell_environment_policy.set.BASH_ENV": "x"}},
                "'shell_environment_po",
            ),
            ({"config": {"projects": {"/": {"trust_level": "trusted"}}}}, "'projects'"),
            ({"config": {"tools.web_search": True}}, "'tools.web_search'"),
            ({"config": {"a\x1b": 1}}, r"'a\x1b'"),
            ({"model": "ollama/x"}, "`model`: the provider is ollama then"),
            ({"profile": "work"}, "`profile`: a client may not set 'notify'"),
        ],
    ),
]


@pytest.mark.parametrize(("args", "calls"), REFUSED)
def test_a_client_gets_no_more_than_the_server_was_started_with(
    place: Workplace,
    tmp_path: Path,
    args: list[str],
    calls: list[tuple[dict[str, Any], str]],
) -> None:
    (place.cwd / "link").symlink_to(tmp_path)
    add(place, 'model_verbosity = "low"\nnotify = ["touch", "F"]\n', "work.config.toml")

    async def main() -> None:
        async with served(place, *args, sandbox=None) as agent:
            for call, words in calls:
                result = await agent.session.call_tool(
                    "codex", {"prompt": "go", **call}
                )
                assert result.is_error
                assert words in text_of(result)
                assert "--trust-client" in text_of(result)

    with ScriptedServer() as server:
        place.configure(server)
        asyncio.run(main())
        assert server.requests == []
    assert not (place.cwd / "F").exists()


@pytest.mark.parametrize(
    ("args", "calls"),
    [
        (
            READ_ONLY,
            [
                {"sandbox": "read-only", "approval-policy": "never", "cwd": "/"},
                {"approval-policy": "untrusted", "cwd": "sub"},
                # An argument wins over the same setting in `config`.
                {
                    "sandbox": "read-only",
                    "config": {"sandbox_mode": "danger-full-access"},
                },
            ],
        ),
        (
            WRITE,
            [
                {"sandbox": "workspace-write", "model": "gpt-5.5", "cwd": "sub"},
                {"sandbox": "read-only", "config": {"model_reasoning_effort": "low"}},
                {"profile": "calm", "cwd": "../other"},
            ],
        ),
        (
            ["--trust-client"],
            [
                {
                    "sandbox": "danger-full-access",
                    "cwd": "/",
                    "config": {"notify": ["true"]},
                }
            ],
        ),
    ],
)
def test_a_client_may_ask_for_the_same_or_less(
    place: Workplace, tmp_path: Path, args: list[str], calls: list[dict[str, Any]]
) -> None:
    (place.cwd / "sub").mkdir()
    (tmp_path / "other").mkdir()
    add(place, 'model_verbosity = "low"\n', "calm.config.toml")

    async def main() -> None:
        async with served(place, *args, "--add-dir", "../other", sandbox=None) as agent:
            for call in calls:
                result = await agent.session.call_tool(
                    "codex", {"prompt": "go", **call}
                )
                assert (result.is_error, text_of(result)) == (False, "done")

    with ScriptedServer([DONE] * len(calls)) as server:
        place.configure(server)
        asyncio.run(main())


def test_a_trusted_project_has_the_sandbox_of_the_server_and_outside_of_it_no_programs(
    place: Workplace, tmp_path: Path
) -> None:
    inside, outside = place.cwd / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
    command = f"echo x > {tmp_path}/escaped; echo x > here"
    call = [
        *ev_function_call("call_1", "exec_command", {"cmd": command}),
        ev_completed(),
    ]

    async def main() -> None:
        async with served(
            place,
            "-c",
            "sandbox_workspace_write={exclude_slash_tmp=true, exclude_tmpdir_env_var=true}",
            *WRITE,
            sandbox=None,
        ) as agent:
            result = await agent.session.call_tool(
                "codex", {"prompt": "go", "cwd": str(inside)}
            )
            assert text_of(result) == "done"
            thread = thread_of(result)
            result = await agent.session.call_tool(
                "codex", {"prompt": "go", "cwd": str(outside)}
            )
            assert f"`cwd`: {outside} is outside of {place.cwd}" in text_of(result)
        async with served(place, "-C", str(outside), sandbox="read-only") as agent:
            result = await agent.call("codex-reply", threadId=thread)
            assert f"`cwd`: {inside} is outside of {outside}" in text_of(result)

    with ScriptedServer([call, DONE]) as server:
        place.configure(server)
        settings = 'sandbox_mode = "danger-full-access"\n'
        add(place, trusted(inside, settings) + trusted(outside, settings))
        asyncio.run(main())
    assert (inside / "here").exists()
    assert not (tmp_path / "escaped").exists()


def test_a_folder_that_became_a_link_between_two_calls_is_not_written_through(
    place: Workplace, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (place.cwd / "sub").mkdir()

    def runs(command: str) -> list[dict[str, Any]]:
        return [
            *ev_function_call("call_1", "exec_command", {"cmd": command}),
            ev_completed(),
        ]

    async def main() -> None:
        async with served(
            place,
            "-c",
            "sandbox_workspace_write={exclude_slash_tmp=true, exclude_tmpdir_env_var=true}",
            *WRITE,
            sandbox=None,
        ) as agent:
            result = await agent.session.call_tool(
                "codex", {"prompt": "go", "cwd": "sub"}
            )
            await agent.session.call_tool("codex", {"prompt": "go"})
            await agent.call("codex-reply", threadId=thread_of(result))

    swap = f"echo > before && mv sub old && ln -s {outside} sub"
    script = [
        DONE,
        runs(swap),
        DONE,
        runs(f"echo > {outside}/escaped; echo > here"),
        DONE,
    ]
    with ScriptedServer(script) as server:
        place.configure(server)
        asyncio.run(main())
    assert (place.cwd / "sub").is_symlink()
    assert list(outside.iterdir()) == []
