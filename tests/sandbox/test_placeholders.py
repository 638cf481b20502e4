import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.sandbox.placeholders import Placeholders


@pytest.fixture
def held(tmp_path: Path) -> Path:
    return tmp_path / ".codex"


def test_a_name_is_taken_and_given_back(held: Path) -> None:
    placeholders = Placeholders()
    placeholders.hold([held])
    placeholders.hold([held])
    assert list(held.iterdir()) == []
    placeholders.release()
    placeholders.release()
    assert not held.exists()


def test_the_last_agent_gives_it_back(held: Path) -> None:
    first, second = Placeholders(), Placeholders()
    first.hold([held])
    second.hold([held])
    first.release()
    assert held.is_dir()
    second.release()
    assert not held.exists()


def test_what_a_killed_agent_left_is_taken_away_by_the_next(held: Path) -> None:
    script = (
        "import os, sys\nfrom pathlib import Path\n"
        "from codex_py.sandbox.placeholders import Placeholders\n"
        "Placeholders().hold([Path(sys.argv[1])])\nos.kill(os.getpid(), 9)"
    )
    subprocess.run(
        [sys.executable, "-c", script, held],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert held.is_dir()
    placeholders = Placeholders()
    placeholders.hold([held])
    placeholders.release()
    assert not held.exists()


def test_what_was_put_into_it_meanwhile_stays(held: Path) -> None:
    placeholders = Placeholders()
    placeholders.hold([held])
    (held / "config.toml").touch()
    placeholders.release()
    assert [path.name for path in held.iterdir()] == ["config.toml"]


def test_an_empty_folder_of_the_user_stays(held: Path) -> None:
    held.mkdir()
    placeholders = Placeholders()
    placeholders.hold([held])
    placeholders.release()
    assert held.is_dir()


def test_nothing_is_touched_that_is_no_empty_folder(held: Path) -> None:
    held.write_text("a file", encoding="ascii")
    link = held.with_name(".agents")
    link.symlink_to("nowhere")
    placeholders = Placeholders()
    placeholders.hold([held, link, held / "below"])
    placeholders.release()
    assert held.read_text(encoding="ascii") == "a file"
    assert link.is_symlink()
