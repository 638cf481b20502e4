"""The programs that are measured, and one run of one of them."""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROMPT = "Say that you are done."
_DEADLINE_S = 600.0


@dataclass(frozen=True, slots=True)
class Agent:
    """A program with Codex's command line."""

    name: str
    program: Path
    group: Path | None = None
    """The file through which its processes join a group; see `half_core`."""

    @property
    def command(self) -> list[str]:
        if self.group is None:
            return [str(self.program)]
        join = 'echo 0 >"$0" && exec "$@"'
        return ["/bin/sh", "-c", join, str(self.group), str(self.program)]


@dataclass(frozen=True, slots=True)
class Ended:
    """What is known of a process that is over."""

    started_s: float
    """On the clock of `time.monotonic`, as `ended_s`."""
    ended_s: float
    cpu_s: float
    """User and system time, with that of its children."""
    peak_bytes: int
    """The most memory that was resident, in it or in any one child.

    Linux counts from before `exec`, so it is at least what the process had that started it.
    """

    @property
    def wall_s(self) -> float:
        return self.ended_s - self.started_s


class Running:
    """A process from its start until it is waited for. It is killed when it takes too long."""

    def __init__(
        self,
        command: list[str],
        *,
        cwd: Path,
        environment: dict[str, str],
        errors: Path,
        stdin: Path = Path(os.devnull),
    ) -> None:
        self._errors = errors
        with errors.open("wb") as stderr, stdin.open("rb") as input_file:
            self._started_s = time.monotonic()
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment,
                stdin=input_file,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                # The scheduler shares the machine among sessions. Codex makes itself one, and would get
                # more of a busy machine than we do.
                start_new_session=True,
            )
        self._deadline = threading.Timer(_DEADLINE_S, self._process.kill)
        self._deadline.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, code: int = 0) -> Ended:
        """
        Raises:
            RuntimeError: it did not end with this exit code; with what it said.
        """
        _, status, usage = os.wait4(self._process.pid, 0)
        ended_s = time.monotonic()
        self._deadline.cancel()
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if self._process.returncode != code:
            words = self._errors.read_text("utf-8", "replace")[-2_000:]
            raise RuntimeError(
                f"{self._process.args!r}: {self._process.returncode}\n{words}"
            )
        cpu_s = usage.ru_utime + usage.ru_stime
        return Ended(self._started_s, ended_s, cpu_s, usage.ru_maxrss * 1024)


@dataclass(frozen=True, slots=True)
class Place:
    """A home of its own, and an empty git repository to work in."""

    home: Path
    repository: Path

    def environment(self, **more: str) -> dict[str, str]:
        """It has nothing of ours but the PATH."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "CODEX_HOME": str(self.home),
            "MOCK_KEY": "none",
            **more,
        }

    def start(
        self, agent: Agent, *words: str, stdin: Path = Path(os.devnull)
    ) -> Running:
        """`AGENT words…`"""
        return Running(
            [*agent.command, *words],
            cwd=self.repository,
            environment=self.environment(),
            errors=self.home.with_name("errors"),
            stdin=stdin,
        )

    def exec(self, agent: Agent, *words: str) -> Running:
        """`AGENT exec … words…` without a sandbox, which is not what is compared here."""
        options = ["--json", "--skip-git-repo-check", "-s", "danger-full-access"]
        return self.start(agent, "exec", *options, *(words or (PROMPT,)))


@contextmanager
def fresh_place(config_toml: str) -> Generator[Place]:
    # What an agent leaves running may still write there.
    with tempfile.TemporaryDirectory(
        prefix="bench-", ignore_cleanup_errors=True
    ) as folder:
        place = Place(Path(folder) / "home", Path(folder) / "repository")
        place.home.mkdir()
        (place.home / "config.toml").write_text(config_toml, encoding="utf-8")
        subprocess.run(["git", "init", "-q", str(place.repository)], check=True)
        yield place
