from pathlib import Path

import pytest

from tests.support.program import Workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    home, cwd = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    cwd.mkdir()
    return Workplace(home, cwd)
