"""Tests `frontends/demo/demo_session.py`."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.support.codex_process import start_codex_py
from tests.support.pty_program import PtyProgram


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("home", "elsewhere"):
        (tmp_path / name).mkdir()
    return tmp_path


def run_demo(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "elsewhere"),
        **variables,
    }
    words = ["demo", *arguments]
    with start_codex_py(
        words, folder / "elsewhere", environment, stdin=subprocess.PIPE
    ) as program:
        out, err = program.communicate(stdin, timeout=120)
    return subprocess.CompletedProcess(
        words, program.returncode, out.decode(), err.decode()
    )


def on_terminal(folder: Path, columns: int, **variables: str) -> PtyProgram:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "elsewhere"),
        "TERM": "xterm-256color",
        **variables,
    }
    return PtyProgram(
        ["demo"], folder / "elsewhere", environment, columns=columns, codex_py=True
    )


def test_the_demo_mends_its_repository_and_says_where_it_is(folder: Path) -> None:
    done = run_demo(folder, stdin=b"this is no part of the prompt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Fixed. ")
    assert "exited 1 in" in done.stderr
    assert "AssertionError: 15 != 30" in done.stderr
    assert "+    return subtotal * (100 - discount) / 100" in done.stderr
    found = re.search(r"What it changed:\n  git -C (\S+) diff\n$", done.stderr)
    assert found is not None
    repository = Path(found[1])
    tests = subprocess.run(
        [sys.executable, "-m", "unittest"],
        cwd=repository,
        capture_output=True,
        check=False,
    )
    assert tests.returncode == 0


@pytest.mark.parametrize("columns", [60, 120])
def test_on_a_terminal_the_demo_looks_as_the_terminal_does(
    folder: Path, columns: int
) -> None:
    with on_terminal(folder, columns, LANG="C.UTF-8", NO_COLOR="1", CI="1") as program:
        assert program.wait() == 0
        shown = "\n".join(program.scrollback)
        for text in (
            "\u203a A test fails in this repo.",
            "  \u2514 Read README.md, basket.py, test_basket.py",
            "\u2022 Edited basket.py (+1 -1)",
            "    \u2714 Run the tests again",
        ):
            assert text in shown
        # No word is broken, and nothing is left of the frame.
        assert re.search(r"takes\s+it off as an\s+amount:", shown)
        assert not re.search(r"Working|Ask codex-py|resume|\x1b\[3[0-9]m", shown)
        # The path of a test is longer than a row.
        assert re.search(
            r"What it changed:  git -C \S+/basket diff$", "".join(program.scrollback)
        )
        assert not list((folder / "elsewhere").glob("*/home"))


def test_ctrl_c_ends_the_demo_on_a_terminal(folder: Path) -> None:
    with on_terminal(folder, 80) as program:
        program.wait_for("Working")
        # It is no prompt: what is typed goes nowhere.
        program.type("more\r")
        program.press("c-c")
        assert program.wait() == 130


SKILL = "---\ndescription: x\n---\n"
HOOKS = '{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo told; exit 2"}]}]}}'
LIVED_IN = {
    ".codex/config.toml": "model = [",
    ".codex/codex-py/config.toml": 'hooks.claude = true\nmodel_provider = "none"\n',
    ".codex/AGENTS.md": "Speak Latin.",
    ".codex/auth.json": "{",
    ".codex/hooks.json": HOOKS,
    ".codex/agents/tester.toml": 'description = "x"\ndeveloper_instructions = "y"\n',
    ".codex/rules/default.rules": "prefix_rule(",
    ".codex/skills/good/SKILL.md": SKILL,
    ".claude/agents/reviewer.md": "---\nname: reviewer\ndescription: x\n---\ny\n",
    ".claude/settings.json": HOOKS,
    ".claude/CLAUDE.md": "Speak Greek.",
    ".claude/skills/broken/SKILL.md": "",
    ".agents/skills/good/SKILL.md": SKILL,
    ".gitconfig": "[init]\n templateDir = /nonexistent\n[commit",
    ".profile": "echo welcome\n",
    "venv/bin/activate": "",
}
GATEWAY = {
    "OPENAI_BASE_URL": "http://127.0.0.1:1/",
    "OPENAI_API_KEY": "x",
    "CODEX_API_KEY": "x",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:1/",
    "HTTPS_PROXY": "http://127.0.0.1:1/",
    "CODEX_OSS_PORT": "none",
    "GIT_DIR": "/nonexistent",
    "BASH_ENV": "/nonexistent/env",
    "PYTHONWARNINGS": "error",
    "LC_ALL": "xx_YY",
    "SHELL": "/nonexistent/shell",
}


def test_the_demo_has_nothing_of_the_home_and_the_environment_of_the_user(
    folder: Path,
) -> None:
    home = folder / "home"
    for name, text in LIVED_IN.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    venv = {
        "VIRTUAL_ENV": str(home / "venv"),
        "PATH": f"{home}/venv/bin:{os.environ['PATH']}",
    }
    variables = {**GATEWAY, **venv, "CODEX_HOME": str(home / ".codex")}
    done = run_demo(folder, variables=variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Fixed. ")
    assert "arning" not in done.stderr


def test_the_demo_without_git_has_nothing_of_the_project_around_its_folder(
    folder: Path,
) -> None:
    (folder / "elsewhere" / ".git").mkdir()
    (folder / "elsewhere" / ".git" / "HEAD").write_text(
        "ref: refs/heads/main\n", encoding="utf-8"
    )
    (folder / "elsewhere" / "AGENTS.md").write_text("Speak Latin.", encoding="utf-8")
    programs = folder / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "cat", "grep", "ls", "wc", "nl", "sed"):
        programs.joinpath(name).symlink_to(shutil.which(name) or "")
    done = run_demo(folder, variables={"PATH": str(programs)})
    assert done.returncode == 0, done.stderr


def test_the_demo_leaves_nothing_in_the_users_home(folder: Path) -> None:
    run_demo(folder)
    assert list((folder / "home").iterdir()) == []


def test_the_demo_takes_no_prompt(folder: Path) -> None:
    done = run_demo(folder, "do", "it")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: `codex-py demo` takes no prompt: it replays one\n"
