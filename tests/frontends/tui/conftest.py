from collections.abc import Generator
from pathlib import Path

import pytest

from tests.frontends.tui.terminals import Start, starting
from tests.support.program import Workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    home, cwd = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    cwd.mkdir()
    return Workplace(home, cwd)


@pytest.fixture
def start(place: Workplace) -> Generator[Start]:
    with starting(place) as start:
        yield start
