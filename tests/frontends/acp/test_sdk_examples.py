"""`codex-py acp` driven by the examples of the official SDKs, and by `acplint`, where they are installed.

`ACP_PEERS` names a folder. Its `node_modules` has `acp-sdk-example`, the last TypeScript SDK with examples; its
folder `python` has the source of `agent-client-protocol`, and the wheel of `acplint`.
"""

import json
import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

PEERS = Path(os.environ.get("ACP_PEERS", "/nonexistent"))
DONE = [*ev_message("done"), ev_completed()]
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n"
ASKS: Final = ("-s", "workspace-write", "-a", "on-request")

ACPLINT_IS_WRONG: Final = {
    # It wants the version to be a string, and sends one.
    "initialize_v1",
    "protocol_version_returned",
    "schema_initialize",
    # It wants `label` instead of `name` in the options of a configuration.
    "new_session",
    "schema_session_new",
    # It sends `content` instead of `prompt`, so no prompt runs.
    "agent_message_chunk_received",
    "prompt_stop_reason",
}
"""The tests of acplint 0.1.0 that contradict the schema of version 1."""


def runs(command: str) -> list[Any]:
    arguments = {"cmd": command, "sandbox_permissions": "require_escalated"}
    return [*ev_function_call("call_1", "exec_command", arguments), ev_completed()]


def program(place: Workplace, name: str, *options: str) -> Path:
    """A program of this name that is our agent, whatever its arguments are."""
    words = [sys.executable, "-m", "codex_py", "acp", *options]
    folder = place.home / "bin"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def python_example(place: Workplace, name: str) -> Path:
    """An example of the Python SDK."""
    archives = list(PEERS.glob("python/agent_client_protocol-*.tar.gz"))
    if not archives:
        pytest.skip("ACP_PEERS has no source of agent-client-protocol")
    found = place.home / name
    with tarfile.open(archives[0]) as archive:
        folder = archives[0].name.removesuffix(".tar.gz")
        stream = archive.extractfile(f"{folder}/examples/{name}")
        assert stream is not None
        found.write_bytes(stream.read())
    return found


def run(
    place: Workplace,
    words: Sequence[str | Path],
    answers: str = "",
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    path = f"{place.home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(word) for word in words],
        cwd=place.cwd,
        env={**environment(place.home), "PATH": path, **(env or {})},
        input=answers,
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )


def test_the_example_of_the_typescript_sdk_asks_its_user(place: Workplace) -> None:
    example = PEERS / "node_modules/acp-sdk-example/dist/examples/client.js"
    if not example.exists():
        pytest.skip("ACP_PEERS has no acp-sdk-example")
    # With this it starts the agent that is beside it.
    program(place, "npx", *ASKS)
    with ScriptedServer([runs("echo hi >made"), DONE]) as server:
        place.configure(server)
        done = run(place, ["node", example], "1\n")
    assert "1. Allow (allow_once)" in done.stdout, done.stderr
    assert "updated: completed" in done.stdout
    assert "Agent completed with: end_turn" in done.stdout
    assert (place.cwd / "made").read_text(encoding="utf-8") == "hi\n"


def test_the_example_of_the_python_sdk_sends_prompts(place: Workplace) -> None:
    example = python_example(place, "client.py")
    agent = program(place, "agent")
    with ScriptedServer([DONE, DONE]) as server:
        place.configure(server)
        done = run(place, [sys.executable, example, agent], "one\ntwo\n")
    assert done.stdout.count("| Agent: done") == 2, done.stderr
    assert len(server.requests) == 2


def test_the_files_of_the_python_sdk_example_are_patched(place: Workplace) -> None:
    example = python_example(place, "gemini.py")
    agent = program(place, "gemini", "-s", "danger-full-access")
    (place.cwd / "a.txt").write_text("one\n", encoding="utf-8")
    patch = [*ev_custom_tool_call("call_1", "apply_patch", PATCH), ev_completed()]
    with ScriptedServer([patch, DONE]) as server:
        place.configure(server)
        words = [sys.executable, example, "--gemini", agent, "--yolo", "--prompt", "go"]
        done = run(place, words)
    assert "Connected to Gemini (protocol v1)" in done.stdout, done.stderr
    assert f"[Client] Read {place.cwd / 'a.txt'}" in done.stdout
    assert f"[Client] Wrote {place.cwd / 'a.txt'}" in done.stdout
    assert "→ completed" in done.stdout
    assert (place.cwd / "a.txt").read_text(encoding="utf-8") == "two\n"


def test_a_terminal_of_the_python_sdk_example_is_no_success(place: Workplace) -> None:
    """It runs no command, and answers each request with an empty result."""
    example = python_example(place, "gemini.py")
    agent = program(place, "gemini", "-s", "danger-full-access")
    with ScriptedServer([runs("touch made"), DONE]) as server:
        place.configure(server)
        config = place.home / "config.toml"
        setting = '\n[acp]\nclient_terminal = "unsandboxed"\n'
        config.write_text(
            config.read_text(encoding="utf-8") + setting, encoding="utf-8"
        )
        words = [sys.executable, example, "--gemini", agent, "--yolo", "--prompt", "go"]
        done = run(place, words)
    assert "[Client] createTerminal:" in done.stdout, done.stderr
    assert "terminal: term-1" in done.stdout
    assert "releaseTerminal" in done.stdout
    output = str(server.requests[-1].input[-1]["output"])
    assert "Process exited with code -1" in output
    assert "the editor answered without the exit code" in output
    assert not (place.cwd / "made").exists()


def test_acplint_finds_nothing_but_its_own_mistakes(place: Workplace) -> None:
    wheels = list(PEERS.glob("python/acplint-*.whl"))
    if not wheels:
        pytest.skip("ACP_PEERS has no acplint")
    agent = program(place, "agent")
    report = place.home / "report.json"
    script = "import sys; from acplint.cli import main; sys.exit(main())"
    with ScriptedServer([DONE] * 50) as server:
        place.configure(server)
        words = [sys.executable, "-c", script, "--agent", agent, "--cwd", place.cwd]
        words += ["--timeout", "30", "--output", "json", "--output-file", report]
        words += ["--categories", "initialization", "authentication", "cancel"]
        words += ["session_lifecycle", "session_modes", "config_options", "streaming"]
        words += ["schema_validation"]
        done = run(place, words, env={"PYTHONPATH": str(wheels[0])})
    results = json.loads(report.read_text(encoding="utf-8"))["results"]
    failed = {each["name"] for each in results if each["status"] in {"FAIL", "ERROR"}}
    assert failed <= ACPLINT_IS_WRONG, done.stdout
    assert len(results) > 20
