"""Standard input and output, the message file and the output schema, at their worst."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import Pause, ev_completed, ev_function_call, ev_message
from tests.support.git import git
from tests.support.lifeline import Lifeline
from tests.support.program import Workplace, environment, jsonl, run_codex_py
from tests.support.server import ScriptedServer

Event = dict[str, Any]
DONE = [*ev_message("done"), ev_completed()]
HUMAN = ("exec", "--skip-git-repo-check", "-s", "danger-full-access")


def prompt_of(server: ScriptedServer) -> str:
    return server.requests[-1].input[-1]["content"][-1]["text"]


def test_a_reader_that_leaves_early_ends_the_run_and_what_it_runs(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as line:
        calls = [
            *ev_function_call(
                "c1", "exec_command", {"cmd": f"{line.hold} sleep 600"}, index=0
            ),
            *ev_function_call("c2", "exec_command", {"cmd": "echo quick"}, index=1),
        ]
        wait = Pause()
        with ScriptedServer(
            [[*calls[:4], wait, *calls[4:], ev_completed()], DONE]
        ) as server:
            place.configure(server)
            program = place.start()
            assert program.stdout is not None
            program.stdout.readline()
            line.wait_until_up()
            program.stdout.close()
            wait.until.set()
            assert program.stderr is not None
            with program.stderr:
                err = program.stderr.read()
            assert program.wait(120) == 141
            line.wait_until_dead()
            assert place.rerun("resume", "--last", "on").messages == ["done"]
    assert b"Traceback" not in err


@pytest.mark.parametrize("stream", ["stdout", "stderr", "both", "all"])
def test_a_descriptor_that_is_not_there_hurts_nobody(
    place: Workplace, stream: str
) -> None:
    closed = {"stdout": (1,), "stderr": (2,), "both": (1, 2), "all": (0, 1, 2)}[stream]

    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    call = ev_function_call("c1", "exec_command", {"cmd": "echo hi; echo ho >&2"})
    with ScriptedServer([[*call, ev_completed()], DONE]) as server:
        place.configure(server)
        program = place.start("-o", "last", "go", limit=close)
        out, err = program.communicate(timeout=120)
        assert server.requests[1].output("c1").endswith("\nhi\nho\n")
    assert program.returncode == 0
    assert (place.cwd / "last").read_text(encoding="utf-8") == "done"
    assert b"Traceback" not in out + err
    if stream == "stderr":
        assert jsonl(out)[-1]["type"] == "turn.completed"


def test_standard_error_that_nobody_reads_does_not_hold_the_run_up(
    place: Workplace,
) -> None:
    call = ev_function_call("c1", "exec_command", {"cmd": "seq 100000"})
    ours, theirs = os.pipe()
    with ScriptedServer([[*call, ev_completed()], DONE]) as server:
        place.configure(server)
        done = subprocess.Popen(
            [sys.executable, "-m", "codex_py", *HUMAN, "go"],
            cwd=place.cwd,
            env=environment(place.home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        out, _ = done.communicate(timeout=120)
    os.close(ours)
    assert (done.returncode, out) == (0, b"done\n")


def test_a_full_disk_for_the_answer_is_an_error(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server, Path("/dev/full").open("wb") as full:
        place.configure(server)
        program = place.start(stdout=full.fileno())
        _, err = program.communicate(timeout=120)
    assert program.returncode == 1
    assert err.endswith(
        b"Error: Failed to write to standard output: No space left on device\n"
    )


@pytest.mark.parametrize("path", ["none/last", ".", ""])
def test_a_message_file_that_cannot_be_written_costs_no_request(
    place: Workplace, path: str
) -> None:
    with ScriptedServer([DONE]) as server:
        outcome = place.run(server, "-o", path, "go")
        assert server.requests == []
    assert (outcome.code, outcome.events) == (2, [])
    assert "Traceback" not in outcome.err
    assert "Failed to write the last message" in outcome.err


def test_a_message_that_does_not_fit_on_the_disk_is_an_error(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        outcome = place.run(server, "-o", "/dev/full", "go")
    assert (outcome.code, outcome.types[-1]) == (1, "turn.completed")
    assert "No space left on device" in outcome.err


@pytest.mark.parametrize("option", ["-o", "--bundle"])
def test_a_file_that_cannot_be_written_costs_no_answer(
    place: Workplace, option: str
) -> None:
    # A bundle belongs to a commit.
    (place.cwd / "file").write_text("1\n", encoding="utf-8")
    git(place.cwd, "init", "-q")
    git(place.cwd, "add", ".")
    git(place.cwd, "commit", "-qm", "first")
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        words = [*HUMAN, option, "/dev/full", "go"]
        done = run_codex_py(words, place.home, place.cwd)
    assert (done.returncode, done.stdout) == (1, b"done\n")
    assert b"No space left on device" in done.stderr


def test_the_message_file_may_be_a_pipe(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        done = run_codex_py([*HUMAN, "-o", "/dev/stderr", "go"], place.home, place.cwd)
    assert (done.returncode, done.stdout) == (0, b"done\n")
    assert b"done" in done.stderr


def test_a_silent_pipe_does_not_delay_a_prompt_argument(place: Workplace) -> None:
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        program = place.start(stdin=subprocess.PIPE)
        assert program.stdout is not None
        out = program.stdout.read()
        assert program.wait(120) == 0
        program.communicate()
        assert prompt_of(server) == "go"
    assert jsonl(out)[-1]["type"] == "turn.completed"


@pytest.mark.parametrize(
    ("args", "stdin", "prompt"),
    [
        (("go",), b"more", "go\n\n<stdin>\nmore\n</stdin>"),
        (("go",), b"more\n", "go\n\n<stdin>\nmore\n</stdin>"),
        (("go",), b" \n\t\n", "go"),
        (("go",), b"", "go"),
        (("-",), b"from stdin\n", "from stdin\n"),
        (("-",), b"\xef\xbb\xbfmarked", "marked"),
        (("-",), "breit 👍".encode("utf-16"), "breit 👍"),
        (("--", "-x"), b"", "-x"),
        (("--", "resume"), b"", "resume"),
        (("go", "--ephemeral"), b"", "go"),
    ],
)
def test_a_prompt_comes_from_where_it_is_given(
    place: Workplace, args: tuple[str, ...], stdin: bytes, prompt: str
) -> None:
    with ScriptedServer([DONE]) as server:
        assert place.run(server, *args, stdin=stdin).code == 0
        assert prompt_of(server) == prompt


@pytest.mark.parametrize(
    ("args", "stdin", "code", "words"),
    [
        (("-",), b"", 2, "No prompt provided via stdin."),
        (("-",), b" \n", 2, "No prompt provided via stdin."),
        (("-",), b"ab\xffc", 2, "invalid byte at offset 2"),
        (("a", "b"), b"", 2, "unexpected argument 'b'"),
        (("--no-such-option", "go"), b"", 2, "unknown option --no-such-option"),
        (("-s", "none", "go"), b"", 2, "'none' is not a possible value"),
        (("-c", "nonsense", "go"), b"", 2, "nonsense"),
        (("-C", "/no/such/folder", "go"), b"", 2, "cannot work in '/no/such/folder'"),
        (
            ("-c", 'model_provider="none"', "go"),
            b"",
            78,
            "Model provider `none` not found",
        ),
        (("resume",), b"", 2, "say which session"),
    ],
)
def test_a_run_that_cannot_begin_prints_no_event_and_sends_nothing(
    place: Workplace, args: tuple[str, ...], stdin: bytes, code: int, words: str
) -> None:
    with ScriptedServer() as server:
        outcome = place.run(server, *args, stdin=stdin)
        assert server.requests == []
    assert (outcome.code, place.rollouts()) == (code, [])
    assert [event for event in outcome.events if event["type"].startswith("turn")] == []
    assert words in outcome.err
    assert "Traceback" not in outcome.err


def test_piped_text_that_is_none_stops_the_run_before_its_turn(
    place: Workplace,
) -> None:
    with ScriptedServer() as server:
        outcome = place.run(server, "go", stdin=b"\xc3")
        assert server.requests == []
    assert (outcome.code, "turn.started" in outcome.types) == (2, False)
    assert "invalid byte at offset 0" in outcome.err


def test_a_prompt_of_10_mb_is_sent_whole(place: Workplace) -> None:
    text = "x" * 10_000_000
    with ScriptedServer([DONE]) as server:
        # The window of an unknown model is a guess, which refuses no prompt.
        assert place.run(server, "-", stdin=text.encode(), model="unknown").code == 0
        assert prompt_of(server) == text


@pytest.mark.parametrize("mode", [(), ("--json",)])
def test_a_warning_is_shown_although_there_is_no_session(
    place: Workplace, mode: tuple[str, ...]
) -> None:
    (place.home / "config.toml").write_text("foo = 1\n", encoding="utf-8")
    command = [
        "exec",
        "--skip-git-repo-check",
        *mode,
        "resume",
        "no-such-session",
        "go",
    ]
    done = run_codex_py(command, place.home, place.cwd)
    *_, warning, error = done.stderr.decode().splitlines()
    assert warning.startswith("warning: ")
    assert "`foo`" in warning
    assert error.startswith("Error: no session found")


SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


def answers(
    place: Workplace, *texts: str, schema: Any = SCHEMA
) -> tuple[Any, ScriptedServer]:
    (place.cwd / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    with ScriptedServer(
        [[*ev_message(text), ev_completed()] for text in texts]
    ) as server:
        return place.run(
            server, "--output-schema", "schema.json", "-o", "last", "go"
        ), server


@pytest.mark.parametrize("text", ['{"a": 1}', ' {"a": 1, "b": 2}\n'])
def test_an_answer_that_satisfies_the_schema_is_taken(
    place: Workplace, text: str
) -> None:
    outcome, server = answers(place, text)
    assert (outcome.code, outcome.messages, len(server.requests)) == (0, [text], 1)
    assert server.requests[0].body["text"]["format"] == {
        "type": "json_schema",
        "strict": True,
        "name": "codex_output_schema",
        "schema": SCHEMA,
    }
    assert (place.cwd / "last").read_text(encoding="utf-8") == text


def test_an_answer_that_breaks_it_is_asked_for_once_more(place: Workplace) -> None:
    outcome, server = answers(place, '{"a": "x"}', '{"a": 1}')
    assert (outcome.code, len(server.requests)) == (0, 2)
    assert prompt_of(server).startswith("Your last message cannot be used: ")
    assert (place.cwd / "last").read_text(encoding="utf-8") == '{"a": 1}'


@pytest.mark.parametrize(
    "text", ["no JSON", "[]", '{"a": 1', "NaN", '```json\n{"a": 1}\n```']
)
def test_two_answers_that_break_it_are_an_exit_code_of_their_own(
    place: Workplace, text: str
) -> None:
    outcome, server = answers(place, text, text)
    assert (outcome.code, len(server.requests)) == (4, 2)
    end = outcome.events[-1]
    assert (end["type"], end["error"]["code"]) == ("turn.failed", "schema")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            None,
            "Failed to read output schema file schema.json: No such file or directory",
        ),
        (b"{", "is not valid JSON"),
        (b'{"type": "strange"}', "is not a valid JSON Schema"),
        (b"\xff", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
    ],
)
def test_a_schema_that_is_none_costs_no_request(
    place: Workplace, data: bytes | None, words: str
) -> None:
    if data is not None:
        (place.cwd / "schema.json").write_bytes(data)
    with ScriptedServer() as server:
        outcome = place.run(server, "--output-schema", "schema.json", "go")
        assert server.requests == []
    assert (outcome.code, outcome.events) == (2, [])
    assert words in outcome.err


def test_a_schema_fetches_nothing(place: Workplace) -> None:
    with ScriptedServer() as elsewhere:
        schema = {"$ref": f"{elsewhere.base_url}/schema.json"}
        outcome, _ = answers(place, "{}", schema=schema)
    assert outcome.code == 78
    assert "cannot be resolved" in outcome.events[-1]["error"]["message"]
    assert elsewhere.requests == []


def test_control_characters_of_the_model_do_not_reach_standard_error_alive(
    place: Workplace,
) -> None:
    evil = "\x1b]0;title\x07\x1b[2J\u202e\x9b31m"
    call = ev_function_call("c1", "exec_command", {"cmd": f"printf '{evil}'"})
    with ScriptedServer(
        [[*call, *ev_message(evil, index=1), ev_completed()], DONE]
    ) as server:
        place.configure(server)
        done = run_codex_py(
            [*HUMAN, "--color", "never", evil.replace("\x07", "")],
            place.home,
            place.cwd,
        )
    assert done.returncode == 0
    shown = done.stderr.decode()
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)


def test_the_working_folder_does_not_shadow_our_imports(place: Workplace) -> None:
    for name in (
        "json",
        "asyncio",
        "httpx",
        "codex_py",
        "pydantic",
        "ssl",
        "tomllib",
        "sitecustomize",
    ):
        (place.cwd / f"{name}.py").write_text("raise SystemExit(99)", encoding="utf-8")
    call = ev_function_call("c1", "exec_command", {"cmd": "echo hi"})
    with ScriptedServer([[*call, ev_completed()], DONE]) as server:
        place.configure(server)
        command = Path(sys.executable).with_name("codex-py")
        done = subprocess.run(
            [str(command), *HUMAN, "go"],
            cwd=place.cwd,
            env=environment(place.home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr
