import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("home", "elsewhere"):
        (tmp_path / name).mkdir()
    return tmp_path


def run_demo(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "elsewhere"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "codex_py", "demo", *arguments],
        env=environment,
        cwd=folder / "elsewhere",
        input=stdin,
        capture_output=True,
        timeout=30,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def test_the_demo_mends_its_repository_and_says_where_it_is(folder: Path) -> None:
    done = run_demo(folder, stdin=b"this is no part of the prompt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Fixed. ")
    assert "exited 1 in" in done.stderr
    assert "AssertionError: 15 != 30" in done.stderr
    assert "+    return subtotal * (100 - discount) / 100" in done.stderr
    found = re.search(r"What it changed: git -C (\S+) diff\n$", done.stderr)
    assert found is not None
    repository = Path(found[1])
    tests = subprocess.run(
        [sys.executable, "-m", "unittest"], cwd=repository, capture_output=True, check=False
    )
    assert tests.returncode == 0


def test_the_demo_has_nothing_of_the_skills_of_the_user(folder: Path) -> None:
    for name, text in (("good", "---\ndescription: x\n---\n"), ("broken", "")):
        path = folder / "home" / ".agents" / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    done = run_demo(folder)
    assert done.returncode == 0, done.stderr
    assert "skill" not in done.stderr


def test_the_demo_leaves_nothing_in_the_users_home(folder: Path) -> None:
    run_demo(folder)
    assert list((folder / "home").iterdir()) == []


def test_the_demo_takes_no_prompt(folder: Path) -> None:
    done = run_demo(folder, "do", "it")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: `codex-py demo` takes no prompt: it replays one\n"
