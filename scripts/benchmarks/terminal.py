"""A conversation in a terminal: how soon it can begin, and what it takes to write, to wait and to go on for long."""

import os
import select
import signal
import statistics
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from fcntl import ioctl
from functools import partial
from itertools import count
from pathlib import Path

from codex_py.testing import (
    Pause,
    RecordedRequest,
    Reply,
    ev_completed,
    ev_created,
    ev_message,
)
from codex_py.testing.reply import Part
from scripts.benchmarks.agent import PROMPT, Agent, Place, fresh_place
from scripts.benchmarks.samples import Sample
from scripts.benchmarks.server import BenchmarkServer

_ANSWER_BYTES = 100_000
_DELTAS = 5_000
_DELTA_S = 0.002
_COMPOSER = "\u203a".encode()
"""Stands before what is typed."""
_END = "Worked"
"""Begins the line that says how long the turn took."""
MODEL = "mock-model"
"""Stands in the last line as soon as something can be typed. Of one that Codex knows it would say first that
there is a better one."""
_ROWS, _COLUMNS = 40, 120
_TYPED = [chr(code) for code in range(0x430, 0x4A0) if chr(code).isalpha()]
"""Keys that no text of the program has, one after the other."""
_KEY_S = 0.07
_WAIT_S = 10.0
_SETTLED_S = 3.0
_TURNS, _SOME = 300, 30
_QUIET_S = 0.7
_DEADLINE_S = 90.0

# What a terminal is asked when a program starts, and what it says.
_QUESTIONS = {
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;c",
    b"\x1b[?u": b"\x1b[?0u",
    b"\x1b]10;?": b"\x1b]10;rgb:cccc/cccc/cccc\x1b\\",
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
}

_SECTION = """\
## What the loader does

It reads `config.toml` from the **home folder** and then from each folder between the root of the repository
and the working directory. A value that is set in a closer file wins; see [the manual](https://example.com).

- first, `load_layers()` collects what there is
- then each layer is checked by *itself*, so that the message names the file

```python
def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = merge(old, value) if isinstance(old, dict) else value
    return result
```

| key | type | default |
|-----|------|---------|
| `model` | string | `gpt-5.5` |
| `timeout_ms` | integer | 10000 |

"""


def terminal(server: BenchmarkServer, agent: Agent) -> Sample:
    with trusted_place(server.play(_conversation)) as place:
        return {"terminal": _cpu_s(agent, place)}


def terminal_start(server: BenchmarkServer, agent: Agent) -> Sample:
    """From the start of the program until its first frame."""
    with trusted_place(server.play(_conversation)) as place:
        started_s = time.monotonic()
        with in_terminal(agent, place) as (_, master):
            read_until(master, _COMPOSER, started_s + _DEADLINE_S, quiet_s=0)
            shown_s = time.monotonic()
    return {"terminal start": (shown_s - started_s) * 1_000}


def terminal_keys(server: BenchmarkServer, agent: Agent) -> Sample:
    """From a key to its letter on the screen, while the answer streams in."""
    with (
        trusted_place(server.play(_conversation)) as place,
        in_terminal(agent, place) as running,
    ):
        _, master = running
        read_until(master, MODEL.encode(), time.monotonic() + _DEADLINE_S)
        _send_prompt(master)
        read_until(master, b"loader", time.monotonic() + _DEADLINE_S, quiet_s=0)
        taken = sorted(_echo_s(master, key) * 1_000 for key in _TYPED)
    return {
        "keys": statistics.median(taken),
        "keys, p99": taken[int(len(taken) * 0.99)],
    }


def _echo_s(master: int, key: str) -> float:
    pressed_s = time.monotonic()
    os.write(master, key.encode())
    read_until(master, key.encode(), pressed_s + _DEADLINE_S, quiet_s=0)
    shown_s = time.monotonic()
    while (left_s := pressed_s + _KEY_S - time.monotonic()) > 0:
        _read(master, left_s)
    return shown_s - pressed_s


def terminal_waits(server: BenchmarkServer, agent: Agent) -> Sample:
    """Ten seconds without anything to do, and ten in which the model says nothing."""
    with (
        trusted_place(server.play(_silence)) as place,
        in_terminal(agent, place) as running,
    ):
        process, master = running
        deadline = time.monotonic() + _DEADLINE_S
        read_until(master, MODEL.encode(), deadline)
        read_for(master, _SETTLED_S)
        switches = _voluntary_switches(process.pid)
        read_for(master, _WAIT_S)
        switches = _voluntary_switches(process.pid) - switches
        _send_prompt(master)
        read_for(master, _SETTLED_S)
        cpu_s = _own_cpu_s(process.pid)
        written = read_for(master, _WAIT_S)
        cpu_s = _own_cpu_s(process.pid) - cpu_s
    return {"idle": switches, "waiting": written / 1_000, "waiting, CPU": cpu_s}


def terminal_turns(server: BenchmarkServer, agent: Agent) -> Sample:
    """Many short turns of one conversation: the last ones over the first ones, in time and memory."""
    taken: list[float] = []
    with (
        trusted_place(server.play(_short_turns)) as place,
        in_terminal(agent, place) as running,
    ):
        process, master = running
        read_until(master, MODEL.encode(), time.monotonic() + _DEADLINE_S)
        memory = 0
        for turn in range(_TURNS):
            begun_s = time.monotonic()
            os.write(master, b"go")
            read_until(master, b"go", begun_s + _DEADLINE_S, quiet_s=0.03)
            begun_s = time.monotonic()
            os.write(master, b"\r")
            read_until(master, b"Done-%d." % turn, begun_s + _DEADLINE_S, quiet_s=0)
            taken.append(time.monotonic() - begun_s)
            read_for(master, 0.1)
            if turn == _SOME:
                memory = _resident_bytes(process.pid)
        more = _resident_bytes(process.pid) - memory
    first, last = statistics.median(taken[1:_SOME]), statistics.median(taken[-_SOME:])
    return {
        "turns": last / first,
        "turns, each": last * 1_000,
        "turns, memory": more / (1 << 20),
    }


def _voluntary_switches(pid: int) -> int:
    """How often its threads have waited for something."""
    return sum(
        int(line.split()[1])
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for line in (thread / "status")
        .read_text(encoding="ascii", errors="replace")
        .splitlines()
        if line.startswith("voluntary")
    )


def _own_cpu_s(pid: int) -> float:
    fields = (
        Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    )
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")


@contextmanager
def trusted_place(config_toml: str) -> Generator[Place]:
    with fresh_place(config_toml) as place:
        config = place.home / "config.toml"
        text = config.read_text(encoding="utf-8").replace("gpt-5.5", MODEL)
        text += f'[projects."{place.repository}"]\ntrust_level = "trusted"\n'
        config.write_text(text, encoding="utf-8")
        yield place


def _conversation() -> list[Reply]:
    # Codex asks for a title of the thread as well.
    return [_answer] * 3  # pyright: ignore[reportReturnType]  # a reply may be a function


def _silence() -> list[Reply]:
    return [_no_answer] * 3  # pyright: ignore[reportReturnType]


def _short_turns() -> list[Reply]:
    turns = count()

    def answer(request: RecordedRequest) -> Reply:
        text = f"Done-{next(turns)}."
        return _title(request) or Reply(
            events=[ev_created(), *ev_message(text), ev_completed()]
        )

    return [answer] * (_TURNS + 3)  # pyright: ignore[reportReturnType]


def _title(request: RecordedRequest) -> Reply | None:
    if "format" not in request.body.get("text", {}):
        return None
    return Reply(
        events=[ev_created(), *ev_message('{"title": "Done"}'), ev_completed()]
    )


def _no_answer(request: RecordedRequest) -> Reply:
    return _title(request) or Reply(events=[ev_created(), Pause()])


def _answer(request: RecordedRequest) -> Reply:
    if (title := _title(request)) is not None:
        return title
    text = (_SECTION * (_ANSWER_BYTES // len(_SECTION) + 1))[:_ANSWER_BYTES]
    parts: list[Part] = []
    pauses: list[Pause] = []
    for event in [ev_created(), *ev_message(text, pieces=_DELTAS), ev_completed()]:
        parts.append(event)
        if event["type"] == "response.output_text.delta":
            pauses.append(Pause())
            parts.append(pauses[-1])
    threading.Thread(target=_release, args=(pauses,), daemon=True).start()
    return Reply(events=parts)


def _release(pauses: list[Pause]) -> None:
    """Let one delta go out after the other, at an even pace however long each takes."""
    due = time.monotonic()
    for pause in pauses:
        pause.reached.wait()
        due += _DELTA_S
        time.sleep(max(0, due - time.monotonic()))
        pause.until.set()


def _cpu_s(agent: Agent, place: Place) -> float:
    """Processor time of the whole program, with that of its children."""
    deadline = time.monotonic() + _DEADLINE_S
    with in_terminal(agent, place) as (process, master):
        read_until(master, MODEL.encode(), deadline)
        _send_prompt(master)
        read_until(master, _END.encode(), deadline)
        os.write(master, b"\x04")
        while process.returncode is None:
            _read(master, 0.05)
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return usage.ru_utime + usage.ru_stime
            if time.monotonic() > deadline:
                raise RuntimeError(f"{agent.program} does not end")
        raise RuntimeError(f"{agent.program} ended at once")


def _send_prompt(master: int) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    os.write(master, PROMPT.encode())
    read_until(master, PROMPT.split()[-1].encode(), deadline)
    os.write(master, b"\r")


@contextmanager
def in_terminal(
    agent: Agent, place: Place
) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """The program, and the other end of its terminal; it is killed at the end, unless it has ended."""
    options = ["-s", "danger-full-access"]
    if agent.name == "peer":
        # Its work would be done by a process that is not its child.
        options += ["--no-daemon", "-c", "check_for_update_on_startup=false"]
    master, slave = os.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    process = subprocess.Popen(
        [str(agent.program), *options],
        cwd=place.repository,
        env=place.environment(TERM="xterm-256color"),
        # As the one that controls its session, as a user's is.
        preexec_fn=partial(os.login_tty, slave),
        pass_fds=[slave],
    )
    os.close(slave)
    try:
        yield process, master
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(master)


def read_until(
    master: int, text: bytes, deadline: float, *, quiet_s: float = _QUIET_S
) -> None:
    """Until the text has been written, and nothing is any more for so long, which may be 0."""
    seen = b""
    while True:
        data = _read(master, quiet_s or _QUIET_S)
        if text in seen + data and not (data and quiet_s):
            return
        seen = (seen[-100:] if text not in seen else text) + data
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited for {text!r} in vain; last was {seen[-300:]!r}")


def read_for(master: int, seconds: float) -> int:
    """Take in what is written within the time; the bytes of it."""
    written, deadline = 0, time.monotonic() + seconds
    while (left_s := deadline - time.monotonic()) > 0:
        written += len(_read(master, left_s))
    return written


def _read(master: int, timeout_s: float) -> bytes:
    ready, _, _ = select.select([master], [], [], timeout_s)
    if not ready:
        return b""
    try:
        data = os.read(master, 65536)
    except OSError:
        return b""
    for question, answer in _QUESTIONS.items():
        if question in data:
            os.write(master, answer)
    return data
