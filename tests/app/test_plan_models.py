"""The models of a plan, in the app server and in the terminal.

Tests `app/plan_models.py` and `model/models_of_plan.py`.
"""

from collections.abc import Generator
from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.app_server import AppServer
from tests.support.chatgpt import ChatGPT
from tests.support.program import Workplace, environment
from tests.support.pty_program import PtyProgram

DONE = [*ev_message("Hello."), ev_completed()]
LISTED = [
    {
        "slug": "gpt-of-the-plan",
        "display_name": "GPT of the plan",
        "default_reasoning_level": "low",
        "supported_reasoning_levels": [{"effort": "low", "description": "quick"}],
        "visibility": "list",
    },
    {"slug": "gpt-hidden", "visibility": "hide"},
    {"slug": 5},
    {"slug": "gpt-odd", "supported_reasoning_levels": [{"effort": 5}]},
    "no model",
]


@pytest.fixture
def chatgpt(place: Workplace) -> Generator[ChatGPT]:
    with ChatGPT([DONE]) as server:
        server.configure(place.home)
        server.sign_in(place.home)
        server.plan_models = LISTED
        yield server


def listed(place: Workplace, chatgpt: ChatGPT, **env: str) -> dict[str, Any]:
    env = {**chatgpt.environment, **env}
    with AppServer(place.home, place.cwd, env=env) as server:
        models = server.ask("model/list")["data"]
    return {model["id"]: model for model in models}


def test_the_models_of_the_plan_are_listed(place: Workplace, chatgpt: ChatGPT) -> None:
    models = listed(place, chatgpt)
    # The configured model is the first, also if the plan does not list it.
    assert list(models) == ["gpt-5.5", "gpt-of-the-plan"]
    model = models["gpt-of-the-plan"]
    assert model["displayName"] == "GPT of the plan"
    assert model["defaultReasoningEffort"] == "low"
    efforts = model["supportedReasoningEfforts"]
    assert [each["reasoningEffort"] for each in efforts] == ["low"]


def test_an_old_login_is_renewed_for_the_list(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    chatgpt.sign_in(place.home, expires_in_s=-1)
    assert "gpt-of-the-plan" in listed(place, chatgpt)
    assert chatgpt.renewals == 1


def test_without_an_answer_the_known_models_are_listed(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    chatgpt.bot_check = True
    known = listed(place, chatgpt)
    assert "gpt-of-the-plan" not in known
    assert len(known) > 3
    chatgpt.bot_check = False
    for damaged in ([], [5], "none"):
        chatgpt.plan_models = damaged  # pyright: ignore[reportAttributeAccessIssue]
        assert listed(place, chatgpt) == known


def test_a_key_asks_for_no_list(place: Workplace, chatgpt: ChatGPT) -> None:
    assert "gpt-of-the-plan" not in listed(place, chatgpt, CODEX_API_KEY="sk-test")
    assert chatgpt.listings == 0


def test_exec_asks_for_no_list(place: Workplace, chatgpt: ChatGPT) -> None:
    assert place.rerun(env=chatgpt.environment).code == 0
    assert chatgpt.listings == 0


def test_the_terminal_offers_the_models_and_tells_cost_and_limits(
    place: Workplace, chatgpt: ChatGPT
) -> None:
    with (place.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write('[tui]\nstatus_line = ["five-hour-limit", "turn-usage"]\n')
        config.write(f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n')
    variables = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **chatgpt.environment}
    with PtyProgram(
        ["Hello?"], place.cwd, environment(place.home, variables), codex_py=True
    ) as program:
        program.wait_for("Hello.")
        program.wait_for("5h 88% left")
        program.wait_for("tokens, plan")
        program.type("/status\r")
        program.wait_for("5h limit")
        program.wait_for("weekly limit")
        program.type("/cost\r")
        program.wait_for("total")
        assert "$0." not in program.text
        program.type("/model\r")
        program.wait_for("gpt-of-the-plan")
        program.press("esc")
