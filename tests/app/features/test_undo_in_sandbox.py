"""Undo of what confined commands did, in a folder where the sandbox makes and removes placeholders around them."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.copies import run_times
from codex_py.patch.undo.plan import plan_undo
from tests.sandbox.local_backends import BACKENDS
from tests.support.hooks import DONE, command, run
from tests.support.patching import tree
from tests.support.program import Workplace

pytestmark = pytest.mark.skipif(not BACKENDS, reason="needs a way to hold commands")

IDLE = "sh -c :"
"""Nobody can know that this changes nothing."""


@pytest.fixture(autouse=True)
def files(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    os.umask(0o022)
    (place.cwd / "folder").mkdir()
    for name in ("one", "two", "folder/inner"):
        (place.cwd / name).write_text(f"{name}\n", encoding="utf-8")
    # However slow this machine is.
    monkeypatch.setattr(run_times, "_LONG_NS", 1 << 60)


def once_released(
    place: Workplace, reply: Sequence[Any]
) -> Callable[[object], Sequence[Any]]:
    """A reply that the model gives when the placeholders of the last command are gone."""

    def answer(_: object) -> Sequence[Any]:
        deadline = time.monotonic() + 10
        while (place.cwd / ".codex").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        return reply

    return answer


def undo(place: Workplace) -> Sequence[str]:
    """Undo the newest entry; what would have been asked before."""
    plan = plan_undo(Journal(place.home, place.cwd))
    plan.commit()
    return plan.doubts


@pytest.mark.parametrize(
    "lines",
    [
        ["rm one"],
        ["rm -r folder"],
        ["mv one other"],
        ["mv one folder/one"],
        ["mv folder moved"],
        ["rm one", "rm two"],
        ["rm one", IDLE],
        ["rm one", IDLE, "rm -r folder", IDLE],
        ["rm one two; mkdir made; echo text > made/new"],
        ["rm one; touch /usr/refused"],
        ["rm one; mkdir .codex/refused; echo > .agents"],
        ["rm one; sleep 30 > /dev/null 2>&1 &"],
        ["rm one; setsid sleep 0.4 > /dev/null 2>&1 &"],
    ],
)
@pytest.mark.parametrize("thinks_long", [False, True])
def test_files_that_a_confined_command_removed_come_back_without_a_question(
    place: Workplace, lines: Sequence[str], thinks_long: bool
) -> None:
    before = tree(place.cwd)
    first, *later = [command(line, f"c{number}") for number, line in enumerate(lines)]
    later.append(DONE)
    # Those of a command that goes on are there to the end of the turn.
    if thinks_long and "sleep 30" not in lines[-1]:
        later = [once_released(place, reply) for reply in later]
    run(place, {}, [first, *later], flags={"sandbox_mode": "workspace-write"})
    assert tree(place.cwd) != before
    assert undo(place) == []
    assert tree(place.cwd) == before
