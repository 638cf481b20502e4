"""`codex-py sessions export` after a real session.

Tests `extensions/export/export_command.py`.
"""

import json
import re
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer


def exported(place: Workplace, *words: str) -> tuple[int, str, str]:
    done = run_codex_py(["sessions", "export", *words], place.home, place.cwd)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def thread_id(place: Workplace) -> str:
    """Of a session with a command whose output is long, and an answer."""
    command = {"cmd": "echo '</pre>'; seq 6000 | tr '\\n' ' '"}
    replies = [
        [*ev_function_call("c1", "exec_command", command), ev_completed()],
        [*ev_message("It **says** a lot."), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        return place.run(server, "Count").events[0]["thread_id"]


def test_a_session_is_exported_in_each_form(place: Workplace, thread_id: str) -> None:
    code, text, told = exported(place, thread_id)
    assert (code, told) == (0, "")
    assert text.startswith(f"# Count\n\n- Session: {thread_id}\n")
    assert "\n```console\n$ echo '</pre>'; seq 6000" in text
    assert text.endswith("\n## Agent\n\nIt **says** a lot.\n")
    assert exported(place, "--last") == (code, text, told)

    page = place.cwd / "talk.html"
    page.write_text("old", encoding="utf-8")
    page.chmod(0o644)
    assert exported(place, "--last", "-o", "talk.html") == (0, "", "")
    written = page.read_text(encoding="utf-8")
    assert "&lt;/pre&gt;\n1 2 3" in written
    assert "5999 6000" in written
    assert "It <strong>says</strong> a lot." in written
    assert stat.S_IMODE(page.stat().st_mode) == 0o600

    data = json.loads(exported(place, thread_id, "--format", "json")[1])
    kinds = [item["type"] for item in data["items"]]
    assert kinds == ["user_message", "command_execution", "agent_message", "turn_time"]
    assert data["usage"]["input_tokens"] == 200


@pytest.mark.parametrize(
    "words", [["-o", "talk.html"], ["--portable", "-o", "talk.html"]]
)
def test_an_export_that_cannot_be_written_leaves_the_file_as_it_was(
    place: Workplace, thread_id: str, words: list[str]
) -> None:
    page = place.cwd / "talk.html"
    page.write_text("old", encoding="utf-8")
    before = sorted(place.cwd.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "codex_py", "sessions", "export", thread_id, *words],
        cwd=place.cwd,
        # Else Python might write half of a module.
        env=environment(place.home, {"PYTHONDONTWRITEBYTECODE": "1"}),
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        check=False,
    )
    told = b"Error: cannot write 'talk.html': File too large\n"
    assert (done.returncode, done.stderr[-len(told) :]) == (1, told)
    assert (page.read_text(encoding="utf-8"), sorted(place.cwd.iterdir())) == (
        "old",
        before,
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "say which session: its id, its name, or --last"),
        (["x", "--last"], 2, "say which session: its id, its name, or --last"),
        (["nobody"], 1, "No active or archived session found matching 'nobody'."),
        (
            ["--last", "-o", "a.pdf"],
            2,
            "name a file that ends with .md, .json, .html, not a.pdf",
        ),
        (
            ["--last", "--format", "pdf"],
            2,
            "'pdf' is not a possible value: md, json, html",
        ),
        (
            ["--last", "-o", "missing/a.md"],
            1,
            "cannot write 'missing/a.md': No such file",
        ),
    ],
)
def test_mistakes_are_one_sentence(
    place: Workplace, thread_id: str, words: list[str], code: int, message: str
) -> None:
    assert thread_id
    found, text, told = exported(place, *words)
    assert (found, text) == (code, "")
    assert message in told
    assert told.count("\n") == 1


def test_a_damaged_session_is_told_in_a_sentence(
    place: Workplace, thread_id: str
) -> None:
    (path,) = Path(place.home, "sessions").rglob("*.jsonl")
    path.write_bytes(b"\x00garbage\n")
    code, _, told = exported(place, thread_id)
    assert code == 1
    assert "is damaged" in told


def test_keys_are_replaced_and_counted_in_each_form_unless_they_are_to_be_kept(
    place: Workplace,
) -> None:
    token, own = f"ghp_{'a1' * 20}", 'Zq&<7>"value'
    call = ev_function_call("c1", "exec_command", {"cmd": f"echo {token}"})
    replies = [[*call, ev_completed()], [*ev_message(f"It is {own}!"), ev_completed()]]
    with ScriptedServer(replies) as server:
        place.run(server, f"Use {token}")
    for form in ("md", "html", "json"):
        outputs: list[str] = []
        for options in ([], ["--keep-keys"]):
            done = run_codex_py(
                ["sessions", "export", "--last", "--format", form, *options],
                place.home,
                place.cwd,
                {"MY_TOKEN": own},
            )
            assert done.returncode == 0
            outputs.append(done.stdout.decode())
            told = done.stderr.decode()
            count = re.fullmatch(r"(\d+) keys were replaced by \[redacted\]\.\n", told)
            assert bool(count) == (not options)
        masked, kept = outputs
        assert token not in masked
        assert "7" not in masked.partition("It is ")[2][:20]
        assert "It is [redacted]!" in masked
        assert kept.count(token) == masked.count("[redacted]") - 1
