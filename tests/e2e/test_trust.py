"""A project's own settings are used as they were when it was trusted."""

from pathlib import Path

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.program import Outcome, Workplace
from tests.support.repository import make_repository
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]


@pytest.fixture
def settings(place: Workplace) -> Path:
    make_repository(place.cwd)
    path = place.cwd / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text("developer_instructions = 'from the project'\n", encoding="utf-8")
    return path


def run(place: Workplace, *args: str) -> tuple[str, Outcome]:
    """The first request, and how the run ended."""
    with ScriptedServer([DONE]) as server:
        config = place.home / "config.toml"
        kept = (
            config.read_text("utf-8").partition("[projects")[1:]
            if config.exists()
            else ()
        )
        place.configure(server)
        with config.open("a", encoding="utf-8") as file:
            file.write("".join(kept))
        outcome = place.rerun(*args, "go")
    assert (outcome.code, outcome.messages) == (0, ["done"]), outcome.err
    return str(server.requests[0].body), outcome


def warnings(outcome: Outcome) -> list[str]:
    return [item["message"] for item in outcome.items if item["type"] == "error"]


def test_settings_that_changed_wait_until_they_are_trusted_again(
    place: Workplace, settings: Path
) -> None:
    body, outcome = run(place)
    (warning,) = warnings(outcome)
    assert "this project is not trusted" in warning
    assert "from the project" not in body

    for args in (["--trust"], []):
        body, outcome = run(place, *args)
        assert "from the project" in body
        assert warnings(outcome) == []

    settings.write_text("developer_instructions = 'from elsewhere'\n", encoding="utf-8")
    for _ in range(2):
        body, outcome = run(place)
        assert "from elsewhere" not in body
        assert warnings(outcome) == [
            f"This project's own settings, rules and hooks are not used: {settings} changed since the"
            " project was trusted; look at the change, and trust it with `codex-py exec --trust`."
        ]

    for args in (["--trust"], []):
        body, outcome = run(place, *args)
        assert "from elsewhere" in body
        assert warnings(outcome) == []


def test_a_project_that_was_trusted_with_codex_is_trusted_as_it_is(
    place: Workplace, settings: Path
) -> None:
    (place.home / "config.toml").write_text(
        f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n', encoding="utf-8"
    )
    assert "from the project" in run(place)[0]
    rules = settings.parent / "rules/new.rules"
    rules.parent.mkdir()
    rules.write_text("", encoding="utf-8")
    body, outcome = run(place)
    assert "from the project" not in body
    assert str(rules) in warnings(outcome)[0]
