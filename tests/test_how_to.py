"""The commands of the how-to guides, and of pages like them, run as they stand: the model is scripted.

A page runs in one shell, in the order of its commands, behind the files that it tells the reader to save.
`NOT_RUN` has the commands that need another machine or a person: `test_readme.py` looks up their options.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from codex_py.testing import RecordedRequest, call
from codex_py.testing.script import Script
from tests.support.documents import (
    DOCS,
    ROOT,
    blocks,
    name_of,
    reader_environment,
    shown_files,
)
from tests.support.images import png
from tests.support.server import ScriptedServer

_PAGE_S: Final = 120
RUN: Final = [
    *sorted((DOCS / "how-to").glob("*.md")),
    DOCS / "limits.md",
    DOCS / "updating.md",
]
NOT_RUN: Final = {
    "codex-py resume": "opens the terminal",
    "codex-py --plan": "opens the terminal",
    "codex-py login": "signs in at OpenAI",
    "codex-py login --device-auth": "signs in at OpenAI",
    "docker": "needs Docker",
    "git pull": "needs a network",
    "pipx": "needs a network",
}
CHANGES: Final = ("Improve the notes", "Fix issue 42")
"""Prompts after which the model changes a file."""
BEFORE: Final = {
    "how-to/undo": ('codex-py exec -s workspace-write "Improve the notes"',),
    "how-to/sign-in": ("echo sk-test | codex-py login --with-api-key",),
    **dict.fromkeys(
        ("how-to/context-full", "how-to/share-session"), ('codex-py exec "Hello"',)
    ),
}
"""What the reader has done before."""


def instance(schema: Mapping[str, Any]) -> object:
    """A value that the JSON Schema lets pass."""
    for choices in (schema.get("enum"), schema.get("anyOf")):
        if choices and isinstance(choices[0], dict):
            return instance(choices[0])
        if choices:
            return choices[0]
    match schema.get("type", "object"):
        case "object":
            properties = schema.get("properties", {})
            return {name: instance(properties[name]) for name in schema["required"]}
        case "array":
            return []
        case "string":
            return "text"
        case "boolean":
            return True
        case _:
            return 1


def answer(request: RecordedRequest) -> Script:
    schema = request.fields.get("text", {}).get("format", {}).get("schema")
    if schema is not None:
        return json.dumps(instance(schema))
    last = json.dumps(request.fields.get("input", [{}])[-1])
    if any(prompt in last for prompt in CHANGES):
        return call("exec_command", cmd="echo better >> notes.txt")
    if "Push the branch" in last:
        return call("exec_command", cmd="git push origin main")
    return "Done."


def is_run(command: str) -> bool:
    program = command.partition(" ")[0]
    return command not in NOT_RUN and program not in NOT_RUN


def commands_of(page: Path) -> list[str]:
    """The commands with a key in the place of `…`."""
    lines = "".join(blocks("sh", page.read_text(encoding="utf-8"))).splitlines()
    return [line.replace("…", "sk-test") for line in lines]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository on a branch, with a change that is not committed."""
    folder = tmp_path / "repo"
    folder.mkdir()
    (tmp_path / "home" / ".codex").mkdir(parents=True)
    (folder / "notes.txt").write_text("a\nb\nc\n", encoding="utf-8")
    (folder / "schema.json").write_text(
        '{"type": "object", "required": ["stars"], "properties": {"stars": {"type": "integer"}}}',
        encoding="utf-8",
    )
    (folder / "test_notes.py").write_text(
        "import unittest\n\nclass Notes(unittest.TestCase):\n    def test_them(self) -> None:\n        pass\n",
        encoding="utf-8",
    )
    (folder / "screenshot.png").write_bytes(png(4, 4))
    for command in (
        "git init -q -b main",
        "git config user.name a",
        "git config user.email a@example.com",
        "git add .",
        "git commit -qm First",
        "git checkout -q -b work",
        "echo d >> notes.txt",
        "git commit -qam Second",
        "echo e >> notes.txt",
    ):
        subprocess.run(["sh", "-c", command], cwd=folder, check=True)
    return folder


def configuration(server: ScriptedServer) -> str:
    """The scripted server, which also takes the place of other providers that the pages use."""
    tables = [
        server.config_toml(),
        '[model_prices."mock/gpt-5.5"]\nsame_as = "openai/gpt-5.5"',
    ]
    for name, wire_api in (("anthropic", "anthropic"), ("deepseek", "chat")):
        tables += [
            f"[model_providers.{name}]",
            f'base_url = "{server.base_url}"',
            f'wire_api = "{wire_api}"',
            'env_key = "MOCK_KEY"',
        ]
    return "\n".join([*tables, ""])


def shell(
    commands: list[str], cwd: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-exc", "\n".join(commands)],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_PAGE_S,
        check=False,
    )


def save_files(page: Path, home: Path, repo: Path) -> None:
    """Save the files that the page shows, configurations aside."""
    for shown in shown_files(page.read_text(encoding="utf-8")):
        if shown.path.endswith("config.toml"):
            continue
        path = repo / shown.path.replace("~", str(home))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(shown.content, encoding="utf-8")


def run(
    commands: list[str], page: Path, tmp_path: Path, repo: Path
) -> subprocess.CompletedProcess[str]:
    """Run commands behind the files of the page. The model keeps its rules."""
    home = tmp_path / "home"
    environment = reader_environment(tmp_path)
    with ScriptedServer([answer] * 40, models=["qwen3", "gpt-oss:20b"]) as server:
        environment["CODEX_OSS_BASE_URL"] = server.base_url
        config = configuration(server)
        (home / ".codex" / "config.toml").write_text(config, encoding="utf-8")
        save_files(page, home, repo)
        done = shell(commands, repo, environment)
    assert server.violations == []
    return done


@pytest.mark.timeout(_PAGE_S * 2)
@pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page)) for page in RUN])
def test_the_commands_of_the_page_succeed(
    tmp_path: Path, repo: Path, page: Path
) -> None:
    commands = [each for each in commands_of(page) if is_run(each)]
    before = BEFORE.get(name_of(page), ())
    done = run([*before, *commands], page, tmp_path, repo)
    assert done.returncode == 0, done.stderr[-3000:]


def test_only_commands_that_cannot_run_here_are_not_run() -> None:
    commands = {each for page in RUN for each in commands_of(page)}
    left_out = {each for each in commands if not is_run(each)}
    assert len(left_out) < len(commands) / 6
    names = left_out | {each.partition(" ")[0] for each in left_out}
    assert [each for each in NOT_RUN if each not in names] == []


@pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page)) for page in RUN])
def test_every_configuration_of_the_page_is_valid(
    tmp_path: Path, repo: Path, page: Path
) -> None:
    environment = reader_environment(tmp_path)
    for block in blocks("toml", page.read_text(encoding="utf-8")):
        # It completes a server that another part of the page adds.
        lines = [block, 'command = "npx"'] if "[mcp_servers.docs]" in block else [block]
        config = tmp_path / "home" / ".codex" / "config.toml"
        config.write_text("\n".join(lines), encoding="utf-8")
        done = shell(
            ["codex-py config explain model --strict-config"], repo, environment
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["hooks.md", "how-to/write-hook.md"])
def test_the_hook_refuses_a_push_and_nothing_else(
    tmp_path: Path, repo: Path, name: str
) -> None:
    page = DOCS / name
    command = "codex-py exec --json --dangerously-bypass-hook-trust -s workspace-write"
    prompts = ["Push the branch", "Improve the notes"]
    done = run([f"{command} '{each}'" for each in prompts], page, tmp_path, repo)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    refused, allowed = [each for each in events if each["type"] == "turn.completed"]
    assert refused["denied"]["calls"] == 1
    assert "git push is refused: a person pushes" in done.stdout
    assert "denied" not in allowed
    assert "+better" in allowed["diff"]


def test_the_programs_of_the_library_page_run(tmp_path: Path, repo: Path) -> None:
    page = DOCS / "how-to" / "library.md"
    programs = blocks("python", page.read_text(encoding="utf-8"))
    assert len(programs) == 2
    commands: list[str] = []
    for number, program in enumerate(programs):
        (repo / f"program_{number}.py").write_text(program, encoding="utf-8")
        commands.append(f"{sys.executable} program_{number}.py")
    done = run(commands, page, tmp_path, repo)
    assert (done.stdout, done.returncode) == ("Done.\n1\n", 0), done.stderr


def test_the_action_has_the_inputs_of_the_workflow() -> None:
    page = (DOCS / "how-to" / "github-action.md").read_text(encoding="utf-8")
    (workflow,) = blocks("yaml", page)
    used = re.findall(r"^    ([a-z-]+): ", workflow, re.MULTILINE)
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    inputs = re.findall(r"^  ([a-z-]+): \{", action, re.MULTILINE)
    assert len(used) >= 4
    assert [name for name in used if name not in inputs] == []
