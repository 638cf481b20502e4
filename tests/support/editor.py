"""Plays an editor for `codex-py acp`, and checks what the agent writes with the schema of the protocol."""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from jsonschema import Draft202012Validator

from tests.support.codex_process import start_codex_py
from tests.support.program import Workplace, environment

_DEADLINE_S = 120.0
_RESULTS: Final = {
    "initialize": "InitializeResponse",
    "authenticate": "AuthenticateResponse",
    "logout": "LogoutResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/close": "CloseSessionResponse",
    "session/delete": "DeleteSessionResponse",
    "session/prompt": "PromptResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
}
_METHODS: Final = {
    "session/update": "SessionNotification",
    "session/request_permission": "RequestPermissionRequest",
    "elicitation/create": "CreateElicitationRequest",
    "fs/read_text_file": "ReadTextFileRequest",
    "fs/write_text_file": "WriteTextFileRequest",
    "terminal/create": "CreateTerminalRequest",
    "terminal/output": "TerminalOutputRequest",
    "terminal/wait_for_exit": "WaitForTerminalExitRequest",
    "terminal/kill": "KillTerminalRequest",
    "terminal/release": "ReleaseTerminalRequest",
}
Message: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[[str, Message], Any]
"""Answers a request of the agent; None leaves it without an answer."""


class Refused(Exception):
    def __init__(self, error: Message) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code, self.data = error["code"], error.get("data")


def schema_file() -> Path | None:
    """The schema of version 1, from `@agentclientprotocol/sdk`; None where it was not installed."""
    path = Path(os.environ.get("SCHEMAS_DIR", "/nonexistent"), "acp-v1.json")
    return path if path.exists() else None


@cache
def _validator(name: str) -> Draft202012Validator | None:
    if (path := schema_file()) is None:
        return None
    definitions = json.loads(path.read_text(encoding="utf-8"))["$defs"]
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})


def check(name: str, value: Any) -> None:
    """Fails if the value is not what the schema says, if it is here."""
    if (validator := _validator(name)) is not None:
        validator.validate(value)  # pyright: ignore[reportUnknownMemberType]


class Editor:
    """One end of the connection.

    Attributes:
        updates: those of all sessions, in their order.
        asked: the requests of the agent.
        answering: the id of the request that is being answered.
    """

    def __init__(self, program: subprocess.Popen[bytes], answer: Answer) -> None:
        self.program = program
        self.answer = answer
        self.updates: list[Message] = []
        self.asked: list[Message] = []
        self.answering: Any = None
        self.notices: list[Message] = []
        self._results: dict[Any, Message] = {}
        self._methods: dict[Any, str] = {}
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def write(self, *lines: Message | bytes) -> None:
        """Write them in one piece."""
        assert self.program.stdin
        texts = [x if isinstance(x, bytes) else json.dumps(x).encode() for x in lines]
        self.program.stdin.write(b"".join(text + b"\n" for text in texts))
        self.program.stdin.flush()

    def message(self, method: str, **params: Any) -> Message:
        """A request, to be written; `result` has its number."""
        number = len(self._methods)
        self._methods[number] = method
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def begin(self, method: str, **params: Any) -> int:
        self.write(message := self.message(method, **params))
        return message["id"]

    def notify(self, method: str, **params: Any) -> None:
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def result(self, number: int | None) -> Any:
        """Wait for the answer to a request. Raises `Refused` if it is an error."""
        while number not in self._results:
            self.step()
        message = self._results.pop(number)
        if "error" in message:
            raise Refused(message["error"])
        check(_RESULTS[self._methods[number]], message["result"])
        return message["result"]

    def request(self, method: str, **params: Any) -> Any:
        return self.result(self.begin(method, **params))

    def step(self) -> Message:
        """Take one message; answer it if it is a question."""
        line = self._lines.get(timeout=_DEADLINE_S)
        assert line.endswith(b"\n"), f"the agent has left: {line!r}"
        message: Message = json.loads(line)
        assert message.pop("jsonrpc") == "2.0"
        method = message.get("method")
        if method is None:
            self._results[message["id"]] = message
            return message
        check(_METHODS[method], message["params"])
        if method == "session/update":
            self.updates.append(message["params"]["update"])
            return message
        self.asked.append(message["params"])
        self.answering = message["id"]
        if (answer := self.answer(method, message["params"])) is not None:
            self.write({"jsonrpc": "2.0", "id": message["id"], **answer})
        return message

    def until(self, is_there: Callable[[Message], bool]) -> Message:
        """Take messages up to an update of this kind, which may have come already."""
        while (found := next(filter(is_there, self.updates), None)) is None:
            self.step()
        return found

    def of_kind(self, *kinds: str) -> list[Message]:
        return [update for update in self.updates if update["sessionUpdate"] in kinds]

    def said(self, role: str = "agent_message") -> str:
        return "".join(
            each["content"]["text"] for each in self.of_kind(f"{role}_chunk")
        )

    def calls(self) -> dict[str, Message]:
        """The calls by their ids, as they are after all updates."""
        calls: dict[str, Message] = {}
        for update in self.of_kind("tool_call", "tool_call_update"):
            is_new = update["sessionUpdate"] == "tool_call"
            assert is_new == (update["toolCallId"] not in calls), (
                "announced once, and first"
            )
            calls.setdefault(update["toolCallId"], {}).update(update)
        return calls

    def call(self) -> Message:
        (call,) = self.calls().values()
        return call

    def close(self) -> int:
        """Leave; the exit code."""
        assert self.program.stdin
        self.program.stdin.close()
        return self.program.wait(_DEADLINE_S)

    def _read(self) -> None:
        assert self.program.stdout
        with self.program.stdout as stdout:
            while line := stdout.readline():
                self._lines.put(line)
        self._lines.put(b"")


def always(answer: Any) -> Answer:
    return lambda _method, _params: answer


def allows(option: str = "approved") -> Answer:
    outcome = {"outcome": "selected", "optionId": option}
    return lambda _method, _params: {"result": {"outcome": outcome}}


@contextmanager
def editor(
    place: Workplace,
    *args: str,
    answer: Answer | None = None,
    capabilities: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    stderr: int = subprocess.DEVNULL,
) -> Generator[Editor]:
    """Start `codex-py acp ARGS` in a workplace, and shake hands. In the end it has to leave in order."""
    program = start_codex_py(
        ["acp", *args],
        place.cwd,
        environment(place.home, env),
        stdin=subprocess.PIPE,
        stderr=stderr,
    )
    with program:
        try:
            client = Editor(program, answer or allows())
            client.request(
                "initialize",
                protocolVersion=1,
                clientCapabilities=dict(capabilities or {}),
            )
            yield client
            assert client.close() == 0
        finally:
            program.kill()


def new_session(client: Editor, place: Workplace, **more: Any) -> str:
    params: Message = {"cwd": str(place.cwd), "mcpServers": [], **more}
    return client.request("session/new", **params)["sessionId"]


def prompt(client: Editor, session: str, *parts: Message | str) -> str:
    """Send a prompt, and wait for the end of its turn; the reason."""
    return client.result(begin_prompt(client, session, *parts))["stopReason"]


def begin_prompt(client: Editor, session: str, *parts: Message | str) -> int:
    blocks = [
        {"type": "text", "text": x} if isinstance(x, str) else x
        for x in parts or ("go",)
    ]
    return client.begin("session/prompt", sessionId=session, prompt=blocks)
