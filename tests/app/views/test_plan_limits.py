"""Tests `app/views/plan_limits.py` and `model/chatgpt/limits.py`."""

import pytest

from codex_py.app.views.plan_limits import limit_items, limit_rows
from codex_py.model.chatgpt.limits import plan_use
from codex_py.protocol.stream import PlanLimit, PlanUse

HEADERS = {
    "x-codex-primary-used-percent": "12.5",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": "1999999999",
    "x-codex-secondary-used-percent": "100.2",
    "x-codex-secondary-window-minutes": "10080",
}


def test_limits_are_read_from_headers_and_shown_with_their_ends() -> None:
    use = plan_use("plus", HEADERS)
    primary = PlanLimit(12.5, 300, 1_999_999_999)
    assert use == PlanUse("plus", primary, PlanLimit(100.2, 10_080))
    rows = dict(limit_rows(use))
    assert list(rows) == ["plan", "5h limit", "weekly limit"]
    assert rows["plan"] == "plus"
    assert rows["5h limit"].startswith("88% left, until 2033-05-")
    assert rows["weekly limit"] == "0% left"
    assert limit_items(use) == {
        "five-hour-limit": "5h 88% left",
        "weekly-limit": "weekly 0% left",
    }


@pytest.mark.parametrize("text", ["", "many", "nan", "inf", "-1"])
def test_a_limit_that_is_no_number_is_not_known(text: str) -> None:
    assert plan_use(None, {"x-codex-primary-used-percent": text}) == PlanUse()


@pytest.mark.parametrize("text", ["", "0", "soon", "1e300"])
def test_an_end_that_is_no_time_is_left_out(text: str) -> None:
    headers = {**HEADERS, "x-codex-primary-reset-at": text}
    _, primary, _ = limit_rows(plan_use(None, headers))
    assert primary == ("5h limit", "88% left")


@pytest.mark.parametrize(
    ("minutes", "name"),
    [(None, "first"), (1440, "daily"), (43_200, "30d"), (720, "12h"), (45, "45min")],
)
def test_a_limit_has_the_name_of_its_window(minutes: int | None, name: str) -> None:
    use = PlanUse("pro", PlanLimit(0.0, minutes))
    assert limit_rows(use)[1:] == [(f"{name} limit", "100% left")]


def test_without_a_plan_the_items_of_the_status_line_are_empty() -> None:
    assert limit_items(None) == {"five-hour-limit": "", "weekly-limit": ""}
    assert limit_rows(PlanUse()) == [("plan", "ChatGPT")]
