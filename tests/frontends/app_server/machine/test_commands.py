"""Commands of the client. Answers, errors and notifications are those of Codex 0.171.

Tests `frontends/app_server/machine/commands.py` and
`frontends/app_server/machine/command_params.py`.
"""

import asyncio
import base64
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from codex_py.app.json_rpc import INVALID_REQUEST, OVERLOADED, JsonRpc, RpcError
from codex_py.command_line.arguments import Arguments
from codex_py.config.config import Config, load_config
from codex_py.errors import CodexError
from codex_py.frontends.app_server.machine import commands
from codex_py.frontends.app_server.machine.commands import CommandMethods
from codex_py.frontends.app_server.params import read_params
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.turn_items.items import Fields
from tests.sandbox.local_backends import BACKENDS
from tests.support.app_server import AppServer, Message
from tests.support.codex import answers_of_app_server, needs_codex
from tests.support.lifeline import Lifeline
from tests.support.program import KEY, Workplace, environment

FULL = {"type": "dangerFullAccess"}
needs_sandbox = pytest.mark.skipif(not BACKENDS, reason="needs a way to hold commands")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def shell(script: str, **more: Any) -> dict[str, Any]:
    return {"command": ["sh", "-c", script], "sandboxPolicy": FULL, **more}


class RequiredServer(Server):
    """A server whose administrator has a `requirements.toml`, if `system` has one."""

    system: Path

    def configuration(
        self,
        cwd: str | None = None,
        table: Mapping[str, Any] | None = None,
    ) -> Config:
        top = super().configuration().cwd
        return load_config(
            cwd=top / (cwd or "."),
            environment=self.environment,
            system=self.system,
            flags=table,
        )


class Client:
    """A client of the methods in this process.

    Attributes:
        told: the notifications, in order.
        reads: while it is not set, the client reads nothing.
    """

    def __init__(self, place: Workplace, requirements: str = "") -> None:
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.came = asyncio.Event()
        arguments = Arguments(cd=str(place.cwd))
        variables = environment(place.home, {"OPENAI_API_KEY": KEY, "MOCK_KEY": ""})
        server = RequiredServer(cast("JsonRpc", self), arguments, variables)
        server.system = place.home.parent / "etc"
        server.system.mkdir(exist_ok=True)
        file = server.system / "requirements.toml"
        file.write_text(requirements, encoding="utf-8")
        self.commands = CommandMethods(server, OpenThreads(server))

    def notify(self, method: str, fields: Mapping[str, Any]) -> None:
        """Take a notification in place of the connection."""
        self.told.append((method, fields))
        self.came.set()

    async def drained(self) -> None:
        """Wait, in place of the connection, until the client reads."""
        await self.reads.wait()

    async def ask(self, name: str = "", **asked: Any) -> Fields:
        method = CommandMethods.methods[f"command/exec{name}"]
        async with asyncio.timeout(60):
            return await method.answer(self.commands, read_params(method.params, asked))

    async def refused(self, name: str = "", **asked: Any) -> tuple[int, str]:
        """The code and the text of the error."""
        with pytest.raises(RpcError) as caught:
            await self.ask(name, **asked)
        return caught.value.code, str(caught.value)


def output(server: AppServer, stream: str = "stdout") -> str:
    """What the client was told of a stream so far."""
    found = b""
    for message in server.seen:
        if message.get("method") == "command/exec/outputDelta":
            fields = message["params"]
            if fields["stream"] == stream:
                found += base64.b64decode(fields["deltaBase64"])
    return found.decode()


def test_a_command_is_answered_with_its_output(place: Workplace) -> None:
    with AppServer(place.home, place.cwd) as server:
        asked = shell("echo out; echo err >&2; pwd; exit 3", cwd="..")
        assert server.ask("command/exec", asked) == {
            "exitCode": 3,
            "stdout": f"out\n{place.cwd.parent}\n",
            "stderr": "err\n",
        }


def test_a_client_types_into_a_command(place: Workplace) -> None:
    script = "stty size; read x; echo got $x; stty size; cat"
    with AppServer(place.home, place.cwd) as server:
        size = {"rows": 11, "cols": 77}
        asked = shell(script, processId="p", tty=True, size=size)
        number = server.send("command/exec", asked)
        one = {"processId": "p"}
        told = server.told("command/exec/outputDelta")
        assert told == {
            "processId": "p",
            "stream": "stdout",
            "deltaBase64": encoded("11 77\r\n"),
            "capReached": False,
        }
        resized = {**one, "size": {"rows": 22, "cols": 33}}
        assert server.ask("command/exec/resize", resized) == {}
        typed = {**one, "deltaBase64": encoded("hello\n")}
        assert server.ask("command/exec/write", typed) == {}
        assert server.ask("command/exec/write", {**one, "closeStdin": True}) == {}
        result = server.answered(number)["result"]
        assert result == {"exitCode": 0, "stdout": "", "stderr": ""}
        assert output(server) == "11 77\r\nhello\r\ngot hello\r\n22 33\r\n"
        error = server.refused("command/exec/terminate", one)
        text = 'no active command/exec for process id "p"'
        assert error == {"code": INVALID_REQUEST, "message": text}


def test_a_command_ends_with_its_client(place: Workplace, tmp_path: Path) -> None:
    with Lifeline(tmp_path) as lifeline:
        script = f"{lifeline.hold} trap '' TERM HUP; setsid sleep 1000 & sleep 1000"
        with AppServer(place.home, place.cwd) as server:
            server.send("command/exec", shell(script, disableTimeout=True))
            lifeline.wait_until_up()
        lifeline.wait_until_dead()


def test_a_command_ends_with_a_server_that_is_killed(
    place: Workplace, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as lifeline:
        script = f"{lifeline.hold} setsid sleep 1000 & sleep 1000"
        server = AppServer(place.home, place.cwd)
        server.__enter__()
        asked = shell(script, processId="p", tty=True, disableTimeout=True)
        server.send("command/exec", asked)
        lifeline.wait_until_up()
        server.program.kill()
        server.leave()
        lifeline.wait_until_dead()


_WRONG: list[dict[str, Any]] = [
    {},
    {"command": []},
    {"command": ["true"], "size": {"rows": 3, "cols": 4}},
    {"command": ["true"], "tty": True},
    {"command": ["true"], "streamStdin": True},
    {"command": ["true"], "streamStdoutStderr": True},
    {
        "command": ["true"],
        "tty": True,
        "processId": "p",
        "size": {"rows": 0, "cols": 4},
    },
    {
        "command": ["true"],
        "tty": True,
        "processId": "p",
        "size": {"rows": 70_000, "cols": 4},
    },
    {"command": ["true"], "timeoutMs": -1},
    {"command": ["true"], "timeoutMs": 5, "disableTimeout": True},
    {"command": ["true"], "outputBytesCap": 5, "disableOutputCap": True},
    {"command": ["true"], "outputBytesCap": -1},
    {"command": ["true"], "sandboxPolicy": {"type": "nope"}},
    {"command": ["true"], "sandboxPolicy": FULL, "permissionProfile": ":read-only"},
    {"command": ["true"], "permissionProfile": "nope"},
]
_RIGHT = [
    shell("echo out; echo err >&2; exit 3"),
    shell("kill -9 $$"),
    shell("echo a; sleep 20", timeoutMs=300),
    shell("sleep 20", timeoutMs=0),
    shell("echo 123456789; echo abc >&2", outputBytesCap=4),
    shell("echo a", outputBytesCap=0),
    shell("echo $A ${HOME-none}", env={"A": "1", "HOME": None}),
    shell("printf '\\303\\274'"),
    shell("cat; sleep 3 & echo now"),
    shell("yes | head -c 2000000"),
    {"command": ["none-such"], "sandboxPolicy": FULL},
]


@needs_codex
def test_codex_answers_the_same(place: Workplace) -> None:
    questions = [("command/exec", asked) for asked in (*_RIGHT, *_WRONG)]
    questions += [
        ("command/exec/write", {"processId": "p", "deltaBase64": ""}),
        ("command/exec/write", {"processId": "p"}),
        ("command/exec/write", {"processId": "p", "deltaBase64": "!"}),
        ("command/exec/resize", {"processId": "p", "size": {"rows": 1, "cols": 1}}),
        ("command/exec/resize", {"processId": "p", "size": {"rows": 0, "cols": 1}}),
        ("command/exec/terminate", {"processId": "p"}),
    ]
    answers = answers_of_app_server(environment(place.home), place.cwd, *questions)
    with AppServer(place.home, place.cwd) as server:
        for (method, asked), answer in zip(questions, answers, strict=True):
            found = server.answered(server.send(method, asked))
            assert _compared(found) == _compared(answer), asked


def _compared(answer: Message) -> Any:
    """What is the same in both programs: all but the reasons that a library gives."""
    if "result" in answer:
        return answer["result"]
    error = answer["error"]
    reasoned = ("Invalid request", "invalid ", "failed to spawn command")
    if error["message"].startswith(reasoned):
        return error["code"], error["message"].partition(":")[0]
    return error["code"], error["message"]


def test_deltas_have_a_cap_too_and_come_before_the_answer(place: Workplace) -> None:
    script = "echo 123456789; sleep 0.2; yes | head -c 300000; echo err >&2; exit 4"

    async def run() -> None:
        client = Client(place)
        asked = shell(script, processId="p", streamStdoutStderr=True, outputBytesCap=4)
        answer = await client.ask(**asked)
        assert answer == {"exitCode": 4, "stdout": "", "stderr": ""}
        delta = {"processId": "p", "capReached": True}
        told = [fields for _, fields in client.told]
        assert told == [
            {**delta, "stream": "stdout", "deltaBase64": encoded("1234")},
            {**delta, "stream": "stderr", "deltaBase64": encoded("err\n")},
        ]
        await client.commands.aclose()

    asyncio.run(run())


def test_a_command_waits_for_a_client_that_does_not_read(place: Workplace) -> None:
    async def run() -> None:
        client = Client(place)
        client.reads.clear()
        asked = shell("yes | head -c 5000000", processId="p", streamStdoutStderr=True)
        running = asyncio.create_task(client.ask(**asked, disableOutputCap=True))
        await client.came.wait()
        assert len(client.told) == 1
        client.reads.set()
        assert (await running)["exitCode"] == 0
        deltas = [base64.b64decode(each["deltaBase64"]) for _, each in client.told]
        assert b"".join(deltas) == b"y\n" * 2_500_000
        await client.commands.aclose()

    asyncio.run(run())


def test_too_much_output_for_an_answer_ends_the_command(place: Workplace) -> None:
    async def run() -> None:
        client = Client(place)
        fits = await client.ask(**shell("yes | head -c 2000000"), disableOutputCap=True)
        assert len(fits["stdout"]) == 2_000_000
        code, text = await client.refused(**shell("yes"), disableOutputCap=True)
        assert (code, "more than 5 MB" in text) == (INVALID_REQUEST, True)
        await client.commands.aclose()

    asyncio.run(run())


def test_a_command_that_takes_no_input_is_not_written_to(place: Workplace) -> None:
    async def run() -> None:
        client = Client(place)
        running = asyncio.create_task(
            client.ask(**shell("cat; echo on; sleep 1000", processId="p"))
        )
        await asyncio.sleep(0)
        one = {"processId": "p"}
        refused = await client.refused("/write", **one, closeStdin=True)
        text = "stdin streaming is not enabled for this command/exec"
        assert refused == (INVALID_REQUEST, text)
        resize = {**one, "size": {"rows": 1, "cols": 1}}
        text = "failed to resize PTY: process is not attached to a PTY"
        assert await client.refused("/resize", **resize) == (INVALID_REQUEST, text)
        again = await client.refused(**shell("true", processId="p"))
        text = 'duplicate active command/exec process id: "p"'
        assert again == (INVALID_REQUEST, text)
        await client.ask("/terminate", **one)
        assert (await running)["exitCode"] == 128 + signal.SIGKILL
        await client.commands.aclose()

    asyncio.run(run())


def test_input_has_an_end(place: Workplace) -> None:
    async def run() -> None:
        client = Client(place)
        asked = shell("cat; exec <&-; sleep 1000", processId="p", streamStdin=True)
        running = asyncio.create_task(client.ask(**asked))
        await asyncio.sleep(0)
        one = {"processId": "p"}
        await client.ask("/write", **one, deltaBase64=encoded("a"), closeStdin=True)
        more = await client.refused("/write", **one, deltaBase64=encoded("b"))
        assert more == (INVALID_REQUEST, "stdin is already closed")
        await client.ask("/terminate", **one)
        assert (await running)["stdout"] in ("a", "")
        await client.commands.aclose()

    asyncio.run(run())


def test_so_many_commands_run_at_once(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_MAX_RUNNING", 1)

    async def run() -> None:
        client = Client(place)
        running = asyncio.create_task(client.ask(**shell("sleep 1000", processId="p")))
        await asyncio.sleep(0)
        text = "more than 1 commands run; use fewer at once"
        assert await client.refused(**shell("true")) == (OVERLOADED, text)
        await client.ask("/terminate", processId="p")
        await running
        assert (await client.ask(**shell("true")))["exitCode"] == 0
        await client.commands.aclose()

    asyncio.run(run())


def test_keys_are_not_for_commands_unless_the_client_gives_them(
    place: Workplace,
) -> None:
    async def run() -> None:
        client = Client(place)
        found = await client.ask(command=["env"], sandboxPolicy=FULL)
        assert KEY not in found["stdout"]
        given = await client.ask(
            command=["env"], sandboxPolicy=FULL, env={"OPENAI_API_KEY": "given"}
        )
        assert "OPENAI_API_KEY=given\n" in given["stdout"]
        await client.commands.aclose()

    asyncio.run(run())


@needs_sandbox
def test_a_command_is_held_by_the_sandbox_and_the_denials(place: Workplace) -> None:
    (place.cwd / "secret").write_text("hidden words", encoding="utf-8")
    text = '[protection]\ndeny = ["secret"]\n'
    (place.home / "config.toml").write_text(text, encoding="utf-8")
    (place.home / "auth.json").write_text('{"OPENAI_API_KEY": "sk-stored"}', "utf-8")
    script = f"cat secret {place.home}/auth.json; touch made; ls"

    async def run() -> None:
        client = Client(place)
        asked: dict[str, Any] = {"command": ["sh", "-c", script]}
        held = await client.ask(**asked)
        assert "hidden" not in held["stdout"]
        assert "sk-stored" not in held["stdout"]
        assert not (place.cwd / "made").exists()
        read_only = {"type": "readOnly"}
        await client.ask(**asked, sandboxPolicy=read_only)
        await client.ask(**asked, permissionProfile=":read-only")
        assert not (place.cwd / "made").exists()
        workspace = {"type": "workspaceWrite", "networkAccess": False}
        written = await client.ask(**asked, sandboxPolicy=workspace)
        assert "hidden" not in written["stdout"]
        assert (place.cwd / "made").exists()
        full = await client.ask(**asked, sandboxPolicy=FULL)
        assert "hidden" not in full["stdout"]
        missing = await client.ask(command=["none-such"])
        assert missing["exitCode"] == 127
        await client.commands.aclose()

    asyncio.run(run())


@needs_sandbox
def test_the_administrator_decides(place: Workplace) -> None:
    requirements = """
allowed_sandbox_modes = ["read-only"]

[rules]
prefix_rules = [
    { pattern = [{ token = "rm" }], decision = "forbidden", justification = "no rm here" },
    { pattern = [{ token = "dd" }], decision = "forbidden", justification = "" },
]
"""

    async def run() -> None:
        client = Client(place, requirements)
        text = "invalid sandbox policy: the administrator does not allow `danger-full-access`"
        assert await client.refused(**shell("true")) == (INVALID_REQUEST, text)
        profile = await client.refused(
            command=["true"], permissionProfile=":danger-full-access"
        )
        text = "invalid permission profile: the administrator does not allow `:danger-full-access`"
        assert profile == (INVALID_REQUEST, text)
        held = await client.ask(command=["sh", "-c", "touch made; echo ran"])
        assert held["stdout"] == "ran\n"
        assert not (place.cwd / "made").exists()
        forbidden = await client.refused(command=["sh", "-c", "true && rm -rf x"])
        text = "the administrator forbids the command: no rm here"
        assert forbidden == (INVALID_REQUEST, text)
        other = await client.refused(command=["dd"])
        text = "the administrator forbids the command: it starts with `dd`"
        assert other == (INVALID_REQUEST, text)
        await client.commands.aclose()

    asyncio.run(run())


def test_a_folder_has_to_exist(place: Workplace) -> None:
    async def run() -> None:
        client = Client(place)
        with pytest.raises(CodexError, match="none"):
            await client.ask(command=["true"], cwd="none")
        code, text = await client.refused(command=["a\0b"], sandboxPolicy=FULL)
        assert (code, text) == (-32603, "failed to spawn command: embedded null byte")
        await client.commands.aclose()

    asyncio.run(run())
