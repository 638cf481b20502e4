"""The built wheel and the source archive have all that users need."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from codex_py.version import DISTRIBUTION
from tests.support.server import ScriptedServer

ROOT = Path(__file__).parent.parent


def built(kind: str, folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (archive,) = folder.iterdir()
    return archive


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel puts into site-packages."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(built("wheel", folder)) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(
    installed: Path, *arguments: str, cwd: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(installed),
            "HOME": str(cwd),
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_the_wheel_brings_the_instructions_along(
    installed: Path, tmp_path: Path
) -> None:
    code = "import codex_py.instructions as i; print(i.__file__); print(i.instruction_text('base.md'))"
    done = run(installed, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    where, text = done.stdout.split("\n", 1)
    assert Path(where).is_relative_to(installed)
    assert text == (ROOT / "instructions" / "base.md").read_text(encoding="utf-8")


def test_the_wheel_brings_the_help_along(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "-m", "codex_py", "undo", "--help", cwd=tmp_path)
    text = ROOT / "codex_py" / "cli" / "help_texts" / "undo.txt"
    assert (done.returncode, done.stdout) == (0, text.read_text(encoding="utf-8"))


def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "-m", "codex_py", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Fixed. ")


def test_the_wheel_says_that_it_is_typed_and_has_no_tests(installed: Path) -> None:
    assert (installed / "codex_py" / "py.typed").is_file()
    assert not (installed / "tests").exists()


def test_the_wheel_brings_a_manual_page_and_schemas(
    tmp_path: Path, installed: Path
) -> None:
    with zipfile.ZipFile(built("wheel", tmp_path)) as wheel:
        (page,) = [
            name for name in wheel.namelist() if name.endswith("/man/man1/codex-py.1")
        ]
        assert ".TH CODEX-PY 1" in wheel.read(page).decode()
    schemas = {path.name for path in (installed / "codex_py" / "schemas").iterdir()}
    assert schemas == {"config.json", "events.json"}


def test_the_wheel_brings_its_licence_and_says_what_it_is(installed: Path) -> None:
    (info,) = installed.glob("codex_py_agent-*.dist-info")
    metadata = message_from_string((info / "METADATA").read_text(encoding="utf-8"))
    assert metadata["Name"] == DISTRIBUTION
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE"]
    for name in ("LICENSE", "NOTICE"):
        assert (info / "licenses" / name).read_bytes() == (ROOT / name).read_bytes()
    assert metadata["Author"] == "codex_py contributors"
    assert metadata["Keywords"]
    assert "Typing :: Typed" in (metadata.get_all("Classifier") or [])


def test_the_source_archive_has_what_its_documents_point_to(tmp_path: Path) -> None:
    with tarfile.open(built("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = {path for path in re.findall(r"\]\(([^):]+)\)", readme) if "#" not in path}
    assert {"docs/compatibility.md", "CONTRIBUTING.md"} <= linked
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    scripts = set(re.findall(r"(?:\bscripts|\.ci)/[a-z-]+", readme + contributing))
    assert ".ci/run" in scripts
    assert (
        linked | scripts | {"LICENSE", "NOTICE", "CHANGELOG.md", "tests/conftest.py"}
        <= names
    )


def test_ci_names_tests_that_are_there() -> None:
    named = re.findall(r"tests/[\w./]+", (ROOT / ".ci/run").read_text(encoding="utf-8"))
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_container_is_made_of_what_is_there() -> None:
    """An image cannot be built in a test: its copies are, as far as they decide whether the package builds."""
    steps = (ROOT / "Containerfile").read_text(encoding="utf-8")
    copied = [
        word
        for line in re.findall(r"^COPY (.*) \S+$", steps, re.MULTILINE)
        for word in line.split()
    ]
    assert [path for path in copied if not (ROOT / path).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = [project["project"]["readme"], *project["project"]["license-files"]]
    assert {
        *wheel["packages"],
        *wheel["force-include"],
        *wheel["shared-data"],
        *files,
    } <= {*copied}


def test_the_slim_installation_is_enough_for_a_library(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^pip install (httpx .*)$", page, re.MULTILINE)
    kept = {name.replace("-", "_") for name in named.split()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    declared = {
        re.split(r"[<>=]", each)[0].replace("-", "_")
        for each in project["dependencies"]
    }
    # These come with those that are kept.
    left_out = declared - kept - {"anyio", "pydantic_core", "referencing"}
    assert {"mcp", "prompt_toolkit", "rich"} <= left_out
    modules = {"markdown_it_py": "markdown_it", "agent_client_protocol": "acp"}
    absent = sorted(modules.get(name, name) for name in left_out)
    patch = "*** Begin Patch\n*** Add File: a.txt\n+text\n*** End Patch"
    calls = [
        *ev_function_call("call_1", "exec_command", {"cmd": "echo hi | tr a-z A-Z"}),
        *ev_custom_tool_call("call_2", "apply_patch", patch),
        *ev_function_call("call_3", "double", {"number": 4}),
    ]
    with ScriptedServer(
        [[*calls, ev_completed()], [*ev_message('{"a": 1}'), ev_completed()]]
    ) as server:
        home, work = tmp_path / "home", tmp_path / "work"
        home.mkdir()
        work.mkdir()
        (home / "config.toml").write_text(server.config_toml(), encoding="utf-8")
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                f"import sys; sys.modules |= dict.fromkeys({absent})\n{_SLIM}",
            ],
            cwd=work,
            env={
                "CODEX_HOME": str(home),
                "PATH": os.environ["PATH"],
                "MOCK_KEY": "none",
            },
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stdout.decode().strip()) == (0, '{"a": 1}'), (
            done.stderr
        )
        outputs = [server.requests[1].output(f"call_{number}") for number in (1, 2, 3)]
    assert [text.splitlines()[-1] for text in outputs] == ["HI", "A a.txt", "8"]


_SLIM = """
import asyncio
from pathlib import Path
from codex_py import SessionOptions, load_config, open_session

def double(number: int) -> int:
    return 2 * number

async def main() -> None:
    config = load_config(cwd=Path.cwd(), overrides=["sandbox_mode=workspace-write"])
    async with open_session(config, SessionOptions(), lambda _: None, tools=[double]) as session:
        result = await session.run_turn("go", output_schema={"type": "object"})
        print(result.last_message)

asyncio.run(main())
"""
