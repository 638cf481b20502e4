"""The README's examples are run as they stand, against a scripted model."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import RecordedRequest, ev_completed, ev_created, ev_function_call, ev_message
from tests.support.server import ScriptedServer

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
_PROGRAM_S = 60
"""How long one program may take, on a machine that does much else too."""
HELLO = "Hello! What are we working on?"
ANSWERS = {
    "Say hello": HELLO,
    "Write release notes": "First release.",
    "Rate this repo": '{"stars": 5}',
    "And in one word?": "Hello.",
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str]]:
    """`(command, output)` of everything that the README shows at a prompt, in order."""
    found: list[tuple[str, str]] = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def answer(request: RecordedRequest) -> list[Mapping[str, Any]]:
    """What the model of the README says to its prompts."""
    prompt = next(
        part["text"]
        for item in reversed(request.input)
        if item.get("role") == "user"
        for part in item["content"]
    )
    if prompt.startswith("Count the lines"):
        if request.input[-1]["type"] == "function_call_output":
            return [ev_created(), *ev_message("notes.txt has 3 lines."), ev_completed()]
        call = ev_function_call("call_1", "exec_command", {"cmd": "wc -l notes.txt"})
        return [ev_created(), *call, ev_completed()]
    text = next(text for start, text in ANSWERS.items() if prompt.startswith(start))
    return [ev_created(), *ev_message(text), ev_completed()]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".codex"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "notes.txt").write_text("a\nb\nc\n", encoding="utf-8")
    (folder / "schema.json").write_text('{"required": ["stars"]}', encoding="utf-8")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "First"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def environment(tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "codex-py"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m codex_py "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path / "home"),
        "SHELL": "/bin/bash",
        "MOCK_KEY": "none",
    }


def same_but_for_ids(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)


@pytest.mark.timeout(_PROGRAM_S * (2 + len(examples())))
def test_every_example_prints_what_the_readme_shows(tmp_path: Path, home: Path, repo: Path) -> None:
    with ScriptedServer([answer] * 20) as server:
        config = server.config_toml().replace('model = "gpt-5.5"\n', "")
        (home / "config.toml").write_text(config, encoding="utf-8")
        for command, output in examples():
            if command.startswith("codex-py exec resume"):
                # The session before it in the README's text is that of the first example.
                say_hello = examples()[0][0]
                run(say_hello, tmp_path, repo)
            assert same_but_for_ids(run(command, tmp_path, repo)) == same_but_for_ids(output)
    assert len(examples()) >= 8
    assert (repo / "notes.md").read_text(encoding="utf-8") == "First release."


def run(command: str, tmp_path: Path, repo: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=repo,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PROGRAM_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
    return done.stdout.decode()


def test_the_library_example_runs_as_it_stands(tmp_path: Path, home: Path, repo: Path) -> None:
    example, _ = blocks("python")
    with ScriptedServer([answer]) as server:
        (home / "config.toml").write_text(server.config_toml(), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", example],
            cwd=repo,
            env=environment(tmp_path),
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines()[-1] == HELLO


def test_the_tool_example_runs_as_it_stands(tmp_path: Path, home: Path, repo: Path) -> None:
    _, example = blocks("python")
    call = ev_function_call("call_1", "stock", {"part": "bolts"})
    with ScriptedServer(
        [
            [ev_created(), *call, ev_completed()],
            lambda request: [
                ev_created(),
                *ev_message(request.input[-1]["output"]),
                ev_completed(),
            ],
        ]
    ) as server:
        (home / "config.toml").write_text(server.config_toml(), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", example],
            cwd=repo,
            env=environment(tmp_path),
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines()[-1] == '{"bolts":7}'


def test_the_provider_example_is_a_valid_configuration(
    tmp_path: Path, home: Path, repo: Path
) -> None:
    (example,) = blocks("toml")
    (home / "config.toml").write_text(example, encoding="utf-8")
    command = "codex-py config explain model_providers.mine.base_url --strict-config"
    assert '"https://llm.example.com/v1"' in run(command, tmp_path, repo)


def test_the_scripts_that_the_readme_names_are_there() -> None:
    names = set(re.findall(r"scripts/([a-z-]+)", README))
    assert {name for name in names if not os.access(ROOT / "scripts" / name, os.X_OK)} == set()
