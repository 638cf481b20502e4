"""The programs of the library's documents and of `examples` run from an installed wheel, against a scripted model.

`LIBRARY_PEERS` names a Python with the packages `openai-agents`, `claude-agent-sdk` and `pydantic-ai-slim[openai]`,
whose programs then run too.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from codex_py.testing import (
    RecordedRequest,
    Reply,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from codex_py.testing.events import Event
from tests.app.agent.test_agent import PNG
from tests.support.server import ScriptedServer
from tests.test_packaging import built

ROOT = Path(__file__).parent.parent
LIBRARY = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
COMPARED = (ROOT / "docs" / "library-compared.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = r"```python\n(.*?)```\n"
BLOCKS: list[tuple[str, str | None]] = [
    (program, output or None)
    for program, output in re.findall(
        rf"^{PYTHON}(?:\n```text\n(.*?)```\n)?", LIBRARY, re.MULTILINE | re.DOTALL
    )
]
HELLO = "Hello! What are we working on?"
PEERS = os.environ.get("LIBRARY_PEERS", "")
LIBRARIES = {
    "codex_py": sys.executable,
    "openai-agents": PEERS,
    "claude-agent-sdk": PEERS,
    "pydantic-ai": PEERS,
}
TASKS: list[tuple[str, str, str]] = [
    (task, library, program)
    for task, section in re.findall(
        r"^## (.*?)\n(.*?)(?=^## |\Z)", COMPARED, re.MULTILINE | re.DOTALL
    )
    for library, program in re.findall(
        rf"^(\S+):\n\n{PYTHON}", section, re.MULTILINE | re.DOTALL
    )
]
SAID = {
    "An answer": HELLO,
    "A typed answer": "5",
    "A function as a tool": "There are 7.",
    "A function that needs an approval": "Paid.",
    "The text as it comes": HELLO,
}
"""What the programs of a task print at last."""
CALLS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "Count the lines of notes.txt": ("exec_command", {"cmd": "wc -l notes.txt"}),
    "How many bolts": ("stock", {"part": "bolts"}),
    "Pay the invoice": ("pay", {"euros": 5}),
    "Order what we have": ("order", {"part": "nuts", "count": 9}),
    "Take your time": ("exec_command", {"cmd": "sleep 60"}),
}
"""The model begins with these calls."""
ANSWERS = {
    "Say hello": HELLO,
    "And in one word?": "Hello.",
    "What is on it?": "A dot.",
    "Count the lines of notes.txt": "It has 3 lines.",
    "Rate this repo": '{"stars": 4, "reason": "Small and clear."}',
    "Rate it": '{"stars": 5}',
    "Which lines are too long": '{"response": [3, 8]}',
    "Find the worst bug": '{"file": "a.py", "line": 3}',
    "How large is it": '{"files": 2, "lines": 90}',
    "Is it a bug": '{"response": "bug"}',
    "Find a bug in docs": '{"response": null}',
    "How many bolts": "There are 7.",
    "Pay the invoice": "Paid.",
    "ask Eve first": "I will ask Eve.",
    "Write the changelog": '{"kind": "fixed", "text": "It works."}',
    "Order what we have": "Done.",
    "Take your time": "Done.",
    "the capital of": "A city",
    "This fails": "",
}
"""What it answers, by the last of these that was said."""


def answer(request: RecordedRequest) -> Any:
    """What the model of the documents says, in any of the APIs."""
    told = json.dumps(request.body.get("input") or request.body["messages"])
    prompt = max(ANSWERS, key=told.rfind)
    if prompt == "This fails":
        error = {"message": "This cannot be", "code": "invalid_request"}
        return Reply(status=400, body=json.dumps({"error": error}).encode())
    has_output = re.search(
        "function_call_output|tool_result", told[told.rfind(prompt) :]
    )
    if prompt in CALLS and not has_output:
        name, arguments = CALLS[prompt]
        # With the SDK of Claude, functions are on a server.
        name = f"mcp__parts__{name}" if "messages" in request.body else name
    elif not has_output and (answer_tool := tool_for_answers(request)):
        name, arguments = answer_tool, json.loads(ANSWERS[prompt])
    else:
        return [ev_created(), *ev_message(ANSWERS[prompt], pieces=3), completed()]
    return [
        ev_created(),
        *ev_function_call(f"call_{len(told)}", name, arguments),
        completed(),
    ]


def tool_for_answers(request: RecordedRequest) -> str | None:
    """The tool by which a library of others wants a typed answer; None if it wants a text."""
    offered = json.dumps(request.body.get("tools", ""))
    for name in ("StructuredOutput", "final_result"):
        if name in offered:
            return name
    return None


def completed() -> Event:
    """The end of a response, with the list of items that pydantic-ai reads."""
    return ev_completed(output=[])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel puts into site-packages."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(built("wheel", folder)) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


Run = Callable[..., str]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    # The SDKs of others have rules of their own.
    with ScriptedServer([answer] * 60, check_calls=False, check_prefix=False) as server:
        yield server


@pytest.fixture
def run(site: Path, tmp_path: Path, server: ScriptedServer) -> Run:
    """Runs a program in a folder with some files. Returns its stdout."""
    folder, home = tmp_path / "folder", tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "config.toml").write_text(server.config_toml(), encoding="utf-8")
    folder.mkdir()
    (folder / "notes.txt").write_text("a\nb\nc\n", encoding="utf-8")
    (folder / "screen.png").write_bytes(PNG)

    def run(*arguments: str, python: str = sys.executable, stdin: str = "") -> str:
        done = subprocess.run(
            [python, "-W", "error", *arguments]
            if python == sys.executable
            else [python, *arguments],
            cwd=folder,
            env=environment(server, site, home),
            input=stdin.encode(),
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    return run


def environment(server: ScriptedServer, site: Path, home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(site),
        "HOME": str(home),
        "SHELL": "/bin/bash",
        "MOCK_KEY": "none",
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "ANTHROPIC_BASE_URL": server.base_url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


NOTEBOOK = """
import ast, asyncio, inspect, sys
code = compile(sys.argv[1], "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
async def cell():
    done = eval(code, {"__name__": "__main__"})
    if inspect.isawaitable(done):
        await done
asyncio.run(cell())
"""
"""Runs a program as a cell of a notebook, where an event loop runs and `await` needs no function."""


def test_the_document_has_its_programs() -> None:
    assert len(BLOCKS) >= 11
    assert [text for _, text in BLOCKS if text is None] == [None]


@pytest.mark.parametrize(("program", "output"), BLOCKS, ids=range(len(BLOCKS)))
def test_the_programs_of_the_document_print_what_it_shows(
    run: Run, server: ScriptedServer, program: str, output: str | None
) -> None:
    program = program.replace("https://llm.example.com/v1", server.base_url)
    runs_loop = "asyncio.run(" in program
    printed = run("-c", program) if runs_loop else run("-c", NOTEBOOK, program)
    assert printed == (output or "")


def test_the_three_lines_run_as_a_script_too(run: Run) -> None:
    program, output = BLOCKS[0]
    assert len([line for line in program.splitlines() if line]) <= 3
    assert run("-c", program) == output


def test_the_program_of_the_readme_runs(run: Run) -> None:
    (program,) = re.findall(PYTHON, README, re.DOTALL)
    assert run("-c", program) == "There are 7.\n"


def test_the_compared_programs_are_as_long_as_the_document_says() -> None:
    lines = [
        len([line for line in each.splitlines() if line.strip()])
        for _, _, each in TASKS
    ]
    rows = re.findall(
        r"^\| [a-z ]+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", LIBRARY, re.MULTILINE
    )
    assert [int(count) for row in rows for count in row] == lines
    assert [library for _, library, _ in TASKS] == [*LIBRARIES] * 5


@pytest.mark.parametrize(
    ("task", "library", "program"),
    TASKS,
    ids=[f"{task}, {library}" for task, library, _ in TASKS],
)
def test_the_compared_programs_do_the_same(
    run: Run, task: str, library: str, program: str
) -> None:
    python = LIBRARIES[library]
    if not python:
        pytest.skip("LIBRARY_PEERS names no Python")
    assert run("-c", program, python=python, stdin="y\n").strip().endswith(SAID[task])


def example(name: str) -> str:
    return str(ROOT / "examples" / f"{name}.py")


def test_the_examples_run(run: Run) -> None:
    assert run(example("answer"), "Say", "hello") == f"{HELLO}\n"
    assert run(example("typed_output")) == "fixed: It works.\n"
    asked = run(example("tools_with_approval"), stdin="y\n")
    assert (
        asked
        == 'python/order {"part": "nuts", "count": 9}: y, n, or what to do instead? Done.\n'
    )
    assert run(example("twenty_agents")).splitlines()[::19] == [
        "Austria: A city",
        "Tunisia: A city",
    ]


def test_the_example_of_a_server_streams_events(
    site: Path, tmp_path: Path, run: Run, server: ScriptedServer
) -> None:
    program = subprocess.Popen(
        [sys.executable, example("event_stream"), "0"],
        cwd=tmp_path / "folder",
        env=environment(server, site, tmp_path / "home"),
        stdout=subprocess.PIPE,
    )
    with program:
        assert program.stdout is not None
        port = int(program.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"Say hello\nThis fails\n")
            with client.makefile("rb") as lines:
                types: list[str] = []
                while types.count("turn.failed") == 0:
                    types.append(json.loads(next(lines))["type"])
        program.kill()
    assert types[:3] == ["thread.started", "turn.started", "message_delta"]
    assert "turn.completed" in types


def test_the_example_of_tests_passes(run: Run) -> None:
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", example("test_shop"))
    assert "7 passed" in done


EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, kernel_name="python3", timeout=100).execute()
nbformat.write(notebook, sys.argv[2])
"""
"""Runs the cells of a notebook in a kernel, and writes a copy with their outputs."""


def outputs(notebook: Path) -> list[str]:
    """The output of each cell with code: what it printed, and its value."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    shown: list[str] = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        text = ""
        for output in cell["outputs"]:
            # A cell that fails has another kind of output, without either.
            lines = output["text"] if "text" in output else output["data"]["text/plain"]
            text += "".join(lines)
        shown.append(text)
    return shown


def test_the_cells_of_the_notebook_print_what_it_shows(
    run: Run, tmp_path: Path
) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("nbclient")
    notebook = ROOT / "examples" / "notebook.ipynb"
    executed = tmp_path / "executed.ipynb"
    run("-c", EXECUTE, str(notebook), str(executed))
    shown = outputs(notebook)
    assert shown[0] == f"{HELLO}\n"
    assert "another event loop" in shown[-1]
    assert outputs(executed) == shown


@pytest.fixture
def web_server(
    site: Path, tmp_path: Path, run: Run, server: ScriptedServer
) -> Iterator[httpx.Client]:
    """A client of the example with server-sent events, which runs on a free port."""
    pytest.importorskip("fastapi")
    program = subprocess.Popen(
        [sys.executable, "-W", "error", example("server_sent_events"), "0"],
        cwd=tmp_path / "folder",
        env=environment(server, site, tmp_path / "home"),
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with program:
        assert program.stderr is not None
        address = None
        while address is None:
            address = re.search(r"http://127\.0\.0\.1:\d+", next(program.stderr))
        with httpx.Client(base_url=address[0], timeout=60) as client:
            yield client
        program.terminate()


def sent_events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def test_the_example_of_a_web_server_streams_turns(web_server: httpx.Client) -> None:
    with web_server.stream("GET", "/turn", params={"prompt": "Say hello"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        first = list(sent_events(response))
    text = "".join(event.get("delta", "") for event in first)
    assert (text, first[-1]["type"]) == (HELLO, "turn.completed")
    thread = first[0]["thread_id"]
    further = {"prompt": "And in one word?", "thread": thread}
    with web_server.stream("GET", "/turn", params=further) as response:
        second = list(sent_events(response))
    assert second[0]["thread_id"] == thread
    unknown = {"prompt": "Say hello", "thread": "unknown"}
    with web_server.stream("GET", "/turn", params=unknown) as response:
        assert [event["code"] for event in sent_events(response)] == ["session"]


def test_a_client_of_the_web_server_that_goes_away_interrupts_its_turn(
    web_server: httpx.Client, tmp_path: Path
) -> None:
    asked = {"prompt": "Take your time"}
    with web_server.stream("GET", "/turn", params=asked) as response:
        for event in sent_events(response):
            if event["type"] == "item.started":
                break
    sessions = tmp_path / "home" / ".codex" / "sessions"
    (file,) = sessions.rglob("*.jsonl")
    deadline = time.monotonic() + 30
    while "turn_aborted" not in file.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
