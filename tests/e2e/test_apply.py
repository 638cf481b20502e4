"""Patches without a session: the program called `apply_patch`, and what applying one loads.

Tests `commands/apply/envelope.py`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from codex_py import __version__
from tests.support.patching import enveloped
from tests.support.program import environment

ROOT = Path(__file__).parents[2]
ADD = enveloped("*** Add File: new", "+x")
ADDED = (0, "Success. Updated the following files:\nA new\n", "")
USAGE = "Usage: apply_patch 'PATCH'\n       echo 'PATCH' | apply_patch\n"
FIRST_LINE = "Invalid patch: The first line of the patch must be '*** Begin Patch'\n"
LAST_LINE = "Invalid patch: The last line of the patch must be '*** End Patch'\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The command as it is installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    installed = folder / "codex-py"
    installed.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from codex_py.__main__ import main\nmain()\n",
        encoding="utf-8",
    )
    installed.chmod(0o755)
    for name in ("apply_patch", "applypatch"):
        (folder / name).symlink_to(installed)
    return folder / "apply_patch"


def run(program: Path, *argv: str | bytes, stdin: bytes = b"") -> tuple[int, str, str]:
    work = program.parents[1] / "work"
    work.mkdir(exist_ok=True)
    done = subprocess.run(
        [program, *argv],
        cwd=work,
        env=environment(program.parents[1]),
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("name", ["apply_patch", "applypatch"])
@pytest.mark.parametrize(
    ("argv", "stdin", "expected"),
    [
        ([ADD], b"", ADDED),
        ([], f"{ADD}\n".encode(), ADDED),
        ([ADD], b"not read", ADDED),
        ([], b"", (2, "", USAGE)),
        ([""], b"", (1, "", LAST_LINE)),
        (
            [ADD, "-"],
            b"",
            (2, "", "Error: apply_patch accepts exactly one argument.\n"),
        ),
        (["--help"], b"", (1, "", FIRST_LINE)),
        (["--version"], b"", (1, "", FIRST_LINE)),
        (["-"], ADD.encode(), (1, "", FIRST_LINE)),
        ([enveloped()], b"", (1, "", "No files were modified.\n")),
        (
            [],
            b"*** Begin Patch\n\xff",
            (
                1,
                "",
                "Error: Failed to read PATCH from stdin.\nstream did not contain valid UTF-8\n",
            ),
        ),
        (
            [b"\xff"],
            b"",
            (1, "", "Error: apply_patch requires a UTF-8 PATCH argument.\n"),
        ),
    ],
)
def test_it_is_the_tool_by_its_name(
    program: Path,
    name: str,
    argv: list[str | bytes],
    stdin: bytes,
    expected: tuple[int, str, str],
) -> None:
    """As Codex 0.169 does it."""
    assert run(program.with_name(name), *argv, stdin=stdin) == expected


NO_ARGUMENT = "Error: --codex-run-as-apply-patch requires a UTF-8 PATCH argument.\n"


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([ADD], ADDED),
        ([ADD, "more"], ADDED),
        ([], (1, "", NO_ARGUMENT)),
        ([b"\xff"], (1, "", NO_ARGUMENT)),
        ([""], (1, "", LAST_LINE)),
    ],
)
def test_it_is_the_tool_by_an_option(
    program: Path, argv: list[str | bytes], expected: tuple[int, str, str]
) -> None:
    """As Codex 0.169 does it."""
    codex_py = program.with_name("codex-py")
    found = run(codex_py, "--codex-run-as-apply-patch", *argv, stdin=ADD.encode())
    assert found == expected
    assert run(codex_py, "--version") == (0, f"codex-py {__version__}\n", "")


def test_a_failed_patch_changes_nothing_and_an_applied_one_can_be_undone(
    program: Path,
) -> None:
    work = program.parents[1] / "work"
    code, _, stderr = run(
        program, enveloped("*** Add File: new", "+x", "*** Delete File: old")
    )
    assert (code, stderr) == (
        1,
        f"Failed to delete file {work}/old: No such file or directory (os error 2)\n",
    )
    assert list(work.iterdir()) == []
    assert run(program, ADD) == ADDED
    assert run(program.with_name("codex-py"), "undo")[0] == 0
    assert list(work.iterdir()) == []


def test_a_missing_working_directory_is_told(program: Path) -> None:
    gone = program.parents[1] / "gone"
    gone.mkdir()
    script = f'cd "$1" && rmdir "$1" && exec "$2" "{ADD}"'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "-", gone, program],
        env=environment(program.parents[1]),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr.decode()) == (
        1,
        "Error: Failed to determine current directory.\nNo such file or directory (os error 2)\n",
    )


HEAVY = {
    *(
        "asyncio",
        "dataclasses",
        "datetime",
        "httpx",
        "inspect",
        "jsonschema",
        "pydantic",
        "rich",
    ),
    *("copy", "hashlib", "subprocess", "unidiff"),
}


def imports_of(folder: Path, patch: str, argv: list[str]) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "codex_py", *argv],
        cwd=folder,
        env=environment(folder),
        input=patch.encode(),
        capture_output=True,
        timeout=120,
        check=True,
    )
    return {
        line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()
    }


@pytest.mark.parametrize("argv", [["apply"], ["--codex-run-as-apply-patch", ADD]])
def test_an_envelope_loads_little(tmp_path: Path, argv: list[str]) -> None:
    loaded = imports_of(tmp_path, ADD, argv)
    assert {"codex_py.patch.envelope.apply", "codex_py.patch.envelope.reader"} <= loaded
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()
    assert {
        name
        for name in loaded
        if name.startswith(("codex_py.patch.unified.hunks", "codex_py.r"))
    } == (set())


def test_a_diff_loads_little(tmp_path: Path) -> None:
    loaded = imports_of(
        tmp_path, "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n", ["apply"]
    )
    assert "codex_py.patch.unified.reader" in loaded
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()


def test_nothing_is_imported_from_the_tree_that_is_patched(tmp_path: Path) -> None:
    for name in ("json", "argparse", "subprocess", "difflib"):
        (tmp_path / f"{name}.py").write_text(
            "raise SystemExit('imported')", encoding="utf-8"
        )
    patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"
    (tmp_path / "x").write_text("1\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "codex_py", "apply", "--3way"],
        cwd=tmp_path,
        env=environment(tmp_path, {"PYTHONPATH": str(ROOT)}),
        input=patch.encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, (tmp_path / "x").read_text(encoding="utf-8")) == (
        0,
        "2\n",
    ), done.stderr.decode()
