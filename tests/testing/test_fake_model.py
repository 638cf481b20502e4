"""Tests `testing/fake_model.py`."""

from pathlib import Path

import pytest

from codex_py import Agent, CodexError
from codex_py.testing import FakeModel, Reply, call


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def failure(model: FakeModel) -> str:
    with pytest.raises(CodexError) as caught:
        Agent(model).run_sync("Say hello")
    return str(caught.value)


@pytest.mark.parametrize(
    ("model", "answers"),
    [
        (FakeModel(), "0 answers"),
        (FakeModel(call("update_plan", plan=[])), "1 answer"),
    ],
    ids=["empty", "too short"],
)
def test_the_end_of_the_script_is_named_as_such(model: FakeModel, answers: str) -> None:
    assert failure(model) == (
        "unexpected status 400 Bad Request: the script of this FakeModel is at its end, after"
        f" {answers}; nothing was sent to a provider, url: FakeModel"
    )


@pytest.mark.parametrize(
    "reply",
    [
        *(Reply(status=status) for status in (204, 302, 400, 401, 404, 413)),
        Reply(body=b"{}"),
        Reply(body=b"<title>Welcome</title>"),
    ],
    ids=repr,
)
def test_no_failure_names_the_address_of_a_provider(reply: Reply) -> None:
    text = failure(FakeModel(reply))
    assert "FakeModel" in text
    assert "://" not in text
