from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.program import Workplace
from tests.support.wires import AnyWire, workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return workplace(tmp_path)


Story = Callable[[AnyWire, str], object]
"""What is done in sessions with the provider of a wire."""
Reference = Callable[[str, Story], AnyWire]


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Gives what a story leaves behind with the Responses API, to compare with. Stories of one name are told once."""
    told: dict[str, AnyWire] = {}

    def tell(name: str, story: Story) -> AnyWire:
        if name not in told:
            with AnyWire(workplace(tmp_path_factory.mktemp("reference"))) as session:
                story(session, "responses")
            told[name] = session
        return told[name]

    return tell


@pytest.fixture
def ours(place: Workplace) -> Iterator[AnyWire]:
    with AnyWire(place) as session:
        yield session
