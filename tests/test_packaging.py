import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel puts into site-packages."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(installed: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(installed), "HOME": str(cwd)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_the_wheel_brings_the_instructions_along(installed: Path, tmp_path: Path) -> None:
    code = (
        "import codex_py.instructions as i; print(i.__file__); print(i.instruction_text('base.md'))"
    )
    done = run(installed, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    where, text = done.stdout.split("\n", 1)
    assert Path(where).is_relative_to(installed)
    assert text == (ROOT / "instructions" / "base.md").read_text(encoding="utf-8")


def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "-m", "codex_py", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Fixed. ")


def test_the_wheel_says_that_it_is_typed_and_has_no_tests(installed: Path) -> None:
    assert (installed / "codex_py" / "py.typed").is_file()
    assert not (installed / "tests").exists()
