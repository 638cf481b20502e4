"""A client of `codex-py app-server`: it writes lines, and reads lines under a deadline.

Where `CODEX_BINARY` names the released Codex, every message of the server must fit its schemas.
"""

import json
import os
import queue
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.codex import CODEX
from tests.support.codex_process import start_codex_py
from tests.support.codex_protocol import check_answer, check_message
from tests.support.program import environment

_DEADLINE_S = 60.0
_CHECKED = 50
"""The number of messages of each method that are compared with the schemas. A test may send millions."""
Message = dict[str, Any]


CAPABILITIES = {"experimentalApi": True}
"""What Codex wants to hear before it serves some of the methods; ours ignores it."""


class AppServer:
    """The server is started in the folder. With `with`, it ends when the client leaves.

    Attributes:
        seen: every message, in order.
        answer: answers the requests of the server; None leaves them open.
        reads: while it is not set, the client reads nothing more.
    """

    def __init__(
        self, home: Path, cwd: Path, *options: str, env: Mapping[str, str] | None = None
    ) -> None:
        self.program = self._start(options, cwd, environment(home, env))
        self.cwd = cwd
        self.seen: list[Message] = []
        self.answer: Callable[[Message], Any] | None = lambda _: {"decision": "accept"}
        self.reads = threading.Event()
        self.reads.set()
        self._came: queue.Queue[Message | None] = queue.Queue()
        self._last = 0
        self._asked: dict[int, str] = {}
        """The methods of requests by their ids."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _start(
        self, options: Sequence[str], cwd: Path, variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        return start_codex_py(
            [*options, "app-server"],
            cwd,
            variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        client = {"name": "tests", "version": "1"}
        self.ask("initialize", {"clientInfo": client, "capabilities": CAPABILITIES})
        self.write({"method": "initialized"})
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        code = self.leave()
        if error is None:
            assert code == 0, code
            self._check_messages()

    def leave(self) -> int:
        """Close the pipe to the server, and wait for its end. Returns the exit code."""
        assert self.program.stdin is not None
        assert self.program.stderr is not None
        with self.program:
            with suppress(BrokenPipeError):
                self.program.stdin.close()
            try:
                code = self.program.wait(_DEADLINE_S)
            except BaseException:
                self.program.kill()
                raise
            self._reader.join(_DEADLINE_S)
            assert self.program.stderr.read() == b""
        return code

    def _check_messages(self) -> None:
        """Compare what the server has sent with the schemas of Codex."""
        if CODEX is None:
            return
        counts: Counter[str] = Counter()
        for message in self.seen:
            method = message.get("method")
            counts[str(method)] += 1
            if method is not None and counts[method] <= _CHECKED:
                check_message(message)
            if "result" in message:
                check_answer(self._asked[message["id"]], message["result"])

    def write(self, message: Message | bytes) -> None:
        assert self.program.stdin is not None
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.program.stdin.write(data + b"\n")
        self.program.stdin.flush()

    def send(self, method: str, params: Any = None) -> int:
        """Send a request without waiting. Returns its id."""
        self._last += 1
        self._asked[self._last] = method
        self.write({"id": self._last, "method": method, "params": params})
        return self._last

    def ask(self, method: str, params: Any = None) -> Any:
        """The result of a request."""
        answer = self.answered(self.send(method, params))
        assert "result" in answer, answer
        return answer["result"]

    def refused(self, method: str, params: Any = None) -> Message:
        """The error that a request is answered with."""
        return self.answered(self.send(method, params))["error"]

    def answered(self, number: int) -> Message:
        return self.until(
            lambda message: message.get("id") == number and "method" not in message
        )

    def told(self, method: str, **params: Any) -> Message:
        """The params of the next notification or request of this method, and with these params."""
        return self.until(
            lambda message: (
                message.get("method") == method
                and params.items() <= message["params"].items()
            )
        )["params"]

    def until(self, fits: Callable[[Message], bool]) -> Message:
        while True:
            message = self._came.get(timeout=_DEADLINE_S)
            assert message is not None, "the server has ended"
            if fits(message):
                return message

    def thread(self, **params: Any) -> str:
        """Start a thread. Returns its id."""
        wanted = {"cwd": str(self.cwd), "sandbox": "danger-full-access", **params}
        return self.ask("thread/start", wanted)["thread"]["id"]

    def turn(self, thread_id: str, text: str = "go", **params: Any) -> str:
        """Start a turn. Returns its id."""
        said = [{"type": "text", "text": text}]
        asked = {"threadId": thread_id, "input": said, **params}
        return self.ask("turn/start", asked)["turn"]["id"]

    def ended(self, thread_id: str) -> Message:
        """The next turn of the thread that ends."""
        return self.told("turn/completed", threadId=thread_id)["turn"]

    def items(self, kind: str, thread_id: str) -> Sequence[Message]:
        """The completed items of this type so far."""
        return [
            message["params"]["item"]
            for message in self.seen
            if message.get("method") == "item/completed"
            and message["params"]["threadId"] == thread_id
            and message["params"]["item"]["type"] == kind
        ]

    def _read(self) -> None:
        assert self.program.stdout is not None
        for line in self.program.stdout:
            message = json.loads(line)
            self.reads.wait()
            self.seen.append(message)
            if "method" in message and "id" in message and self.answer is not None:
                self.write({"id": message["id"], "result": self.answer(message)})
            self._came.put(message)
        self._came.put(None)


class CodexAppServer(AppServer):
    """The server of the released Codex."""

    def _start(
        self, options: Sequence[str], cwd: Path, variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        assert CODEX is not None
        return subprocess.Popen(
            [CODEX, *options, "app-server"],
            cwd=cwd,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def leave(self) -> int:
        with self.program:
            self.program.kill()
        return 0

    def _check_messages(self) -> None:
        """The schemas are its own."""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
