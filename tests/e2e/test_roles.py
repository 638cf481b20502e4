"""Agent roles, in the real program: what a child is told, what it may do, and where it works."""

import json
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    Pause,
    RecordedRequest,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.e2e.test_mcp import add_servers
from tests.sandbox.local_backends import BACKENDS
from tests.support.agents import AgentServer, calls
from tests.support.codex import CODEX, needs_codex
from tests.support.program import Outcome, Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer

needs_sandbox = pytest.mark.skipif(not BACKENDS, reason="needs a way to hold commands")
Reply = list[dict[str, Any]]
NAMESPACE = "multi_agent_v1"


def says(text: str) -> Reply:
    return [*ev_message(text), ev_completed()]


def runs(command: str) -> Reply:
    return [*ev_function_call("c1", "exec_command", {"cmd": command}), ev_completed()]


def patches(text: str) -> Reply:
    return [*ev_custom_tool_call("c1", "apply_patch", text), ev_completed()]


def spawns(*agents: Mapping[str, str]) -> Reply:
    calls = [
        ev_function_call(f"s{n}", "spawn_agent", each, index=n, namespace=NAMESPACE)
        for n, each in enumerate(agents)
    ]
    return [*(event for call in calls for event in call), ev_completed()]


class Family:
    """The replies to a parent, which spawns agents and waits for all, and to each agent by its message."""

    def __init__(self, *agents: Mapping[str, str], **replies: Sequence[Any]) -> None:
        self._agents = agents
        self._replies = {name: list(each) for name, each in replies.items()}
        self._lock = threading.Lock()
        self._waits = 0
        self.requests: dict[str, list[RecordedRequest]] = {"parent": []}

    def __call__(self, request: RecordedRequest) -> Any:
        name = "parent"
        if "x-codex-parent-thread-id" in request.headers:
            texts = [text for item in request.input for text in texts_of(item)]
            name = next(text for text in texts if text in self._replies)
        with self._lock:
            requests = self.requests.setdefault(name, [])
            requests.append(request)
            if name != "parent":
                return self._replies[name][len(requests) - 1]
            return self._parent(request)

    def _parent(self, request: RecordedRequest) -> Reply:
        if len(self.requests["parent"]) == 1:
            return spawns(*self._agents)
        waiting = [
            json.loads(output)["agent_id"]
            for n in range(len(self._agents))
            if (output := request.output(f"s{n}")).startswith("{")
        ]
        waiting = [each for each in waiting if not self._has_ended(request, each)]
        if not waiting:
            return says("done")
        self._waits += 1
        arguments = {"targets": waiting, "timeout_ms": 20_000}
        call = ev_function_call(
            f"w{self._waits}", "wait_agent", arguments, namespace=NAMESPACE
        )
        return [*call, ev_completed()]

    def _has_ended(self, request: RecordedRequest, agent_id: str) -> bool:
        outputs = [request.output(f"w{n}") for n in range(1, self._waits + 1)]
        return any(agent_id in json.loads(output)["status"] for output in outputs)

    def spawned(self, number: int = 0) -> str:
        return self.requests["parent"][-1].output(f"s{number}")

    def output(self, name: str) -> str:
        return str(self.requests[name][-1].output("c1"))

    @contextmanager
    def server(self) -> Generator[ScriptedServer]:
        with ScriptedServer([self] * 40) as server:
            yield server
            assert server.violations == []


def texts_of(item: Mapping[str, Any]) -> list[str]:
    parts: list[dict[str, Any]] = item["content"] if item["type"] == "message" else []
    return [part.get("text", "") for part in parts]


def told_first(request: RecordedRequest) -> list[str]:
    """The first part of each developer message."""
    messages = [item for item in request.input if item.get("role") == "developer"]
    return [texts_of(message)[0].strip() for message in messages]


def offered(request: RecordedRequest) -> set[str]:
    return {
        inner.get("name", inner["type"])
        for tool in request.body["tools"]
        for inner in tool.get("tools", [tool])
    }


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def agent(name: str, message: str = "task") -> dict[str, str]:
    return {"message": message, "agent_type": name}


def go(place: Workplace, family: Family, *args: str) -> Outcome:
    with family.server() as server:
        outcome = place.run(server, *args, "go")
    assert outcome.code == 0, outcome.err
    return outcome


def repository(place: Workplace) -> None:
    write(place.cwd / "a.txt", "one\n")
    for words in (
        ["init", "-q"],
        ["add", "a.txt"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"],
    ):
        subprocess.run(
            ["git", *words], cwd=place.cwd, env=environment(place.home), check=True
        )


def trees(place: Workplace) -> list[Path]:
    return [*(place.home / "worktrees").glob("*/*")]


ADD = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch\n"


def test_a_role_says_what_the_child_is_told_and_which_model_it_has(
    place: Workplace,
) -> None:
    write(
        place.home / "agents/reviewer.toml",
        'name = "reviewer"\ndescription = "Reviews."\ndeveloper_instructions = "Be strict."\n'
        'model = "gpt-5.5-mini"\nmodel_reasoning_effort = "low"\n',
    )
    family = Family(agent("reviewer"), task=[says("fine")])
    go(place, family)
    (child,) = family.requests["task"]
    assert child.body["model"] == "gpt-5.5-mini"
    assert child.body["reasoning"]["effort"] == "low"
    assert "Be strict." in told_first(child)
    assert "Reviews." in json.dumps(family.requests["parent"][0].body["tools"])


@pytest.mark.parametrize(
    ("folder", "provider"), [("home", "other"), ("project", "mock")]
)
def test_a_role_of_the_user_may_name_a_provider(
    place: Workplace, folder: str, provider: str
) -> None:
    write(place.cwd / ".git" / "HEAD", "ref: refs/heads/main\n")
    home = place.home if folder == "home" else place.cwd / ".claude"
    write(
        home / "agents/r.md",
        "---\nname: r\ndescription: R.\nmodel: other/its-model\n---\nWork.\n",
    )
    family = Family(agent("r"), task=[says("fine")])
    with family.server() as server:
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(
                f'[model_providers.other]\nname = "other"\nbase_url = "{server.base_url}"\n'
                'http_headers = {"x-provider" = "other"}\n'
                f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n'
            )
        assert place.rerun("go").code == 0
    (child,) = family.requests["task"]
    assert child.headers.get("x-provider", "mock") == provider
    assert child.body["model"] == (
        "its-model" if provider == "other" else "other/its-model"
    )


@needs_sandbox
def test_a_role_that_asks_for_more_has_what_its_parent_has(place: Workplace) -> None:
    write(
        place.home / "agents/bold.toml",
        'name = "bold"\ndescription = "Does all."\ndeveloper_instructions = "Do."\n'
        'sandbox_mode = "danger-full-access"\n',
    )
    family = Family(agent("bold"), task=[runs("touch made.txt"), says("tried")])
    go(place, family, "-s", "read-only")
    assert "Read-only file system" in family.output(
        "task"
    ) or "ermission" in family.output("task")
    assert not (place.cwd / "made.txt").exists()


@needs_sandbox
def test_a_role_that_asks_for_less_has_less(place: Workplace) -> None:
    write(
        place.home / "agents/shy.toml",
        'name = "shy"\ndescription = "Looks."\ndeveloper_instructions = "Look."\n'
        'sandbox_mode = "read-only"\n',
    )
    family = Family(agent("shy"), task=[runs("touch made.txt"), says("tried")])
    go(place, family, "-s", "workspace-write")
    assert not (place.cwd / "made.txt").exists()


@needs_sandbox
def test_a_role_reads_nothing_that_is_denied_in_an_added_folder(
    place: Workplace, tmp_path: Path
) -> None:
    write(
        place.home / "agents/shy.toml",
        'name = "shy"\ndescription = "Looks."\ndeveloper_instructions = "Look."\n'
        'sandbox_mode = "read-only"\n',
    )
    write(tmp_path / "more/a.key", "s3cret-5e1f")
    write(tmp_path / "more/plain", "plain")
    reads = runs(f"cat {tmp_path}/more/plain {tmp_path}/more/a.key")
    family = Family(agent("shy"), task=[reads, says("tried")])
    added = ("--add-dir", str(tmp_path / "more"), "--deny", "**/*.key")
    go(place, family, "-s", "workspace-write", *added)
    assert "plain" in family.output("task")
    assert "s3cret" not in family.output("task")


def test_a_child_is_offered_the_tools_of_its_role_and_refused_others(
    place: Workplace,
) -> None:
    write(
        place.home / "agents/reader.md",
        "---\nname: reader\ndescription: Reads.\ntools: Read, Grep\nmodel: sonnet\n---\nRead.\n",
    )
    family = Family(agent("reader"), task=[patches(ADD), says("tried")])
    go(place, family, "-s", "danger-full-access")
    assert offered(family.requests["task"][0]) == {
        "exec_command",
        "write_stdin",
        "view_image",
    }
    assert family.requests["task"][0].body["model"] == "gpt-5.5"
    assert (
        "the role 'reader' of this agent does not allow `apply_patch`"
        in family.output("task")
    )
    assert not (place.cwd / "new.txt").exists()


@pytest.mark.parametrize("tools", ["mcp__fails__echo", "mcp__fails", "mcp__banner"])
def test_a_role_may_have_some_tools_of_servers(place: Workplace, tools: str) -> None:
    write(
        place.home / "agents/r.md",
        f"---\nname: r\ndescription: R.\ntools: {tools}\n---\nWork.\n",
    )
    called = [
        "mcp__fails__echo",
        "mcp__fails__fails",
        "mcp__banner__echo",
        "read_mcp_resource",
    ]
    calls = [
        ev_function_call(f"c{n}", name, {}, index=n) for n, name in enumerate(called)
    ]
    events = [event for call in calls for event in call]
    family = Family(agent("r"), task=[[*events, ev_completed()], says("tried")])
    with family.server() as server:
        place.configure(server)
        add_servers(place, "fails", "banner")
        assert place.rerun("go").code == 0
    first, last = family.requests["task"]
    allowed = [name for name in called if name.startswith(tools)]
    assert [name for name in called if name in offered(first)] == allowed
    for n, name in enumerate(called):
        is_refused = f"does not allow `{name}`" in str(last.output(f"c{n}"))
        is_known = name != "read_mcp_resource" or "failed to parse" not in last.output(
            f"c{n}"
        )
        assert is_refused == (name not in allowed and is_known)


def test_the_limits_of_an_agent_hold_for_those_that_it_starts(place: Workplace) -> None:
    write(
        place.home / "agents/lead.md",
        "---\nname: lead\ndescription: Leads.\ntools: Read, Task\n---\nLead.\n",
    )

    def wait(request: RecordedRequest) -> Reply:
        targets = [json.loads(request.output("s0"))["agent_id"]]
        call = ev_function_call(
            "w", "wait_agent", {"targets": targets}, namespace=NAMESPACE
        )
        return [*call, ev_completed()]

    family = Family(
        agent("lead"),
        task=[
            spawns({"message": "inner"}),
            wait,
            says("led"),
        ],
        inner=[patches(ADD), says("tried")],
    )
    go(place, family, "-s", "danger-full-access", "-c", "agents.max_depth=2")
    assert (
        "the role 'lead' of this agent does not allow `apply_patch`"
        in family.output("inner")
    )
    assert "apply_patch" not in offered(family.requests["inner"][0])
    assert not (place.cwd / "new.txt").exists()


def test_roles_of_a_project_are_used_only_if_it_is_trusted(place: Workplace) -> None:
    write(place.cwd / ".git" / "HEAD", "ref: refs/heads/main\n")
    write(
        place.cwd / ".claude/agents/mine.md",
        "---\nname: mine\ndescription: Of the project.\n---\nBe mine.\n",
    )
    family = Family(agent("mine"))
    go(place, family)
    assert family.spawned() == "unknown agent_type 'mine'"
    assert "Of the project." not in json.dumps(family.requests["parent"][0].body)
    family = Family(agent("mine"), task=[says("fine")])
    go(place, family, "--trust")
    assert "Be mine." in json.dumps(family.requests["task"][0].input)


def test_a_broken_role_is_told_once_and_the_others_work(place: Workplace) -> None:
    broken = write(place.home / "agents/broken.toml", "name = \n")
    write(
        place.home / "agents/good.md",
        "---\nname: good\ndescription: Good.\n---\nBe good.\n",
    )
    family = Family(agent("good"), task=[says("fine")])
    outcome = go(place, family)
    told = [item["message"] for item in outcome.items if item["type"] == "error"]
    assert [text for text in told if "role" in text] == [
        f"Ignoring malformed agent role definition: {broken}:1:8: Invalid value in `name = …`."
    ]


def test_a_list_of_roles_that_is_too_long_is_cut(place: Workplace) -> None:
    for n in range(100):
        text = f"---\nname: r{n:02}\ndescription: {'x' * 1000}\n---\nBe it.\n"
        write(place.home / f"agents/r{n:02}.md", text)
    family = Family(agent("r99"), task=[says("fine")])
    outcome = go(place, family)
    told = [item["message"] for item in outcome.items if item["type"] == "error"]
    assert any(text.endswith("agent roles: the list is too long.") for text in told)
    assert len(json.dumps(family.requests["parent"][0].body["tools"])) < 80_000
    assert "Be it." in json.dumps(family.requests["task"][0].input)


def test_children_that_patch_one_file_at_once_take_turns(place: Workplace) -> None:
    write(place.cwd / "a.txt", "top\nmiddle\nbottom\n")
    barrier = threading.Barrier(2, timeout=120)

    def patching(line: str) -> Any:
        patch = f"*** Begin Patch\n*** Update File: a.txt\n@@\n-{line}\n+{line}!\n*** End Patch\n"

        def reply(_: RecordedRequest) -> Reply:
            barrier.wait()
            return patches(patch)

        return reply

    family = Family(
        {"message": "first"},
        {"message": "second"},
        first=[patching("top"), says("done")],
        second=[patching("bottom"), says("done")],
    )
    go(place, family, "-s", "workspace-write")
    assert (place.cwd / "a.txt").read_text(
        encoding="utf-8"
    ) == "top!\nmiddle\nbottom!\n"
    for name in ("first", "second"):
        assert family.output(name).startswith("Exit code: 0")


def test_a_parent_that_waits_does_not_keep_its_children_from_patching(
    place: Workplace,
) -> None:
    # The parent waits for the child all the while, and an interrupted child gives up its turn.
    held = threading.Event()
    script = "*** Begin Patch\n*** Add File: {}.txt\n+x\n*** End Patch\n"

    def wait(_: RecordedRequest) -> Reply:
        held.wait(120)
        return patches(script.format("second"))

    def release(_: RecordedRequest) -> Reply:
        held.set()
        return says("done")

    family = Family(
        {"message": "first"},
        {"message": "second"},
        first=[patches(script.format("first")), release],
        second=[wait, says("done")],
    )
    go(place, family, "-s", "workspace-write")
    assert sorted(path.name for path in place.cwd.glob("*.txt")) == [
        "first.txt",
        "second.txt",
    ]


@pytest.fixture
def apart(place: Workplace) -> Workplace:
    repository(place)
    write(
        place.home / "agents/apart.md",
        "---\nname: apart\ndescription: Apart.\nisolation: worktree\n---\nWork.\n",
    )
    return place


def test_a_child_works_in_a_tree_of_its_own_that_is_kept_with_its_changes(
    apart: Workplace,
) -> None:
    family = Family(agent("apart"), task=[patches(ADD), says("added")])
    outcome = go(apart, family, "-s", "workspace-write")
    (tree,) = trees(apart)
    assert (tree / "new.txt").read_text(encoding="utf-8") == "new\n"
    assert not (apart.cwd / "new.txt").exists()
    answer = f"(The changes are in {tree}, a git worktree, and not in {apart.cwd}.)"
    assert answer in str(family.requests["parent"][-1].output("w1"))
    assert f"The git worktree {tree} has changes and is kept." in outcome.err
    assert str(tree) in json.dumps(family.requests["task"][0].input)


def test_a_tree_with_a_repository_inside_is_kept_and_the_parent_is_told(
    apart: Workplace,
) -> None:
    family = Family(
        agent("apart"), task=[runs("git init -q n; echo precious > n/y"), says("made")]
    )
    outcome = go(apart, family, "-s", "danger-full-access")
    (tree,) = trees(apart)
    assert (tree / "n" / "y").read_text(encoding="utf-8") == "precious\n"
    answer = f"(The changes are in {tree}, a git worktree, and not in {apart.cwd}.)"
    assert answer in str(family.requests["parent"][-1].output("w1"))
    assert (
        f"The git worktree {tree} has a repository of its own in n and is kept."
        in outcome.err
    )


def test_a_parent_that_closes_a_child_at_work_is_told_where_its_changes_are(
    apart: Workplace,
) -> None:
    hold = Pause()

    def close(_: RecordedRequest, ids: Sequence[str]) -> Any:
        assert hold.reached.wait(120)
        return calls("close_agent", target=ids[0])

    spawn = calls("spawn_agent", "s0", agent_type="apart", message="task")
    with AgentServer(
        [spawn, close, says("done")], [patches(ADD), [hold, *says("late")]]
    ) as server:
        assert apart.run(server, "-s", "workspace-write", "go").code == 0
    (tree,) = trees(apart)
    told = json.loads(server.of_parent()[-1].output("c1"))
    answer = f"(The changes are in {tree}, a git worktree, and not in {apart.cwd}.)"
    assert told == {"previous_status": "running", "worktree": answer}


def test_undo_in_the_tree_of_a_child_says_that_it_takes_back_patches_alone(
    apart: Workplace,
) -> None:
    family = Family(
        agent("apart"), task=[runs("touch made"), patches(ADD), says("added")]
    )
    go(apart, family, "-s", "danger-full-access")
    (tree,) = trees(apart)
    for result in ("Undid patch 1:\nD new.txt\n", ""):
        done = run_codex_py(["undo"], apart.home, tree)
        assert done.stdout.decode().startswith(result)
        assert (
            "A subagent worked here: undo takes back its patches, not what its commands changed.\n"
        ) in done.stderr.decode()


def test_a_child_in_its_own_tree_is_not_led_to_the_repository_of_a_hook(
    apart: Workplace,
) -> None:
    family = Family(
        agent("apart"), task=[runs("env | grep -c ^GIT_INDEX_FILE"), says("counted")]
    )
    with family.server() as server:
        apart.run(server, env={"GIT_INDEX_FILE": ".git/index"})
    assert family.output("task").splitlines()[-1] == "0"


def test_a_tree_without_changes_is_removed(apart: Workplace) -> None:
    family = Family(agent("apart"), task=[runs("cat a.txt"), says("read")])
    go(apart, family, "-s", "danger-full-access")
    assert "one" in family.output("task")
    assert trees(apart) == []


@needs_sandbox
def test_a_child_in_its_own_tree_cannot_write_to_that_of_its_parent(
    apart: Workplace,
) -> None:
    script = f"touch {apart.cwd}/made.txt; touch made.txt && echo own"
    family = Family(agent("apart"), task=[runs(script), says("tried")])
    # The folder of the test lies in one for temporary files.
    go(apart, family, "-s", "workspace-write")
    assert "own" in family.output("task")
    assert not (apart.cwd / "made.txt").exists()


def test_without_a_repository_an_isolated_role_is_refused(place: Workplace) -> None:
    write(
        place.home / "agents/apart.md",
        "---\nname: apart\ndescription: Apart.\nisolation: worktree\n---\nWork.\n",
    )
    family = Family(agent("apart"))
    go(place, family)
    assert family.spawned() == (
        f"collab spawn failed: a worktree needs a git repository, and {place.cwd} is in none"
    )


def test_a_signal_leaves_no_tree_without_changes(apart: Workplace) -> None:
    working = threading.Event()

    def never(_: RecordedRequest) -> Any:
        working.set()
        return runs("sleep 600")

    family = Family(agent("apart"), task=[never, says("x")])
    with family.server() as server:
        apart.configure(server)
        program = apart.start("-s", "danger-full-access", "go")
        assert working.wait(120)
        assert len(trees(apart)) == 1
        program.send_signal(signal.SIGTERM)
        program.communicate(timeout=120)
    assert trees(apart) == []


def test_after_a_kill_the_repository_works_and_its_tree_can_be_removed(
    apart: Workplace,
) -> None:
    working = threading.Event()

    def never(_: RecordedRequest) -> Any:
        working.set()
        return runs("sleep 600")

    family = Family(agent("apart"), task=[never, says("x")])
    with family.server() as server:
        apart.configure(server)
        program = apart.start("-s", "danger-full-access", "go")
        assert working.wait(120)
        program.kill()
        program.communicate(timeout=120)
    (tree,) = trees(apart)
    for words in (["status"], ["worktree", "remove", str(tree)]):
        subprocess.run(
            ["git", *words], cwd=apart.cwd, env=environment(apart.home), check=True
        )
    assert not tree.exists()


def _as_seen(request: RecordedRequest) -> Any:
    body = request.body
    # Codex puts a note about the other model in front.
    is_told = any("Be strict." in texts_of(item) for item in request.input)
    return body["model"], body["reasoning"]["effort"], is_told


@needs_codex
@pytest.mark.parametrize("declared", [False, True])
def test_codex_gives_a_child_the_same_from_a_role_file(
    place: Workplace, *, declared: bool
) -> None:
    text = (
        'description = "Reviews."\ndeveloper_instructions = "Be strict."\nmodel = "own-model"\n'
        'model_reasoning_effort = "low"\nnickname_candidates = ["Rae"]\n'
    )
    seen: list[Any] = []
    for program in ("ours", "theirs"):
        family = Family(agent("reviewer"), task=[says("fine")])
        with family.server() as server:
            extra = ""
            if declared:
                write(place.home / "roles/r.toml", text)
                extra = '\n[agents.reviewer]\ndescription = "x"\nconfig_file = "roles/r.toml"\n'
            else:
                write(place.home / "agents/r.toml", f'name = "reviewer"\n{text}')
            place.configure(server)
            config = place.home / "config.toml"
            with config.open("a", encoding="utf-8") as file:
                file.write(f"{extra}\n[analytics]\nenabled = false\n")
            if program == "ours":
                assert place.rerun("go").code == 0
            else:
                assert CODEX is not None
                subprocess.run(
                    [CODEX, "exec", "--json", "--skip-git-repo-check", "go"],
                    cwd=place.cwd,
                    env=environment(place.home),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=120,
                    check=True,
                )
        seen.append(
            (
                _as_seen(family.requests["task"][0]),
                json.loads(family.spawned())["nickname"],
            )
        )
    assert seen[0] == seen[1] == (("own-model", "low", True), "Rae")
