from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Workplace
from tests.support.wires import AnyWire, workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return workplace(tmp_path)


@pytest.fixture
def reference(tmp_path: Path) -> Iterator[AnyWire]:
    """A session with the Responses API, to compare with."""
    with AnyWire(workplace(tmp_path / "reference")) as session:
        yield session


@pytest.fixture
def ours(place: Workplace) -> Iterator[AnyWire]:
    with AnyWire(place) as session:
        yield session
