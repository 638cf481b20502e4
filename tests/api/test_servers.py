"""A server that is made of `codex_py.api.servers` alone, and the one that `docs/extensions.md` shows.

Tests `api/servers.py`.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from codex_py.api.servers import (
    ApprovalRequest,
    Config,
    Elicitation,
    ElicitationAnswer,
    Event,
    Review,
    ServedThread,
    ServedThreads,
    SessionOptions,
    TurnResult,
    answer_by_id,
    event_items,
    events,
    load_config,
    offered_answers,
)
from codex_py.testing import (
    FakeModel,
    Pause,
    call,
    ev_completed,
    ev_function_call,
    ev_message,
)
from tests.app.test_json_rpc import in_a_loop
from tests.app.test_served_thread import answer_after
from tests.support.packages import install_package
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs/extensions.md").read_text(encoding="utf-8")
SETTINGS = {"approval_policy": "untrusted", "sandbox_mode": "read-only"}


class LineThread(ServedThread):
    """A thread whose events are lines: `NAME: TEXT`."""

    def __init__(
        self,
        name: str,
        place: Workplace,
        model: FakeModel,
        write: Callable[[str], None],
    ) -> None:
        super().__init__(SessionOptions(transport=model), environment(place.home))
        self._name = name
        self._cwd = place.cwd
        self._write = write
        self._choice: asyncio.Future[str]
        self.approver = self
        self.elicitor = self

    def configuration(self) -> Config:
        return load_config(cwd=self._cwd, environment=self.environment, flags=SETTINGS)

    def show(self, event: Event) -> None:
        match event:
            case events.TurnStarted():
                self.say("began")
            case events.ItemCompleted(event_items.AgentMessage(text=text)):
                self.say(text)
            case events.TurnCompleted():
                self.say("completed")
            case events.TurnFailed(error):
                self.say(f"failed, {error.message}")
            case _:
                pass

    def say(self, text: str) -> None:
        self.tell(lambda: self._write(f"{self._name}: {text}"))

    async def review(self, request: ApprovalRequest) -> Review:
        offered = offered_answers(request)
        chosen = await self._asked(answer.label(request) for answer in offered)
        labels = {answer.label(request): answer.id for answer in offered}
        return answer_by_id(labels.get(chosen), offered).review()

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        (question,) = elicitation.questions
        chosen = await self._asked(label for label, _ in question.options)
        return ElicitationAnswer("accept", {question.id: [chosen]})

    def choose(self, text: str) -> None:
        self._choice.set_result(text)

    async def _asked(self, labels: Iterable[str]) -> str:
        self._choice = asyncio.get_running_loop().create_future()
        self.say(f"choose {' / '.join(labels)}")
        return await self._choice

    async def prompt(self, text: str) -> None:
        """Begin a turn. The line `NAME: ok` comes before all lines about it."""

        async def work() -> TurnResult:
            session = await self.ready()
            return await session.run_turn(text)

        with self.answering():
            await self.begin(work).started()
        self._write(f"{self._name}: ok")


class LineServer:
    """Takes lines: `NAME say TEXT`, `NAME choose TEXT`, `NAME stop`, `NAME close`."""

    def __init__(self, place: Workplace, *replies: Any) -> None:
        self._place = place
        self._model = FakeModel(*replies)
        self._threads = ServedThreads[LineThread]()
        self.lines: asyncio.Queue[str] = asyncio.Queue()

    async def take(self, line: str) -> None:
        name, command, *words = line.split(" ", 2)
        thread = self._threads.get(name)
        if thread is None:
            thread = LineThread(name, self._place, self._model, self.lines.put_nowait)
            self._threads.use(thread, name)
        match command:
            case "say":
                await thread.prompt(words[0])
            case "choose":
                thread.choose(words[0])
            case "stop":
                thread.cancel()
            case _:
                await thread.close()

    async def told(self, count: int) -> list[str]:
        """The next lines."""
        return [await self.lines.get() for _ in range(count)]

    async def aclose(self) -> None:
        await self._threads.aclose()


@in_a_loop
async def test_a_session_is_served_over_lines(place: Workplace) -> None:
    server = LineServer(place, "Hello.", "Again.")
    await server.take("a say hello")
    assert await server.told(4) == ["a: ok", "a: began", "a: Hello.", "a: completed"]
    await server.take("a close")
    await server.take("a say once more")
    assert await server.told(4) == ["a: ok", "a: began", "a: Again.", "a: completed"]
    await server.aclose()


@in_a_loop
async def test_the_user_of_a_client_is_asked(place: Workplace) -> None:
    server = LineServer(place, call("exec_command", cmd="touch made"), "No.")
    await server.take("a say make it")
    asked = (await server.told(3))[-1]
    assert asked.startswith("a: choose Yes, proceed / ")
    assert asked.endswith("No, and say what to do instead / No, and stop here")
    await server.take("a choose Perhaps")
    assert await server.told(2) == ["a: No.", "a: completed"]
    assert not (place.cwd / "made").exists()
    await server.aclose()


@in_a_loop
async def test_the_model_asks_the_user_of_a_client(place: Workplace) -> None:
    options = [{"label": size, "description": size} for size in ("small", "large")]
    question = {"id": "a", "header": "Size", "question": "Which?", "options": options}
    asks = call("request_user_input", questions=[question])
    server = LineServer(place, asks, "Large it is.")
    await server.take("a say ask me")
    assert (await server.told(3))[-1] == "a: choose small / large"
    await server.take("a choose large")
    assert await server.told(2) == ["a: Large it is.", "a: completed"]
    await server.aclose()


@in_a_loop
async def test_a_stop_is_for_one_thread_and_a_leaving_client_for_all(
    place: Workplace,
) -> None:
    pauses = [Pause(), Pause()]
    server = LineServer(place, *map(answer_after, pauses))
    await server.take("a say wait")
    await server.told(2)
    await asyncio.to_thread(pauses[0].reached.wait, 60)
    await server.take("b say wait too")
    await server.told(2)
    await server.take("a stop")
    assert await server.told(1) == ["a: failed, the turn was interrupted"]
    assert server.lines.empty()
    await server.aclose()
    assert await server.told(1) == ["b: failed, the turn was interrupted"]
    for pause in pauses:
        pause.until.set()


def documented() -> str:
    """The module of the documentation."""
    blocks = re.findall(r"^```python\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL)
    (found,) = (each for each in blocks if "codex_py.api.servers" in each)
    return found


class ChatClient:
    """A client of the documented server, which answers each question with yes."""

    def __init__(self, packages: Path, place: Workplace) -> None:
        start = "import sys; sys.path.insert(0, sys.argv[1]);"
        start += "from codex_py.cli.main import main; sys.exit(main(['chat']))"
        self.program = subprocess.Popen(
            [sys.executable, "-c", start, str(packages)],
            cwd=place.cwd,
            env=environment(place.home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def write(self, **message: Any) -> None:
        assert self.program.stdin is not None
        line = json.dumps({"jsonrpc": "2.0", **message})
        self.program.stdin.write(f"{line}\n".encode())
        self.program.stdin.flush()

    def ask(self, method: str, params: Any = None) -> list[dict[str, Any]]:
        """The messages up to the answer to a request."""
        assert self.program.stdout is not None
        self.write(id="mine", method=method, params=params)
        messages: list[dict[str, Any]] = []
        while not (messages and messages[-1].get("id") == "mine"):
            message = json.loads(self.program.stdout.readline())
            assert message.pop("jsonrpc") == "2.0"
            messages.append(message)
            if message.get("method") == "choose":
                self.write(id=message["id"], result="approved")
        return messages

    def leave(self) -> int:
        with self.program:
            assert self.program.stdin is not None
            self.program.stdin.close()
            return self.program.wait(60)


def test_the_documented_server_serves_a_client(
    place: Workplace, tmp_path: Path
) -> None:
    packages = tmp_path / "packages"
    points = {"codex_py.commands": {"chat": "codex_py_chat:command"}}
    install_package(packages, "codex_py_chat", documented(), points)
    arguments = {
        "cmd": "touch made",
        "sandbox_permissions": "require_escalated",
        "justification": "It is wanted.",
    }
    runs = ev_function_call("c1", "exec_command", arguments)
    says = ev_message("Made.")
    with ScriptedServer([[*runs, ev_completed()], [*says, ev_completed()]]) as model:
        place.configure(model)
        client = ChatClient(packages, place)
        asked, said, answer = client.ask("prompt", {"text": "Make it."})
        refused = client.ask("nothing")
        assert client.leave() == 0
    assert (place.cwd / "made").exists()
    assert "touch made" in asked["params"]["call"]
    assert asked["params"]["answers"]["abort"] == "No, and stop here"
    assert said == {"method": "said", "params": {"text": "Made."}}
    assert answer["result"].keys() == {"tokens"}
    assert [each["error"]["code"] for each in refused] == [-32601]
