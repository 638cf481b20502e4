"""The terminals of an editor: it starts the commands itself, and may do so wrongly."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from tests.support.editor import Editor

CAN_RUN = {"terminal": True}


class Terminals:
    """Answers the requests about terminals, and allows every call.

    Args:
        wrong: answers in place of the right ones, by the ends of the methods; None: no answer.
        option: the answer to a question about a call.

    Attributes:
        client: the connection; set it before the first prompt.
        methods: the requests, in their order.
        commands: the words of each command, with its environment.
    """

    made: ClassVar[list["Terminals"]] = []

    def __init__(
        self, wrong: Mapping[str, Any] | None = None, option: str = "approved"
    ) -> None:
        self.client: Editor | None = None
        self.methods: list[str] = []
        self.commands: list[list[str]] = []
        self.questions: list[Any] = []
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.made.append(self)
        self._wrong = wrong or {}
        self._option = option
        self._limits: dict[str, int] = {}
        self._printed: dict[str, bytearray] = {}

    def __call__(self, method: str, params: Any) -> Any:
        if method == "session/request_permission":
            self.questions.append(params)
            outcome = {"outcome": "selected", "optionId": self._option}
            return {"result": {"outcome": outcome}}
        name = method.removeprefix("terminal/")
        self.methods.append(name)
        if name in self._wrong:
            wrong = self._wrong[name]
            return wrong(params) if callable(wrong) else wrong
        if name == "create":
            return {"result": {"terminalId": self._create(params)}}
        program = self.running[params["terminalId"]]
        match name:
            case "output":
                return {"result": self._output(params["terminalId"], program)}
            case "wait_for_exit":
                waiting = (self.client, self.client and self.client.answering, program)
                threading.Thread(target=_answer_exit, args=waiting, daemon=True).start()
                return None
            case "kill":
                _kill(program)
                return {"result": {}}
            case _:
                assert name == "release"
                _kill(program)
                return {"result": {}}

    @classmethod
    def close_all(cls) -> None:
        """End every command of all terminals."""
        while cls.made:
            for program in cls.made.pop().running.values():
                _kill(program)
                program.wait(10)
                wait_for_end(program)
                assert program.stdin is not None
                program.stdin.close()

    def _create(self, params: Any) -> str:
        words = [params["command"], *params["args"]]
        self.commands.append(words)
        variables = {each["name"]: each["value"] for each in params["env"]}
        program = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=params["cwd"],
            env={**os.environ, "EDITORS_SECRET": "hush", **variables},
            start_new_session=True,
        )
        terminal = f"term_{len(self.running)}"
        self.running[terminal] = program
        self._limits[terminal] = params["outputByteLimit"]
        self._printed[terminal] = bytearray()
        reading = (program, self._printed[terminal])
        threading.Thread(target=_read, args=reading, daemon=True).start()
        return terminal

    def _output(self, terminal: str, program: subprocess.Popen[bytes]) -> Any:
        if program.poll() is not None:
            # All of it, as terminals show it when the command has ended.
            wait_for_end(program)
        printed = bytes(self._printed[terminal])
        limit = self._limits[terminal]
        return {
            "output": printed[-limit:].decode(errors="replace"),
            "truncated": len(printed) > limit,
            "exitStatus": exit_status(program),
        }


def _kill(program: subprocess.Popen[bytes]) -> None:
    # It may have ended just now.
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)


def exit_status(program: subprocess.Popen[bytes]) -> Any:
    code = program.poll()
    if code is None:
        return None
    if code < 0:
        return {"exitCode": None, "signal": signal.Signals(-code).name}
    return {"exitCode": code, "signal": None}


def wait_for_end(program: subprocess.Popen[bytes]) -> None:
    """Wait until the output was read to its end."""
    for thread in threading.enumerate():
        if thread.name == f"read {program.pid}":
            thread.join(10)


def _read(program: subprocess.Popen[bytes], into: bytearray) -> None:
    threading.current_thread().name = f"read {program.pid}"
    assert program.stdout is not None
    with program.stdout as stdout:
        while data := os.read(stdout.fileno(), 65536):
            into.extend(data)


def _answer_exit(client: Editor, number: int, program: subprocess.Popen[bytes]) -> None:
    program.wait()
    status = exit_status(program)
    # The agent may have left.
    with suppress(OSError, ValueError):
        client.write({"jsonrpc": "2.0", "id": number, "result": status})
