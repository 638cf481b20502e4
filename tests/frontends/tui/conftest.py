from collections.abc import Generator

import pytest

from tests.frontends.tui.terminals import Start, starting
from tests.support.program import Workplace


@pytest.fixture
def start(place: Workplace) -> Generator[Start]:
    with starting(place) as start:
        yield start
