"""The real program against a loopback server: what it prints, writes and returns.

Tests `frontends/exec/exec_run.py` and `command_line/exec_program.py`.
"""

import asyncio
import json
import os
import pty
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.raw_server import RawServer, answers, raw_server


def response(*items: dict[str, Any]) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r"}}
    ]
    for index, item in enumerate(items):
        events.append(
            {"type": "response.output_item.done", "output_index": index, "item": item}
        )
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    events.append(
        {"type": "response.completed", "response": {"id": "r", "usage": usage}}
    )
    body = "".join(
        f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events
    ).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def says(text: str) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }


def runs(command: str) -> dict[str, Any]:
    arguments = json.dumps({"cmd": command})
    return {
        "type": "function_call",
        "call_id": "call_1",
        "name": "exec_command",
        "arguments": arguments,
    }


@dataclass
class Cli:
    """Starts the program in an empty folder, with the server as its provider."""

    cwd: Path
    environment: dict[str, str]
    server: RawServer

    async def start(
        self, *argv: str, stdin: int = DEVNULL, stdout: int = PIPE, stderr: int = PIPE
    ) -> Process:
        return await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "codex_py",
                "exec",
                "--skip-git-repo-check",
                "--ephemeral",
            ),
            *("-s", "danger-full-access", *argv),
            cwd=self.cwd,
            env=self.environment,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )

    async def run(
        self, *argv: str, stdin: bytes | None = None, stdout: int = PIPE
    ) -> tuple[int | None, str, str]:
        """The exit code, and what it printed on both streams."""
        program = await self.start(
            *argv, stdin=DEVNULL if stdin is None else PIPE, stdout=stdout
        )
        out, err = await program.communicate(stdin)
        return program.returncode, (out or b"").decode(), err.decode()

    def prompts(self) -> list[str]:
        """The last user text of each request."""
        bodies = [json.loads(r.partition(b"\r\n\r\n")[2]) for r in self.server.requests]
        return [body["input"][-1]["content"][-1]["text"] for body in bodies]


@asynccontextmanager
async def cli(tmp_path: Path, *responses: bytes) -> AsyncGenerator[Cli]:
    home, cwd = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    cwd.mkdir()
    async with raw_server(answers(*responses)) as server:
        (home / "config.toml").write_text(
            'model = "gpt-5.5"\nmodel_provider = "mock"\n'
            f'[model_providers.mock]\nname = "mock"\nbase_url = "{server.url}"\n'
            "request_max_retries = 0\nstream_max_retries = 0\n",
            encoding="utf-8",
        )
        environment = {
            "CODEX_HOME": str(home),
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
        }
        yield Cli(cwd, environment, server)


def events(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def is_alive(pid_file: Path) -> bool:
    """False too where the process had not come to write down its id."""
    text = pid_file.read_text(encoding="ascii") if pid_file.exists() else ""
    try:
        return bool(text) and os.kill(int(text), 0) is None
    except ProcessLookupError:
        return False


def test_json_prints_events_and_nothing_else(tmp_path: Path) -> None:
    async def test() -> None:
        async with cli(tmp_path, response(says("Done."))) as program:
            code, out, _ = await program.run("--json", "hi")
        started, *rest = events(out)
        assert (code, started["type"]) == (0, "thread.started")
        assert rest == [
            {"type": "turn.started"},
            {
                "type": "item.completed",
                "item": {"id": "item_0", "type": "agent_message", "text": "Done."},
            },
            {
                "type": "turn.completed",
                "usage": {
                    "input_tokens": 10,
                    "cached_input_tokens": 0,
                    "cache_write_input_tokens": 0,
                    "output_tokens": 2,
                    "reasoning_output_tokens": 0,
                },
            },
        ]

    run(test)


def named_events(*events: tuple[str, dict[str, Any]]) -> bytes:
    """A response whose data name no events, as guides show them, with an id for each, as some gateways have."""
    texts = [
        f"id: {n}\nevent: {name}\ndata: {json.dumps(d)}"
        for n, (name, d) in enumerate(events)
    ]
    body = "".join(f"{text}\n\n" for text in texts).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body


def test_a_server_may_name_events_beside_their_data_alone(tmp_path: Path) -> None:
    end = ("response.completed", {"id": "r"})
    call = {**runs("echo called > called"), "arguments": ""}
    delta = {"delta": runs("echo called > called")["arguments"]}
    first = named_events(
        ("response.output_item.added", call),
        ("response.function_call_arguments.delta", delta),
        ("response.output_item.done", call),
        end,
    )
    second = named_events(("response.output_item.done", says("Done.")), end)

    async def test() -> None:
        async with cli(tmp_path, first, second) as program:
            code, out, err = await program.run("do it")
            assert (code, out) == (0, "Done.\n"), err
            assert (program.cwd / "called").read_text(encoding="ascii") == "called\n"

    run(test)


def test_without_json_standard_output_is_the_answer(tmp_path: Path) -> None:
    async def test() -> None:
        async with cli(tmp_path, response(says("Dóne."))) as program:
            code, out, err = await program.run(stdin=b"do it")
            assert (code, out, program.prompts()) == (0, "Dóne.\n", ["do it"])
        assert err.startswith("Reading prompt from stdin...\ncodex-py v")
        assert err.endswith("--------\nuser\ndo it\ncodex\nDóne.\ntokens used\n12\n")

    run(test)


def test_on_a_terminal_the_answer_is_shown_once_and_harmless(tmp_path: Path) -> None:
    async def test() -> None:
        ours, theirs = pty.openpty()
        async with cli(tmp_path, response(says("Done\x1b[2J."))) as program:
            process = await program.start(
                "--color", "never", "hi", stdout=theirs, stderr=theirs
            )
            assert await process.wait() == 0
        shown = os.read(ours, 65536).decode()
        os.close(ours)
        os.close(theirs)
        assert shown.endswith("codex\r\nDone␛[2J.\r\ntokens used\r\n12\r\n")
        assert shown.count("Done") == 1

    run(test)


def test_an_open_pipe_that_says_nothing_does_not_hold_up_the_start(
    tmp_path: Path,
) -> None:
    async def test() -> None:
        async with cli(tmp_path, response(says("Done."))) as program:
            process = await program.start("hi", stdin=PIPE)
            assert process.stdout is not None
            # Its end of the pipe stays open all the time.
            assert await process.stdout.read() == b"Done.\n"
            assert await process.wait() == 0
            assert program.prompts() == ["hi"]

    run(test)


def test_a_failed_turn_leaves_the_message_file_alone(tmp_path: Path) -> None:
    async def test() -> None:
        body = b'{"error":{"message":"no such thing"}}'
        refusal = b"HTTP/1.1 400 Bad Request\r\ncontent-length: %d\r\n\r\n%s" % (
            len(body),
            body,
        )
        async with cli(tmp_path, refusal) as program:
            (program.cwd / "last").write_text("earlier", encoding="utf-8")
            code, out, _ = await program.run("--json", "-o", "last", "hi")
            last = (program.cwd / "last").read_text(encoding="utf-8")
        assert (code, last) == (1, "earlier")
        assert [event["type"] for event in events(out)] == [
            "thread.started",
            "turn.started",
            "error",
            "turn.failed",
        ]

    run(test)


def test_a_turn_without_a_message_empties_the_message_file(tmp_path: Path) -> None:
    async def test() -> None:
        async with cli(tmp_path, response()) as program:
            (program.cwd / "last").write_text("earlier", encoding="utf-8")
            code, out, err = await program.run("-o", "last", "hi")
            last = (program.cwd / "last").read_text(encoding="utf-8")
        assert (code, out, last) == (0, "", "")
        assert err.endswith(
            "Warning: no last agent message; wrote empty content to last\n"
        )

    run(test)


@pytest.mark.parametrize(
    ("second", "code", "types"),
    [
        (
            '{"a":1}',
            0,
            ["item.completed", "item.completed", "turn.completed"],
        ),
        (
            "still not",
            4,
            ["item.completed", "item.completed", "error", "turn.failed"],
        ),
    ],
)
def test_an_answer_that_breaks_the_schema_is_sent_back_once(
    tmp_path: Path, second: str, code: int, types: list[str]
) -> None:
    async def test() -> None:
        replies = response(says("not JSON")), response(says(second))
        async with cli(tmp_path, *replies) as program:
            schema = '{"type": "object", "required": ["a"]}'
            (program.cwd / "schema.json").write_text(schema, encoding="utf-8")
            argv = ("--json", "--output-schema", "schema.json", "-o", "last", "hi")
            returned, out, err = await program.run(*argv)
            first, again = program.prompts()
            last = (program.cwd / "last").read_text(encoding="utf-8")
        got = events(out)
        assert (returned, first, last) == (code, "hi", second)
        assert again.startswith("Your last message cannot be used: ")
        assert [event["type"] for event in got[3:]] == types
        if code:
            assert (got[-1]["error"]["code"], err) == ("schema", "")

    run(test)


def test_people_are_told_why_an_answer_is_asked_for_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with cli(tmp_path, response(says("[]")), response(says("{}"))) as program:
            (program.cwd / "schema.json").write_text(
                '{"type": "object"}', encoding="utf-8"
            )
            code, out, err = await program.run("--output-schema", "schema.json", "hi")
        assert (code, out) == (0, "{}\n")
        assert (
            "warning: the final answer does not satisfy the output schema: at $: [] is not of type"
            " 'object'; asking once more\ncodex\n{}\n"
        ) in err

    run(test)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_a_signal_ends_the_turn_and_what_it_runs(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async def test() -> None:
        async with cli(
            tmp_path, response(runs("echo $$ > pid; exec sleep 600"))
        ) as program:
            process = await program.start("--json", "hi")
            assert process.stdout is not None
            seen: list[dict[str, Any]] = []
            while not seen or seen[-1]["type"] != "item.started":
                seen.append(json.loads(await process.stdout.readline()))
            process.send_signal(number)
            rest = await process.stdout.read()
            assert await process.wait() == code
        last = events(rest.decode())
        assert [event["type"] for event in last] == [
            "item.completed",
            "error",
            "turn.failed",
        ]
        assert last[-1]["error"]["code"] == "aborted"
        assert not is_alive(program.cwd / "pid")

    run(test)


def test_a_reader_that_leaves_ends_the_run(tmp_path: Path) -> None:
    async def test() -> None:
        ours, theirs = os.pipe()
        os.close(ours)
        async with cli(tmp_path, response(says("Done."))) as program:
            code, _, err = await program.run("--json", "hi", stdout=theirs)
        os.close(theirs)
        assert (code, err) == (141, "")

    run(test)


def test_an_empty_prompt_sends_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with cli(tmp_path) as program:
            code, out, err = await program.run("--json", stdin=b"\n")
            assert program.server.requests == []
        assert (code, out) == (2, "")
        assert (
            err
            == "Reading prompt from stdin...\nError: No prompt provided via stdin.\n"
        )

    run(test)
