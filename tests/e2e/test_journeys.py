"""The journeys of the README, in an empty world and in one that is lived in, and with each sandbox backend of this
machine."""

import asyncio
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_py import SessionOptions, TurnResult, load_config, open_session
from codex_py.testing import (
    RecordedRequest,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.frontends.tui.terminals import IDLE
from tests.support.agents import AgentServer, calls, waits
from tests.support.containers import in_container
from tests.support.lived_in import (
    World,
    build_empty,
    build_lived_in,
    copy_of,
    git,
    git_state,
    state_of,
    world_at,
)
from tests.support.patching import enveloped
from tests.support.program import Outcome
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

pytestmark = pytest.mark.timeout(180)

EMPTY, LIVED_IN = "empty", "lived_in"
BACKENDS = ("namespaces", "bwrap", "views", "supervised", "landlock", "seatbelt")
OWN = (
    *(
        ".codex/sessions",
        ".codex/codex-py",
        ".codex/worktrees",
        ".codex/session_index.jsonl",
    ),
    ".codex/thread-writer-locks",
)
"""What the program may make in the home."""
FIRST_BACKEND = """
import os
from codex_py.sandbox.choice import platform_backends, problem
print(next((b.name for b in platform_backends(os.environ["PATH"]) if problem(b) is None), None))
"""

ALMOST_ALL = (
    r"\( -name .git -o -name .codex -o -name .claude -o -name .agents -o -name .aws -o -name .venv"
    r" -o -name build \) -prune -o"
)
CHANGES_MUCH = f"""
find . {ALMOST_ALL} -type f -exec /bin/sh -c 'for f; do echo changed >>"$f" || exit 9; done' /bin/sh {{}} +
find . {ALMOST_ALL} -name '*.key' -exec chmod 640 {{}} + -o -name run.sh -exec chmod -x {{}} +
if test -d src; then
  rm src/-dash src/up; mv 'src/with space' src/new; ln -s missing src/up
  rm src/new?line.txt; mkdir src/-d; echo x >src/-d/é
  rm vendor/lib/deep/more.c inner/deep/more.c src/notes.txt
fi
rm notes.txt || test -d src  # which has another one; Landlock keeps all of a folder with a .git
"""


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("worlds")
    for name, build in {EMPTY: build_empty, LIVED_IN: build_lived_in}.items():
        (root / name).mkdir()
        build(root / name)
    return root


def confinement(backend: str, folder: Path) -> Sequence[str]:
    """What makes a backend the first that works, as machines do that have no stronger one."""
    match backend:
        case "views":
            hidden = "mount --bind -o ro /proc/sys /proc/sys"
            user = "-m" if os.geteuid() == 0 else "-Urm"
            return ["unshare", user, "/bin/sh", "-c", f'{hidden} && exec "$@"', "sh"]
        case "supervised":
            return in_container([])
        case "landlock":
            return in_container([], asking=False)
        case _:
            return []


@pytest.fixture(scope="session")
def first_backends(templates: Path) -> dict[str, str]:
    """The backend that comes to work with each confinement."""
    found: dict[str, str] = {}
    for backend in BACKENDS:
        command = [
            *confinement(backend, templates),
            sys.executable,
            "-c",
            FIRST_BACKEND,
        ]
        if shutil.which(command[0]) is not None:
            done = subprocess.run(command, capture_output=True, check=False)
            found[backend] = done.stdout.decode().strip()
    return found


@pytest.fixture
def world(
    request: pytest.FixtureRequest, templates: Path, tmp_path: Path
) -> Iterator[World]:
    """A world of the kind that the parameter names; whatever happens in it, what is the user's own stays as it was."""
    copy_of(templates / request.param, tmp_path)
    world = world_at(tmp_path, is_lived_in=request.param == LIVED_IN)
    yield from intact(world)


@pytest.fixture
def command_world(
    request: pytest.FixtureRequest,
    templates: Path,
    tmp_path: Path,
    first_backends: dict[str, str],
) -> Iterator[World]:
    """The same, where one backend is the first that works."""
    kind, backend = request.param
    if backend and first_backends.get(backend) != backend:
        pytest.skip(f"{backend} cannot be the first that works on this machine")
    copy_of(templates / kind, tmp_path)
    confined = confinement(backend, tmp_path) if backend else ()
    world = world_at(tmp_path, is_lived_in=kind == LIVED_IN, confined=confined)
    yield from intact(world)


def intact(world: World) -> Iterator[World]:
    before = home_of(world)
    yield world
    after = home_of(world)
    assert {name: after.get(name) for name in before} == before
    own = (*OWN, ".codex/agents", ".codex/hooks.json") if not world.is_lived_in else OWN
    assert [
        name for name in after if name not in before and not name.startswith(own)
    ] == []
    assert world.config_is_unchanged()
    assert world.lookalikes_that_ran() == []
    assert list((world.cwd.parents[2] / "tmp").iterdir()) == []


def home_of(world: World) -> dict[str, tuple[int, bytes]]:
    """The home without the project, the configuration of the test, and the prompts that were typed."""
    project = str(world.cwd.relative_to(world.home))
    aside = (f"{project}/", ".codex/config.toml", ".codex/history.jsonl")
    return {
        name: state
        for name, state in state_of(world.home).items()
        if not name.startswith(aside)
    }


in_both = pytest.mark.parametrize("world", [EMPTY, LIVED_IN], indirect=True)
with_each_backend = pytest.mark.parametrize(
    "command_world",
    [
        pytest.param((EMPTY, None), id="empty"),
        *(
            pytest.param((LIVED_IN, backend), id=f"lived_in-{backend}")
            for backend in BACKENDS
        ),
    ],
    indirect=True,
)


def says(text: str) -> list[dict[str, Any]]:
    return [*ev_message(text), ev_completed()]


def runs(command: str, call_id: str = "c1", **arguments: Any) -> list[dict[str, Any]]:
    return [
        *ev_function_call(call_id, "exec_command", {"cmd": command, **arguments}),
        ev_completed(),
    ]


def patches(*lines: str, call_id: str = "p1") -> list[dict[str, Any]]:
    return [
        *ev_custom_tool_call(call_id, "apply_patch", enveloped(*lines)),
        ev_completed(),
    ]


@contextmanager
def model(world: World, *replies: Any) -> Generator[ScriptedServer]:
    with ScriptedServer(replies) as server:
        world.configure(server)
        yield server


def said(done: subprocess.CompletedProcess[bytes]) -> tuple[int, str, str]:
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def fine(outcome: Outcome, *messages: str) -> Outcome:
    """It went well, nobody was warned of anything, and these are the answers."""
    assert (outcome.code, outcome.err) == (0, ""), outcome
    assert [item for item in outcome.items if item["type"] == "error"] == []
    assert outcome.messages == list(messages)
    return outcome


def outputs(server: ScriptedServer) -> list[str]:
    """What all calls gave, as the model was told with the last request."""
    return outputs_of(server.requests[-1])


def outputs_of(request: RecordedRequest) -> list[str]:
    found = [item["output"] for item in request.input if "output" in item]
    return [text if isinstance(text, str) else text[0]["text"] for text in found]


def complaints(err: str) -> list[str]:
    """The lines of text mode that a user should not see."""
    return [
        line
        for line in err.splitlines()
        if "warn" in line.lower() or "error" in line.lower()
    ]


def taken_back(world: World, *args: str) -> str:
    """What `undo`, or another command, prints of what it has done."""
    code, out, err = said(world.run(*(args or ("undo",))))
    assert code == 0, err
    # It is told of a command that has taken two seconds, as on a machine with much to do.
    known = "A command of the session, or somebody else while it ran, changed "
    assert [line for line in err.splitlines() if not line.startswith(known)] == []
    return out


@in_both
def test_the_demo_runs(world: World) -> None:
    world.write_config('model = "gpt-5.5"\n')
    before = state_of(world.cwd)
    code, out, err = said(world.run("demo", real=True))
    assert (code, out[:6]) == (0, "Fixed."), err
    assert [line for line in complaints(err) if "AssertionError" not in line] == []
    made = world.cwd.parents[2] / "tmp" if world.is_lived_in else None
    if made is not None:
        (folder,) = made.iterdir()
        assert str(folder) in err
        shutil.rmtree(folder)
    assert state_of(world.cwd) == before


@in_both
def test_exec_answers_on_standard_output(world: World) -> None:
    before = state_of(world.cwd), git_state(world.cwd)
    with model(world, says("Hello!")):
        code, out, err = said(world.run("exec", "Say hello", real=True))
    assert (code, out, complaints(err)) == (0, "Hello!\n", [])
    assert (state_of(world.cwd), git_state(world.cwd)) == before


@in_both
def test_exec_reaches_the_model_through_the_gateway_of_the_environment(
    world: World,
) -> None:
    world.write_config('model = "gpt-5.5"\n')
    with ScriptedServer([says("Hello!")]) as server:
        gateway = {
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "sk-of-the-gateway",
        }
        outcome = world.exec("Say hello", variables=gateway, real=True)
        fine(outcome, "Hello!")
        (request,) = server.requests
    assert request.headers["authorization"] == "Bearer sk-of-the-gateway"


@with_each_backend
def test_exec_runs_commands_and_resumes(command_world: World) -> None:
    world = command_world
    before = state_of(world.cwd), git_state(world.cwd)
    writes = "mkdir .codex-not .codex/x .git/x ~/x; echo x >.git/config; echo $((6*7)); wc -l <notes.txt"
    with model(
        world, runs(writes), says("42"), runs("cat code.py", "c2"), says("1")
    ) as server:
        first = fine(world.exec("--sandbox", "read-only", "Count", real=True), "42")
        assert outputs(server)[0].endswith("42\n3\n")
        again = fine(world.exec("resume", "--last", "And code.py?"), "1")
        assert outputs(server)[1].endswith("ONE = 1\n")
    assert again.events[0]["thread_id"] == first.events[0]["thread_id"]
    assert "denied" not in again.events[-1]
    assert (state_of(world.cwd), git_state(world.cwd)) == before


@with_each_backend
def test_a_turn_can_be_undone_and_redone(command_world: World) -> None:
    """Patch, command and formatter together; every byte, mode and link comes back, and git sees nothing of it."""
    world = command_world
    before = state_of(world.cwd), git_state(world.cwd)
    index = (world.cwd / ".git/index").read_bytes()
    patch = patches("*** Update File: code.py", "@@", "-ONE = 1", "+ONE = 2  ")
    with model(world, patch, runs(CHANGES_MUCH), says("Done.")) as server:
        outcome = fine(world.exec("Change much"), "Done.")
        assert "Process exited with code 0" in outputs(server)[-1], outputs(server)[-1]
    changed = state_of(world.cwd)
    assert (
        changed["code.py"][1].decode() == world.formatted("ONE = 2  \n") + "changed\n"
    )
    assert "\n-ONE = 1\n+ONE = 2" in outcome.events[-1]["diff"]
    assert git_state(world.cwd) != before[1]
    assert (world.cwd / ".git/index").read_bytes() == index

    assert taken_back(world).startswith("Undid turn 1")
    assert (state_of(world.cwd), git_state(world.cwd)) == before
    taken_back(world, "redo")
    assert state_of(world.cwd) == changed
    taken_back(world)
    assert (state_of(world.cwd), git_state(world.cwd)) == before
    assert (world.cwd / ".git/index").read_bytes() == index


@with_each_backend
def test_hooks_refuse_and_rewrite(command_world: World) -> None:
    world = command_world
    add = patches("*** Add File: new.py", "+x = 1  ", "+y = 2")
    follow_up = patches(
        "*** Update File: new.py", "@@", "-x = 1", "+x = 3 ", call_id="p2"
    )
    with model(
        world,
        runs("echo git push"),
        add,
        runs("cat new.py", "c2"),
        follow_up,
        says("Done."),
    ) as server:
        if not world.is_lived_in:
            install_guard(world)
        outcome = world.exec("--fail-on", "denied", "Push")
        refused, _, shown, _ = outputs(server)
    assert (outcome.code, outcome.err, outcome.messages) == (5, "", ["Done."])
    assert "not without me" in refused
    (error,) = (item for item in outcome.items if item["type"] == "error")
    assert "Command blocked by PreToolUse hook: not without me" in error["message"]
    assert outcome.events[-1]["denied"]["calls"] == 1
    assert shown.endswith(world.formatted("x = 1  \ny = 2\n"))
    assert (world.cwd / "new.py").read_text("utf-8") == world.formatted(
        "x = 3 \ny = 2\n"
    )
    if world.is_lived_in:
        assert world.ran("formatter").count("PostToolUse") == 2
    taken_back(world)
    assert not (world.cwd / "new.py").exists()


def install_guard(world: World) -> None:
    """The hook of the README, and its review."""
    command = "grep -q 'git push' && { echo 'not without me' >&2; exit 2; }; true"
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
    path = world.place.home / "hooks.json"
    path.write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}), encoding="utf-8")
    world.trust_hooks()


@with_each_backend
@pytest.mark.parametrize("role", ["worker", "builder"])
def test_subagents_work_beside_us_and_in_a_worktree(
    command_world: World, role: str
) -> None:
    world = command_world
    before = state_of(world.cwd), git_state(world.cwd)
    if not world.is_lived_in:
        (world.place.home / "agents").mkdir()
        text = "---\nname: builder\ndescription: x\nisolation: worktree\n---\nBuild.\n"
        (world.place.home / "agents/builder.md").write_text(text, encoding="utf-8")
    child = [
        calls("exec_command", "c", cmd="pwd -P; echo changed >>code.py; cat code.py"),
        calls(
            "apply_patch", "p", input=enveloped("*** Add File: made.py", "+made = 1 ")
        ),
        says("Built."),
    ]
    parent = [
        calls("spawn_agent", message="Build", agent_type=role),
        waits(timeout_ms=35_000),
        says("Done."),
    ]
    with AgentServer(parent, child) as server:
        world.configure(server)
        outcome = world.exec("Build it")
        told = outputs_of(server.of_children()[-1])[0]
    assert (outcome.code, outcome.messages) == (0, ["Done."]), outcome
    is_isolated = role == "builder"
    assert "ONE = 1\nchanged\n" in str(told)
    if is_isolated:
        (entry,) = json.loads(said(world.run("worktree", "list", "--json"))[1])
        assert entry["state"] == "changed"
        assert (
            outcome.err
            == f"warning: The git worktree {entry['path']} has changes and is kept.\n"
        )
        assert (state_of(world.cwd), git_state(world.cwd)) == before
        made = Path(entry["path"]) / "made.py"
        assert said(world.run("worktree", "remove", "--force", entry["path"]))[0] == 0
        assert (state_of(world.cwd), git_state(world.cwd)) == before
    else:
        assert outcome.err == ""
        made = world.cwd / "made.py"
        assert made.read_text("utf-8") == world.formatted("made = 1 \n")
        taken_back(world)
        assert (state_of(world.cwd), git_state(world.cwd)) == before
    assert not made.exists()


PLAN = "Well.\n\n<proposed_plan>\n# A plan\n\n- one\n</proposed_plan>\n"
QUESTION = {
    "id": "db",
    "header": "db",
    "question": "Which database?",
    "options": [{"label": label, "description": label} for label in ("One", "Two")],
}


@with_each_backend
def test_a_plan_and_its_questions_change_nothing(command_world: World) -> None:
    world = command_world
    before = state_of(world.cwd), git_state(world.cwd)
    answers = world.cwd.parents[2] / "answers.json"
    answers.write_text('{"Which database?": "Two"}', encoding="utf-8")
    asks = [
        *ev_function_call("q", "request_user_input", {"questions": [QUESTION]}),
        ev_completed(),
    ]
    patch = patches("*** Delete File: code.py")
    with model(
        world, asks, patch, runs("echo x >made.txt || pwd -P"), says(PLAN)
    ) as server:
        code, out, err = said(
            world.run("exec", "--plan", "--answers", str(answers), "Plan it")
        )
        answer, refused, ran = outputs(server)
    assert (code, out) == (0, "# A plan\n\n- one\n"), err
    assert json.loads(answer) == {"answers": {"db": {"answers": ["Two"]}}}
    assert "Plan mode" in refused
    assert ran.endswith(f"{world.cwd}\n")
    assert (state_of(world.cwd), git_state(world.cwd)) == before
    code, out, err = said(world.run("undo"))
    assert (code, out) == (1, ""), err


@with_each_backend
def test_a_worktree_of_ones_own(command_world: World) -> None:
    """With the changes of the folder, which stay where they are; what is not lost is removed."""
    world = command_world
    before = state_of(world.cwd), git_state(world.cwd)
    patch = patches("*** Update File: code.py", "@@", "-ONE = 1", "+ONE = 2 ")
    with model(
        world,
        runs("pwd -P"),
        patch,
        says("Done."),
        runs("cat code.py", "c2"),
        says("2"),
    ) as server:
        outcome = world.exec("--worktree=fix", "--with-changes", "Fix it")
        path = Path(outcome.events[0]["worktree"])
        kept = f"warning: The git worktree {path} has changes and is kept.\n"
        assert (outcome.code, outcome.err, outcome.messages) == (0, kept, ["Done."])
        assert outputs(server)[0].endswith(f"{path}\n")
        again = world.exec("resume", outcome.events[0]["thread_id"], "Go on")
        assert outputs(server)[-1].endswith(world.formatted("ONE = 2 \n"))
        assert (again.code, again.err, again.messages) == (0, "", ["2"])
    assert (state_of(world.cwd), git_state(world.cwd)) == before
    if world.is_lived_in:
        assert as_git_sees(path) == as_git_sees(world.cwd)
    assert said(world.run("worktree", "remove", "fix"))[0] == 1
    assert said(world.run("worktree", "remove", "--force", "fix"))[0] == 0
    assert (state_of(world.cwd), git_state(world.cwd)) == before


@pytest.mark.parametrize("world", [LIVED_IN], indirect=True)
@pytest.mark.parametrize("inside", ["vendor/lib", "inner"])
def test_exec_works_in_a_worktree_of_a_submodule_or_of_an_inner_repository(
    world: World, inside: str
) -> None:
    before = state_of(world.cwd), git_state(world.cwd)
    with model(
        world,
        runs("echo x >new.txt"),
        says("Done."),
        runs("pwd -P; cat lib.c new.txt", "c2"),
        says("2"),
    ) as server:
        folder = ("-C", str(world.cwd / inside))
        first = world.exec(*folder, "--worktree=fix", "--with-changes", "Fix it")
        path, thread = Path(first.events[0]["worktree"]), first.events[0]["thread_id"]
        kept = f"warning: The git worktree {path} has changes and is kept.\n"
        assert (first.code, first.err, first.messages) == (0, kept, ["Done."])
        again = world.exec("resume", thread, "Go on")
        assert (again.code, again.err) == (0, "")
        assert outputs(server)[-1].endswith(f"{path}\nint one, edited;\nx\n")
    (entry,) = json.loads(said(world.run("worktree", "list", "--json"))[1])
    assert (entry["state"], entry["repository"]) == ("changed", str(world.cwd / inside))
    code, _, err = said(world.run("worktree", "remove", "fix"))
    assert (code, "has changes; --force removes it" in err) == (1, True)
    assert said(world.run("worktree", "remove", "--force", "fix"))[0] == 0
    assert git(world.cwd / inside, "worktree", "list").count("\n") == 1
    assert (state_of(world.cwd), git_state(world.cwd)) == before


def as_git_sees(folder: Path) -> dict[str, Any]:
    """The changes, and files that have some: what a worktree takes along. It leaves out submodules, repositories inside
    and edits that the index hides; of modes it keeps what git does."""
    files = ("deleted", "staged", "src", "untracked", "link", "dangling", "binary")
    contents = {
        name: (mode & (stat.S_IFMT(mode) | stat.S_IXUSR), text)
        for name, (mode, text) in state_of(folder).items()
        if name.startswith(files)
    }
    status = git_state(folder).partition("# branch")[2].split("\0")
    inside = ("vendor/lib", "inner/", "code.py")
    shown = [line for line in status if line[:2] in {"1 ", "2 ", "? "}]
    return {**contents, "": [line for line in shown if not line.endswith(inside)]}


ASKS = "Undo all of it?"


@in_both
def test_the_terminal_takes_back_what_it_did(world: World) -> None:
    before = state_of(world.cwd), git_state(world.cwd)
    patch = patches("*** Update File: code.py", "@@", "-ONE = 1", "+ONE = 2 ")
    words = ["-s", "workspace-write", "Change much"]
    variables = {**world.environment, "TERM": "xterm-256color"}
    with model(world, patch, runs(CHANGES_MUCH), says("All of it is done.")):
        if not world.is_lived_in:
            trust_project(world)
        with PtyProgram(
            words, world.cwd, variables, columns=100, rows=40, codex_py=True
        ) as terminal:
            terminal.wait_for("All of it is done.", timeout_s=60)
            # The line of a running turn says how to interrupt it.
            terminal.wait_until(
                lambda: IDLE in terminal.text and "interrupt" not in terminal.text
            )
            assert (world.cwd / "code.py").read_text("utf-8").startswith("ONE = 2")
            terminal.type("/undo")
            terminal.wait_for(" /undo")
            terminal.press("enter")
            # It asks if the command has taken two seconds, as on a machine with much to do.
            terminal.wait_until(
                lambda: any(each in terminal.text for each in ("Undid", ASKS))
            )
            if ASKS in terminal.text:
                terminal.press("up", "enter")
            terminal.wait_for("Undid turn 1: ")
            terminal.press("c-c", "c-c")
            assert terminal.wait() == 0
    assert (state_of(world.cwd), git_state(world.cwd)) == before


def trust_project(world: World) -> None:
    with (world.place.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write(
            f'[projects.{json.dumps(str(world.cwd))}]\ntrust_level = "trusted"\n'
        )
    world.trust_hooks()


@in_both
def test_a_session_is_exported_and_goes_on_in_a_clone(world: World) -> None:
    before = state_of(world.cwd), git_state(world.cwd)
    made = world.cwd.parents[2]
    with model(world, runs("cat notes.txt"), says("It has 3 lines.")) as server:
        fine(world.exec("Count"), "It has 3 lines.")
        for name in ("talk.md", "talk.html", "talk.json", "work.session"):
            options = ("--portable",) if name == "work.session" else ()
            export = world.run(
                "sessions", "export", "--last", "-o", str(made / name), *options
            )
            assert said(export) == (0, "", "")
            assert "It has 3 lines." in (made / name).read_text("utf-8")
        document = json.loads((made / "talk.json").read_bytes())
        texts = [item.get("text") for item in document["items"]]
        assert (document["cwd"], "Count" in texts) == (str(world.cwd), True)

        clone = made / "clone"
        git(made, "clone", "-q", str(world.cwd), str(clone))
        done = world.run(
            "sessions", "import", str(made / "work.session"), "--cwd", str(clone)
        )
        code, out, err = said(done)
        assert (code, err.count("\n")) == (0, 2 if world.is_lived_in else 1)
        thread = out.removeprefix("Imported session ").rstrip(".\n")
        if world.is_lived_in:
            command = err.partition("To apply them: codex-py ")[2]
            assert said(world.run(*shlex.split(command), cwd=made))[0] == 0
        assert file_changes(clone) == file_changes(world.cwd)
        server.add(says("Three."))
        again = world.exec("-C", str(clone), "resume", thread, "Again")
    assert (again.code, again.messages, again.err) == (0, ["Three."], "")
    assert (state_of(world.cwd), git_state(world.cwd)) == before


def file_changes(folder: Path) -> dict[str, tuple[bool, bytes] | None]:
    """Executable bit and contents of each file that differs from the last commit or is new; None if it is gone."""
    differing = git(
        folder,
        "diff",
        "-z",
        "--name-only",
        "--no-renames",
        "--ignore-submodules",
        "HEAD",
    )
    new = git(folder, "ls-files", "-z", "--others", "--exclude-standard")
    names = [
        name
        for name in (differing + new).split("\0")
        if name and not name.endswith("/")
    ]
    paths = [folder / name for name in names]
    return {
        str(path.relative_to(folder)): (
            bool(path.stat().st_mode & stat.S_IXUSR),
            path.read_bytes(),
        )
        if path.exists()
        else None
        for path in paths
    }


DIFF = """\
--- a/notes.txt
+++ b/notes.txt
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
--- a/AGENTS.md
+++ b/AGENTS.md
@@ -1 +1 @@
-Tests are in tests/.
+Tests are elsewhere.
"""
SUCCESS = "Success. Updated the following files:\n"


@in_both
def test_patches_in_a_row(world: World) -> None:
    before = state_of(world.cwd), git_state(world.cwd)

    def apply(*args: str, patch: str = DIFF) -> tuple[int, str]:
        code, out, err = said(world.run("apply", *args, stdin=patch.encode()))
        kind = "an envelope" if patch.startswith("***") else "a unified diff"
        assert err.startswith(f"Found {kind} in standard input.\n")
        assert (err.count("\n") > 1) == (code != 0), err
        return code, out

    assert apply("--check")[0] == 0
    assert apply("--partial", "--check")[0] == 0
    assert (state_of(world.cwd), git_state(world.cwd)) == before
    assert apply() == (0, f"{SUCCESS}M notes.txt\nM AGENTS.md\n")
    assert apply("-R") == (0, f"{SUCCESS}M AGENTS.md\nM notes.txt\n")
    assert (state_of(world.cwd), git_state(world.cwd)) == before
    assert apply("--3way")[0] == 0
    assert apply() == (7, "")
    envelope = (
        "*** Update File: notes.txt",
        "@@",
        "-TWO",
        "+ZWEI",
        "*** Add File: -new é.txt",
        "+x",
    )
    assert apply(patch=enveloped(*envelope))[0] == 0
    assert apply("-R", "--partial") == (7, f"{SUCCESS}M AGENTS.md\n")
    (world.cwd / "notes.txt.rej").unlink()
    assert (world.cwd / "notes.txt").read_text("utf-8") == "one\nZWEI\nthree\n"
    for number in range(5, 0, -1):
        assert taken_back(world).startswith(f"Undid patch {number}:\n")
    assert (state_of(world.cwd), git_state(world.cwd)) == before
    assert said(world.run("undo"))[0] == 1


@pytest.mark.parametrize("world", [LIVED_IN], indirect=True)
def test_a_patch_for_odd_files(world: World) -> None:
    before = state_of(world.cwd), git_state(world.cwd)
    lines = [
        *("*** Update File: src/with space/ünï.txt", "@@", "-Unicode", "+UNICODE"),
        *("*** Update File: src/-dash", "@@", "-a dash", "+A DASH"),
        *("*** Update File: src/run.sh", "@@", " #!/bin/sh", "-echo run", "+echo ran"),
        *(
            "*** Update File: src/private.key",
            "*** Move to: src/moved.key",
            "@@",
            "-mode 0600",
            "+moved",
        ),
        *("*** Update File: vendor/lib/lib.c", "@@", "-int one, edited;", "+int two;"),
        *("*** Update File: inner/lib.c", "@@", "-int one, edited;", "+int two;"),
        *("*** Update File: debug.log", "@@", "-ignored", "+logged"),
        *("*** Update File: hidden.txt", "@@", "-edited, and hidden from git", "+seen"),
        *("*** Delete File: staged.txt", "*** Delete File: untracked.txt"),
        *("*** Add File: deleted.txt", "+it is back"),
    ]
    code, _, err = said(world.run("apply", stdin=enveloped(*lines).encode(), real=True))
    assert (code, err) == (0, "Found an envelope in standard input.\n")
    after = state_of(world.cwd)
    modes = {
        name: oct(after[name][0] & 0o7777) for name in ("src/run.sh", "src/moved.key")
    }
    assert modes == {"src/run.sh": "0o755", "src/moved.key": "0o600"}
    taken_back(world)
    assert (state_of(world.cwd), git_state(world.cwd)) == before


@in_both
def test_the_library_with_a_function_as_a_tool(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    before = state_of(world.cwd), git_state(world.cwd)

    async def stock(part: str) -> dict[str, int]:
        """How many of a part there are."""
        (world.cwd / "stock.txt").write_text(part, encoding="utf-8")
        return {part: 7}

    async def main() -> TurnResult:
        config = load_config(cwd=world.cwd, overrides=["sandbox_mode=workspace-write"])
        async with open_session(
            config, SessionOptions(), print, tools=[stock]
        ) as session:
            return await session.run_turn("How many bolts are there?")

    call = [*ev_function_call("t", "stock", {"part": "bolts"}), ev_completed()]
    with model(world, call, runs("echo more >>notes.txt"), says("7")) as server:
        result = asyncio.run(main())
        assert outputs(server)[0] == '{"bolts":7}'
    assert (result.error, result.last_message) == (None, "7")
    assert (world.cwd / "notes.txt").read_text("utf-8") == "one\ntwo\nthree\nmore\n"
    taken_back(world)
    assert (state_of(world.cwd), git_state(world.cwd)) == before
