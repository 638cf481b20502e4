"""How hooks are run, and what becomes of those that misbehave.

Tests `app/features/hooks/feature.py` and `app/features/hooks/runs.py`.
"""

import asyncio
import os
from pathlib import Path

import pytest

from codex_py.app.features.hooks.feature import HooksFeature
from codex_py.app.options import SessionOptions
from codex_py.config.config import load_config
from codex_py.config.hooks import find_hooks, trust
from codex_py.core.session import Session
from tests.support.hooks import DONE, Hooked, command, note, run, specific
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace, environment


def test_a_hook_runs_in_the_users_shell_and_variableswithout_the_keys(
    place: Workplace,
) -> None:
    hook = "{ pwd; echo $0 $OWN $CODEX_HOME; env; } > seen"
    run(
        place,
        {"PreToolUse": [hook]},
        [command("true"), DONE],
        env={"OWN": "yes", "OPENAI_API_KEY": "sk"},
    )
    seen = (place.cwd / "seen").read_text(encoding="utf-8")
    assert seen.startswith(f"{place.cwd}\n/bin/bash yes {place.home}\n")
    assert "MOCK_KEY" not in seen
    assert "OPENAI_API_KEY" not in seen


def test_hooks_of_an_event_run_side_by_side(place: Workplace) -> None:
    # Each waits for the other.
    hooks = {
        "PreToolUse": [
            "touch a; until [ -e b ]; do :; done",
            "touch b; until [ -e a ]; do :; done",
        ]
    }
    hooked = run(place, hooks, [command("true"), DONE])
    assert hooked.warnings == []


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        ("exit 1", "exited with code 1"),
        ("kill -9 $$", "was killed by signal 9"),
        ("no-such-program", "exited with code 127"),
        ("echo '{'", "printed something that is not a JSON object"),
        (
            "echo '['; head -c 5000000 /dev/zero",
            "printed something that is not a JSON object",
        ),
        ("exit 2", "refused without a reason"),
    ],
)
def test_a_hook_that_fails_costs_a_warning_and_the_call_runs(
    place: Workplace, hook: str, why: str
) -> None:
    hooked = run(
        place, {"PreToolUse": [hook]}, [command("touch made"), command("true"), DONE]
    )
    assert (place.cwd / "made").exists()
    (warning,) = hooked.warnings
    assert warning.startswith(f"The PreToolUse hook {hook!r} {why}")
    assert ("no-such-program: " in warning) == (hook == "no-such-program")
    assert hooked.results[0].last_message == "done"


def test_a_hook_need_not_read_what_it_is_given(place: Workplace) -> None:
    long = f": {'x' * 300_000}"
    hooked = run(place, {"PreToolUse": ["exec <&-; true"]}, [command(long), DONE])
    assert hooked.warnings == []


def test_a_hook_that_hangs_is_killed_with_all_that_it_started(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as lifeline:
        hook = {
            "type": "command",
            "command": f"{lifeline.hold} sleep 300 & wait",
            "timeout": 1,
        }
        hooked = run(place, {"PreToolUse": [hook]}, [command("touch made"), DONE])
        lifeline.wait_until_dead()
    assert (place.cwd / "made").exists()
    assert hooked.warnings == [
        f"The PreToolUse hook {hook['command']!r} did not end within 1 s, and was stopped."
    ]


def test_a_hook_does_not_outlive_a_cancelled_turn(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as lifeline:

        async def work(session: Session, _: Hooked) -> None:
            turn = asyncio.create_task(session.run_turn("go"))
            await asyncio.to_thread(lifeline.wait_until_up)
            turn.cancel()
            await asyncio.wait([turn])

        hooks = {"PreToolUse": [f"{lifeline.hold} sleep 300"]}
        run(place, hooks, [command("true")], work=work)
        lifeline.wait_until_dead()


def test_a_background_hook_holds_nothing_up_and_adds_its_context_later(
    place: Workplace,
) -> None:
    os.mkfifo(place.cwd / "go")
    later = specific("PreToolUse", additionalContext="later")
    hook = {"type": "command", "command": f"cat go; {later}", "async": True}
    sessions: list[Session] = []

    async def work(session: Session, _: Hooked) -> None:
        sessions.append(session)
        await session.run_turn("go")

    # The call runs while the hook waits for it.
    hooked = run(place, {"PreToolUse": [hook]}, [command("echo > go"), DONE], work=work)
    assert b'"later"' in b"".join(sessions[0].items)
    assert hooked.progress == []


def test_a_background_hook_at_the_end_gets_its_input(place: Workplace) -> None:
    hook = {"type": "command", "command": "sleep 0.3; " + note("stop"), "async": True}
    hooked = run(place, {"Stop": [hook]}, [DONE])
    (given,) = hooked.given("stop")
    assert given["last_assistant_message"] == "done"


def test_a_background_hook_that_does_not_end_is_killed(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as lifeline:
        hook = {
            "type": "command",
            "command": f"{lifeline.hold} sleep 300",
            "async": True,
        }
        run(place, {"Stop": [hook]}, [DONE])
        lifeline.wait_until_dead()


def test_hooks_that_nobody_has_reviewed_do_not_run_and_are_told(
    place: Workplace,
) -> None:
    hooks = {"PreToolUse": ["touch ran"], "Stop": ["touch ran"]}
    hooked = run(place, hooks, [command("true"), DONE], options=SessionOptions())
    assert not (place.cwd / "ran").exists()
    assert hooked.warnings == []
    texts = [
        getattr(getattr(event, "item", None), "message", "") for event in hooked.events
    ]
    assert [text for text in texts if text] == [
        f"Hooks that are new or changed (2, in {place.home}/hooks.json) do not run. Review them in the terminal with"
        " /hooks, or run them all with --dangerously-bypass-hook-trust."
    ]


def test_hooks_run_from_when_they_are_trusted(place: Workplace) -> None:
    async def work(session: Session, _: Hooked) -> None:
        feature = session.feature(HooksFeature)
        assert feature is not None
        assert len(feature.hooks.to_review) == 1
        trust(place.home, feature.hooks.found)
        variables = environment(place.home)
        feature.hooks = find_hooks(
            load_config(cwd=place.cwd, environment=variables), variables
        )
        await session.run_turn("go")

    run(place, {"Stop": ["touch ran"]}, [DONE], work=work, options=SessionOptions())
    assert (place.cwd / "ran").exists()
