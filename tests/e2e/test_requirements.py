"""The real program on a machine where an administrator requires something. Its `/etc` is one of the test's own."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import RecordedRequest, ev_completed, ev_function_call, ev_message
from tests.support.codex_process import start_codex_py
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
READ_ONLY = 'allowed_sandbox_modes = ["read-only"]\n'
HEADERS = ("http_headers", "env_http_headers")
Confine = Callable[[str], list[str]]


@pytest.fixture
def require(tmp_path: Path) -> Confine:
    """The words before a program so that it finds this text in `/etc/codex/requirements.toml`."""
    etc = tmp_path / "etc"
    (etc / "codex").mkdir(parents=True)
    for name in ("passwd", "group", "ld.so.cache"):
        if Path("/etc", name).exists():
            shutil.copy(Path("/etc", name), etc)
    script = f'mount --bind {shlex.quote(str(etc))} /etc && exec "$@"'
    words = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
    ]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], check=False).returncode
    ):
        pytest.skip("no namespace of mounts can be made here")

    def confine(text: str) -> list[str]:
        (etc / "codex" / "requirements.toml").write_text(text, encoding="utf-8")
        return words

    return confine


def run(
    place: Workplace, confined: list[str], *args: str, answers: list[Any]
) -> tuple[int, str, str, ScriptedServer]:
    with ScriptedServer(answers) as server:
        place.configure(server)
        done = run_codex_py(args, place.home, place.cwd, confined=confined, real=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode(), server


def calls(command: str, **more: Any) -> list[Any]:
    return [
        *ev_function_call("c1", "exec_command", {"cmd": command, **more}),
        ev_completed(),
    ]


@pytest.mark.parametrize(
    "flags",
    [
        ["--dangerously-bypass-approvals-and-sandbox"],
        ["-s", "danger-full-access"],
        ["-c", 'sandbox_mode="danger-full-access"'],
        ["-c", 'default_permissions=":danger-full-access"'],
        [
            "--dangerously-bypass-approvals-and-sandbox",
            "--ignore-user-config",
            "--ignore-rules",
        ],
    ],
)
def test_no_option_gets_full_access(
    place: Workplace, require: Confine, flags: list[str]
) -> None:
    confined = require(READ_ONLY)
    command = ["exec", "--skip-git-repo-check", *flags, "go"]
    code, out, err, server = run(place, confined, *command, answers=[DONE])
    assert (code, out, server.requests) == (78, "", [])
    assert "requirements do not allow `sandbox_mode" in err


@pytest.mark.parametrize(
    "flags",
    [
        ["-s", "workspace-write"],
        ["--full-auto"],
        ["-c", 'sandbox_mode="workspace-write"'],
    ],
)
def test_a_run_falls_back_to_reading_and_says_so(
    place: Workplace, require: Confine, flags: list[str]
) -> None:
    confined = require(READ_ONLY)
    command = ["exec", "--json", "--skip-git-repo-check", *flags, "go"]
    code, out, err, _ = run(
        place, confined, *command, answers=[calls("touch made"), DONE]
    )
    assert (code, (place.cwd / "made").exists()) == (0, False), err
    items = [json.loads(line).get("item", {}) for line in out.splitlines()]
    (warning,) = [item["message"] for item in items if item.get("type") == "error"]
    assert "falling back to required value `read-only`" in warning
    assert "(set by /etc/codex/requirements.toml)" in warning


WIDE = """sandbox_mode = "workspace-write"
approval_policy = "never"
"""
ASKS_ALL = ["exec", "--skip-git-repo-check", "-s", "workspace-write"]
LIBRARY = """
from codex_py import Agent
settings = {"approval_policy": "on-request"}
agent = Agent(sandbox="danger-full-access", approve=lambda _: True, config=settings)
print(agent.run_sync("go"))
"""
OPTIONS = """
import asyncio
from dataclasses import replace
from codex_py import SessionOptions, load_config, open_session
from codex_py.app.settings import configured_choices
from codex_py.protocol.approval import ApprovalPolicy, SandboxPolicy
async def main():
    config = replace(load_config(), sandbox_mode="danger-full-access")
    full = SandboxPolicy("danger-full-access", network_access=True)
    choices = replace(
        configured_choices(config, ()), sandbox_policy=full, approval_policy=ApprovalPolicy.NEVER
    )
    async with open_session(config, SessionOptions(choices=choices), print) as session:
        session.change(choices)
        await session.run_turn("go")
asyncio.run(main())
"""
FULL = {"type": "dangerFullAccess"}
TALKS: dict[str, tuple[list[str], Sequence[tuple[str, dict[str, Any]]]]] = {
    "app-server": (
        ["app-server"],
        [
            ("initialize", {"clientInfo": {"name": "a", "version": "1"}}),
            (
                "thread/start",
                {"sandbox": "danger-full-access", "approvalPolicy": "never"},
            ),
            (
                "thread/start",
                {"sandbox": "workspace-write", "approvalPolicy": "on-request"},
            ),
            ("turn/start", {"sandboxPolicy": FULL, "approvalPolicy": "never"}),
            (
                "turn/start",
                {"sandboxPolicy": {"type": "workspaceWrite", "writableRoots": ["/"]}},
            ),
            ("turn/start", {}),
        ],
    ),
    "acp": (
        ["acp"],
        [
            ("initialize", {"protocolVersion": 1}),
            ("session/new", {"cwd": "", "mcpServers": []}),
            ("session/set_mode", {"modeId": "full-access"}),
            ("session/prompt", {}),
        ],
    ),
    "mcp-server": (
        ["mcp-server", "--trust-client"],
        [
            (
                "initialize",
                {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "a", "version": "1"},
                },
            ),
            (
                "tools/call",
                {"sandbox": "danger-full-access", "approval-policy": "never"},
            ),
            (
                "tools/call",
                {"sandbox": "workspace-write", "config": {"web_search": "live"}},
            ),
        ],
    ),
}


def talk(place: Workplace, confined: list[str], way: str) -> None:
    """Be a client that asks for everything, and allows what it is asked for."""
    words, requests = TALKS[way]
    pipe = subprocess.PIPE
    program = start_codex_py(
        *(words, place.cwd, environment(place.home)),
        stdin=pipe,
        confined=confined,
        real=True,
    )
    with program:
        assert program.stdin
        assert program.stdout
        ids: dict[str, Any] = {}
        for number, (method, params) in enumerate(requests):
            more: dict[str, Any] = dict(ids)
            if method == "tools/call":
                params, more = (
                    {"name": "codex", "arguments": {"prompt": "go", **params}},
                    {},
                )
            if method.endswith(("/start", "/prompt")) and method != "thread/start":
                text = [{"type": "text", "text": "go"}]
                more |= (
                    {"prompt": text} if method.endswith("prompt") else {"input": text}
                )
            if "cwd" in params:
                params = {**params, "cwd": str(place.cwd)}
            request = {"jsonrpc": "2.0", "id": number, "method": method}
            lines: list[dict[str, Any]] = [{**request, "params": {**more, **params}}]
            wanted, is_answered = method == "turn/start", False
            while not is_answered or wanted:
                for line in lines:
                    program.stdin.write(json.dumps(line).encode() + b"\n")
                program.stdin.flush()
                lines = []
                answer = json.loads(program.stdout.readline())
                if "method" in answer and "id" in answer:
                    yes = {"outcome": {"outcome": "selected", "optionId": "approved"}}
                    result = {
                        **yes,
                        "decision": "accept",
                        "action": "accept",
                        "content": {},
                    }
                    lines = [{"jsonrpc": "2.0", "id": answer["id"], "result": result}]
                elif answer.get("method") == "turn/completed":
                    wanted = False
                elif answer.get("id") == number:
                    is_answered, result = True, answer.get("result", {})
                    wanted = wanted and "error" not in answer
                    thread = result.get("thread", {}).get("id")
                    ids |= {"threadId": thread} if thread else {}
                    ids |= (
                        {"sessionId": result["sessionId"]}
                        if "sessionId" in result
                        else {}
                    )
        program.stdin.close()
        program.wait(60)


def touches(request: RecordedRequest) -> list[Any]:
    """The model tries it, in the sandbox and without."""
    if any(str(item.get("type")).endswith("_output") for item in request.input[-3:]):
        return DONE
    free = {"sandbox_permissions": "require_escalated", "justification": "I want to"}
    second = ev_function_call("c2", "exec_command", {"cmd": "touch made", **free})
    return [*calls("touch made")[:-1], *second, ev_completed()]


def spawns(request: RecordedRequest) -> list[Any]:
    if "hand it on" in json.dumps(request.input[-1]):
        task = {"message": "go", "agent_type": "wide"}
        return [*ev_function_call("s1", "spawn_agent", task), ev_completed()]
    if request.input[-1].get("call_id") == "s1":
        targets = {"targets": [json.loads(request.input[-1]["output"])["agent_id"]]}
        return [*ev_function_call("s2", "wait_agent", targets), ev_completed()]
    return touches(request)


@pytest.mark.parametrize(
    "way",
    [
        *(
            "flags",
            "profile",
            "resume",
            "fork",
            "worktree",
            "best-of",
            "batch",
            "role",
            "suspend",
        ),
        *("library", "options", "home", "approve-for-me", *TALKS),
    ],
)
def test_no_way_in_gets_around_a_requirement(
    place: Workplace, require: Confine, way: str, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(place.cwd)], check=True)
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    commit = ["git", *author, "commit", "-q", "--allow-empty", "-m", "one"]
    subprocess.run(commit, cwd=place.cwd, check=True)
    (place.home / "wide.config.toml").write_text(WIDE, encoding="utf-8")
    (place.home / "agents").mkdir()
    role = f'name = "wide"\ndescription = "x"\ndeveloper_instructions = "x"\n{WIDE}'
    (place.home / "agents" / "wide.toml").write_text(role, encoding="utf-8")
    home, exec_ = place.home, ["exec", "--skip-git-repo-check"]
    confined = require(READ_ONLY)
    with ScriptedServer([spawns if way == "role" else touches] * 12) as server:
        place.configure(server)
        if way in {"resume", "fork"}:
            # Of a time when nothing was required.
            run_codex_py(
                [*exec_, "-s", "danger-full-access", "a"], home, place.cwd, real=True
            )
            (place.cwd / "made").unlink()
        if way == "home":
            home = place.cwd / "home"
            shutil.copytree(place.home, home)
            with (home / "config.toml").open("r+", encoding="utf-8") as file:
                file.write(
                    WIDE + (place.home / "config.toml").read_text(encoding="utf-8")
                )
            (home / "requirements.toml").write_text("", encoding="utf-8")
        if way in TALKS:
            talk(place, confined, way)
        elif way in {"library", "options"}:
            program = [
                *confined,
                sys.executable,
                "-c",
                LIBRARY if way == "library" else OPTIONS,
            ]
            subprocess.run(program, cwd=place.cwd, env=environment(home), check=False)
        else:
            (place.cwd / "tasks.jsonl").write_text(
                '{"id": "1", "prompt": "go"}\n', "utf-8"
            )
            words = {
                "profile": ["-p", "wide", "go"],
                "resume": ["-s", "workspace-write", "resume", "--last", "go"],
                "fork": ["-s", "workspace-write", "fork", "--last", "go"],
                "worktree": ["--worktree", "-s", "workspace-write", "go"],
                "best-of": ["--best-of", "2", "-s", "workspace-write", "go"],
                "role": ["-s", "workspace-write", "hand it on"],
                "suspend": ["--on-approval", "suspend", "-s", "workspace-write", "go"],
                "approve-for-me": ["--approve-for-me", "go"],
            }.get(way, ["-s", "workspace-write", "go"])
            batch = [
                "batch",
                "tasks.jsonl",
                "-o",
                "out.jsonl",
                "--",
                *exec_[1:],
                *words[:-1],
            ]
            run_codex_py(
                batch if way == "batch" else [*exec_, *words],
                *(home, place.cwd),
                confined=confined,
                real=True,
            )
    assert not list(tmp_path.rglob("made"))
    # A way that never tried it shows nothing.
    tried = [request for request in server.requests if b"touch made" in request.raw]
    assert tried or way == "suspend"


def test_a_mode_of_the_sandbox_command_is_held_too(
    place: Workplace, require: Confine
) -> None:
    confined = require(READ_ONLY)
    command = ["sandbox", "danger-full-access", "--", "touch", "made"]
    _, _, err, _ = run(place, confined, *command, answers=[])
    assert not (place.cwd / "made").exists()
    assert "falling back to required value `read-only`" in err


def test_a_required_rule_holds_where_rules_are_ignored(
    place: Workplace, require: Confine
) -> None:
    rule = '{ pattern = [{token = "touch"}], decision = "forbidden", justification = "not here" }'
    confined = require(f"[rules]\nprefix_rules = [{rule}]\n")
    command = [
        "exec",
        "--skip-git-repo-check",
        "--ignore-rules",
        "-s",
        "danger-full-access",
        "go",
    ]
    _, _, _, server = run(
        place, confined, *command, answers=[calls("touch made"), DONE]
    )
    assert not (place.cwd / "made").exists()
    assert "not here" in server.requests[-1].raw.decode()


def test_required_instructions_reach_the_model_of_a_resumed_session_too(
    place: Workplace, require: Confine
) -> None:
    exec_ = ["exec", "--skip-git-repo-check"]
    said: list[list[int]] = []
    for text, args in (
        ("", ["go"]),
        ("Speak softly.", ["resume", "--last", "go"]),
        ("Speak softly.", ["resume", "--last", "go"]),
        ("Shout.", ["resume", "--last", "go"]),
    ):
        confined = require(f'additional_developer_instructions = "{text}"')
        _, _, _, server = run(place, confined, *exec_, *args, answers=[DONE])
        raw = server.requests[0].raw.decode()
        said.append([raw.count("Speak softly."), raw.count("Shout.")])
    assert said == [[0, 0], [1, 0], [1, 0], [1, 1]]


def test_a_residency_is_told_to_the_provider(
    place: Workplace, require: Confine
) -> None:
    confined, name = (
        require('enforce_residency = "us"'),
        "x-openai-internal-codex-residency",
    )
    mine = [f'model_providers.mock.{key}={{"{name}"="MINE"}}' for key in HEADERS]
    flags = [word for text in mine for word in ("-c", text)]
    command = ["exec", "--skip-git-repo-check", *flags, "go"]
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        env = {"MINE": "eu"}
        run_codex_py(command, place.home, place.cwd, env, confined=confined, real=True)
    assert server.requests[0].headers[name] == "us"


@pytest.mark.parametrize("command", ["test", "login"])
def test_a_server_that_is_not_allowed_is_not_contacted(
    place: Workplace, require: Confine, command: str
) -> None:
    confined = require("mcp_servers = {}\n")
    server = 'mcp_servers.a={url="http://127.0.0.1:9/"}'
    code, _, err, _ = run(
        place, confined, "mcp", command, "a", "-c", server, answers=[]
    )
    assert code == 78
    assert err.splitlines()[-1] == (
        "Error: MCP server `a` is disabled by requirements (set by /etc/codex/requirements.toml)."
    )


def test_explain_and_doctor_name_the_file(place: Workplace, require: Confine) -> None:
    confined = require(READ_ONLY)
    command = ["config", "explain", "sandbox_mode", "-s", "workspace-write"]
    code, out, err, _ = run(place, confined, *command, answers=[])
    assert code == 0, err
    assert "from requirements config /etc/codex/requirements.toml" in out
    _, out, _, _ = run(place, confined, "doctor", "--all", answers=[])
    assert "/etc/codex/requirements.toml" in out


def test_a_mistake_in_the_file_stops_every_command(
    place: Workplace, require: Confine
) -> None:
    confined = require("nonsense = 1\n")
    for command in (["exec", "--skip-git-repo-check", "go"], ["sandbox", "true"]):
        code, _, err, _ = run(place, confined, *command, answers=[])
        assert code == 78
        assert "/etc/codex/requirements.toml:1: `nonsense` is unknown" in err
