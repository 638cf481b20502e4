"""Tests `config/limits.py`."""

import pytest

from codex_py.config.limits import Budget, RolloutBudget
from codex_py.errors import ConfigError
from tests.config.conftest import Place

NONE = Budget(
    max_turns=None,
    max_tokens=None,
    max_cost=None,
    max_time=None,
    rollout=None,
    loop_guard=True,
)


def test_nothing_is_limited_unless_it_is_configured(place: Place) -> None:
    assert place.load().budget == NONE
    assert not place.load().budget.is_limited


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        ("max_turns = 5", "max_turns", 5),
        ("max_tokens = 200_000", "max_tokens", 200_000),
        ('max_tokens = "200k"', "max_tokens", 200_000),
        ('max_tokens = "1.5M"', "max_tokens", 1_500_000),
        ('max_tokens = "200_000"', "max_tokens", 200_000),
        ("max_cost = 0.5", "max_cost", 0.5),
        ("max_cost = 2", "max_cost", 2),
        ('max_time = "90s"', "max_time", 90),
        ('max_time = "30m"', "max_time", 1800),
        ('max_time = "1.5h"', "max_time", 5400),
        ("max_time = 0.25", "max_time", 0.25),
        ("loop_guard = false", "loop_guard", False),
    ],
)
def test_a_limit_is_read_with_its_unit(
    place: Place, setting: str, name: str, value: object
) -> None:
    place.user(f"[budget]\n{setting}\n")
    budget = place.load().budget
    assert getattr(budget, name) == value
    assert budget.is_limited is (name != "loop_guard")


@pytest.mark.parametrize(
    "setting",
    [
        *(
            "max_turns = 0",
            "max_turns = 1.5",
            "max_tokens = -1",
            "max_cost = 0",
            "max_cost = nan",
        ),
        *(
            'max_tokens = "1.5"',
            'max_tokens = "5s"',
            'max_tokens = "k"',
            'max_tokens = ""',
        ),
        *(
            'max_time = "0s"',
            'max_time = "5d"',
            'max_time = "-5s"',
            'max_time = "1h30m"',
        ),
        *("max_time = true", 'loop_guard = "no"', 'max_turns = "5"'),
    ],
)
def test_a_limit_that_cannot_be_read_stops_the_start(
    place: Place, setting: str
) -> None:
    path = place.user(f"[budget]\n{setting}\n")
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert f"{path}:2: `budget.{setting.partition(' ')[0]}`" in str(caught.value)


def test_a_project_can_only_tighten_the_limits(place: Place) -> None:
    place.trusted('[budget]\nmax_tokens = 1000\nmax_cost = 2\nmax_time = "1m"')
    place.project(
        '[budget]\nmax_tokens = 500\nmax_cost = 5\nmax_turns = 3\nmax_time = "2h"\nloop_guard = false\n'
    )
    place.trust()
    budget = place.load().budget
    assert (budget.max_tokens, budget.max_cost, budget.max_turns) == (500, 2, 3)
    assert budget.max_time == 60
    # The project alone says this, and it would loosen what holds by default.
    assert budget.loop_guard is True
    (warning,) = place.load().warnings
    assert warning.startswith("Ignored `budget.loop_guard` in ")
    # An option of the user is stronger than both.
    overrides = ["budget.max_tokens=9000", "budget.loop_guard=false"]
    budget = place.load(overrides=overrides).budget
    assert (budget.max_tokens, budget.loop_guard) == (9000, False)


def test_the_budget_of_codex_is_read(place: Place) -> None:
    place.user("features.rollout_budget = { enabled = true, limit_tokens = 5000 }\n")
    assert place.load().budget.rollout == RolloutBudget(5000, (1000,), 1, 1)
    place.user(
        "[features.rollout_budget]\nenabled = true\nlimit_tokens = 5000\n"
        "reminder_at_remaining_tokens = [4000, 100]\nprefill_token_weight = 0.5\n"
        "sampling_token_weight = 2\n"
    )
    assert place.load(strict=True).budget.rollout == RolloutBudget(
        5000, (4000, 100), 0.5, 2
    )
    assert (
        place.load(overrides=["features.rollout_budget=false"]).budget.rollout is None
    )
    assert (
        place.load(overrides=["features.rollout_budget.enabled=false"]).budget == NONE
    )


def test_a_project_cannot_switch_the_budget_of_codex_off(place: Place) -> None:
    place.trusted("features.rollout_budget = { enabled = true, limit_tokens = 5000 }")
    place.project(
        "features.rollout_budget = { enabled = false, limit_tokens = 9000 }\n"
    )
    place.trust()
    rollout = place.load().budget.rollout
    assert rollout is not None
    assert rollout.limit_tokens == 5000


@pytest.mark.parametrize("value", ["true", "{ enabled = true }"])
def test_the_budget_of_codex_needs_a_limit(place: Place, value: str) -> None:
    path = place.user(f"features.rollout_budget = {value}\n")
    with pytest.raises(ConfigError, match="limit_tokens is required") as caught:
        place.load()
    assert str(caught.value).startswith(f"{path}:1: ")
