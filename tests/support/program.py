"""Run the real program, in an environment that holds nothing of whoever runs the tests."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from jsonschema import Draft202012Validator

import codex_py
from tests.support.codex_process import start_codex_py
from tests.support.server import ScriptedServer

_DEADLINE_S = 120.0
_SETTINGS = ("--skip-git-repo-check", "-s", "danger-full-access")
KEY = "sk-test-5e1f"


def run_codex_py(
    args: Sequence[str],
    home: Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    *,
    confined: Sequence[str] = (),
    real: bool | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end. `home` becomes `CODEX_HOME`; `env` comes on top of a bare environment. It is started as by
    `start_codex_py`.

    Raises:
        subprocess.TimeoutExpired: it did not end.
    """
    program = start_codex_py(
        args,
        cwd,
        environment(home, env),
        stdin=subprocess.PIPE,
        confined=confined,
        real=real,
    )
    with program:
        try:
            out, err = program.communicate(stdin, _DEADLINE_S)
        except BaseException:
            program.kill()
            raise
    return subprocess.CompletedProcess(program.args, program.returncode, out, err)


def environment(home: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the program needs, the key of a scripted server, and `env`."""
    bare = {
        "CODEX_HOME": str(home),
        "HOME": str(home.parent),
        "PATH": os.environ["PATH"],
        "SHELL": "/bin/bash",
        "TZ": "UTC",
        "MOCK_KEY": KEY,
    }
    return {**bare, **(env or {})}


EVENT_SCHEMA = Draft202012Validator(
    json.loads(
        (Path(codex_py.__file__).parent / "schemas" / "events.json").read_text("utf-8")
    )
)


def jsonl(stdout: bytes) -> list[dict[str, Any]]:
    """The events; every line has to be one, as the schema says."""
    events = [json.loads(line) for line in stdout.decode().splitlines()]
    for event in events:
        EVENT_SCHEMA.validate(event)  # pyright: ignore[reportUnknownMemberType]
    return events


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run of `exec --json` ended."""

    code: int
    events: list[dict[str, Any]]
    err: str

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def items(self) -> list[dict[str, Any]]:
        """The completed ones."""
        return [
            event["item"] for event in self.events if event["type"] == "item.completed"
        ]

    @property
    def messages(self) -> list[str]:
        return [item["text"] for item in self.items if item["type"] == "agent_message"]

    @property
    def error(self) -> dict[str, Any]:
        """What the turn failed with: the last event, and the only one that ends a turn."""
        assert self.events[-1]["type"] == "turn.failed"
        return self.events[-1]["error"]


@dataclass(frozen=True, slots=True)
class Workplace:
    """A home and a folder to work in."""

    home: Path
    cwd: Path

    @classmethod
    def below(cls, folder: Path) -> Self:
        """Make both, empty, in a folder that exists."""
        place = cls(folder / "home", folder / "work")
        place.home.mkdir()
        place.cwd.mkdir()
        return place

    def configure(self, server: ScriptedServer, **provider: Any) -> None:
        """Have the scripted server as the provider, without retries unless `provider` asks for them."""
        keys: dict[str, Any] = {
            "request_max_retries": 0,
            "stream_max_retries": 0,
            **provider,
        }
        (self.home / "config.toml").write_text(
            server.config_toml(**keys), encoding="utf-8"
        )

    def run(
        self,
        server: ScriptedServer,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        **provider: Any,
    ) -> Outcome:
        """`exec --json ARGS`; the prompt is `go` where there are no arguments."""
        self.configure(server, **provider)
        return self.rerun(*args, env=env, stdin=stdin)

    def rerun(
        self, *args: str, env: Mapping[str, str] | None = None, stdin: bytes = b""
    ) -> Outcome:
        """The same, with the configuration as it is."""
        done = run_codex_py(
            ["exec", "--json", *_SETTINGS, *(args or ["go"])],
            self.home,
            self.cwd,
            env,
            stdin,
        )
        outcome = Outcome(done.returncode, jsonl(done.stdout), done.stderr.decode())
        ends = [
            kind for kind in outcome.types if kind in {"turn.completed", "turn.failed"}
        ]
        starts = outcome.types.count("turn.started")
        assert len(ends) == starts, f"{starts} turns, {ends}"
        return outcome

    def start(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        limit: Callable[[], object] | None = None,
        real: bool | None = None,
    ) -> subprocess.Popen[bytes]:
        """The same as `rerun`, not waited for. `limit` runs in the child, before the program."""
        return start_codex_py(
            ["exec", "--json", *_SETTINGS, *(args or ["go"])],
            self.cwd,
            environment(self.home, env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            limit=limit,
            real=real,
        )

    def rollouts(self) -> list[Path]:
        return sorted(self.home.glob("sessions/**/rollout-*.jsonl"))
