"""The adapter of editors for Codex, `codex-acp`, runs this program in place of Codex. `acpx` is the editor.

`ACP_PEERS` names a folder whose `node_modules` has both, `CODEX_BINARY` the released Codex, which then has to show the
same. Without them, tests are skipped.
"""

import json
import os
import subprocess
import sysconfig
import time
from collections.abc import Callable, Container, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from codex_py.testing import (
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from tests.support.codex import CODEX
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

# Read now: the tests themselves run without the settings of whoever started them.
_BIN = Path(os.environ.get("ACP_PEERS", "/nonexistent"), "node_modules/.bin")
_PROGRAM = Path(sysconfig.get_path("scripts"), "codex-py")
_DEADLINE_S = 120.0
_PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: b.txt\n+b\n*** End Patch"
_OUTSIDE = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
_KINDS = {"agent_thought_chunk", "agent_message_chunk", "tool_call", "tool_call_update"}

pytestmark = pytest.mark.skipif(
    not Path(_BIN, "codex-acp").exists() or not Path(_BIN, "acpx").exists(),
    reason="ACP_PEERS has no acpx or no codex-acp",
)


def response(*items: Sequence[Any]) -> list[Any]:
    return [ev_created(), *(event for item in items for event in item), ev_completed()]


def runs(command: str, **arguments: Any) -> list[Any]:
    call = ev_function_call("c1", "exec_command", {"cmd": command, **arguments})
    return response(call)


DONE = response(ev_message("done"))


class Editor:
    """An editor with the adapter, in a home of its own. The adapter asks for the title of a session in a thread of its
    own, which the server answers from the same script.

    Args:
        script: the replies of the model in each thread.
        program: what the adapter starts as Codex.
    """

    def __init__(
        self, place: Workplace, *script: Any, program: Path = _PROGRAM
    ) -> None:
        self.place = place
        # The released Codex gives items ids of its own.
        self.model = ScriptedServer(
            script, each_thread=True, check_calls=False, check_prefix=False
        )
        self.place.configure(self.model)
        self.env = {
            **environment(place.home),
            "CODEX_PATH": str(program),
            "INITIAL_AGENT_MODE": "agent-full-access",
            "NO_BROWSER": "1",
        }

    def __enter__(self) -> Self:
        self.model.__enter__()
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.model.close()

    def start(self, *words: str, ttl_s: int = 1) -> subprocess.Popen[str]:
        """Start `acpx`. `ttl_s`: how long another process keeps the adapter behind a prompt."""
        options = ["--format", "json", "--ttl", str(ttl_s)]
        if "--deny-all" not in words:
            options.append("--approve-all")
        agent = f"node {_BIN / 'codex-acp'}"
        return subprocess.Popen(
            [_BIN / "acpx", "--agent", agent, *options, *words],
            cwd=self.place.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(self, *words: str, code: int = 0, ttl_s: int = 1) -> "Said":
        return ended(self.start(*words, ttl_s=ttl_s), code)


class Adapter:
    """The adapter itself, without `acpx`: it is asked one thing after another."""

    def __init__(self, editor: Editor) -> None:
        self.said = Said("")
        self._program = subprocess.Popen(
            ["node", _BIN / "codex-acp"],
            cwd=editor.place.cwd,
            env=editor.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self._count = 0

    def __enter__(self) -> Self:
        hello: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": {}}
        self.ask("initialize", **hello)
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._program as program:
            assert program.stdin is not None
            program.stdin.close()
            try:
                program.wait(_DEADLINE_S)
            except BaseException:
                program.kill()
                raise

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        self._count += 1
        request = {"jsonrpc": "2.0", "id": self._count, "method": method}
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        print(
            json.dumps({**request, "params": params}),
            file=self._program.stdin,
            flush=True,
        )
        for line in self._program.stdout:
            message = json.loads(line)
            self.said.messages.append(message)
            if message.get("id") == self._count and "method" not in message:
                assert "result" in message, message
                return message["result"]
        raise AssertionError("the adapter has ended")


class Said:
    """What the adapter told the editor."""

    def __init__(self, output: str) -> None:
        lines = [line for line in output.splitlines() if line.startswith("{")]
        self.messages: list[dict[str, Any]] = [json.loads(line) for line in lines]

    @property
    def updates(self) -> list[dict[str, Any]]:
        return [
            message["params"]["update"]
            for message in self.messages
            if message.get("method") == "session/update"
        ]

    @property
    def text(self) -> str:
        """The text of the agent's messages."""
        return "".join(
            update["content"]["text"]
            for update in self.updates
            if update["sessionUpdate"] == "agent_message_chunk"
        )

    @property
    def stop_reason(self) -> str:
        (reason,) = (
            message["result"]["stopReason"]
            for message in self.messages
            if "stopReason" in message.get("result", ())
        )
        return reason

    def call(self) -> dict[str, Any]:
        """The only tool call, as its updates have left it."""
        call: dict[str, Any] = {}
        for update in self.updates:
            if update["sessionUpdate"] in {"tool_call", "tool_call_update"}:
                call |= update
        return call


def ended(program: subprocess.Popen[str], code: int = 0) -> Said:
    out, err = program.communicate(timeout=_DEADLINE_S)
    assert program.returncode == code, (out, err)
    return Said(out)


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + _DEADLINE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def in_mode(mode: str) -> list[str]:
    return ["exec", "--config-option", f"mode={mode}", "go"]


def without(keys: Container[str], found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in keys}


def permissions(request: Any) -> str:
    """What the model was told last about its sandbox."""
    texts = [
        part["text"]
        for item in request.fields["input"]
        for part in item.get("content", ())
    ]
    return [text for text in texts if "<permissions" in text][-1]


def test_a_prompt_is_answered(place: Workplace) -> None:
    answer = response(
        ev_reasoning("**Looking**"), ev_message("done", index=1, pieces=2)
    )
    with Editor(place, answer) as editor:
        said = editor.run("exec", "hi")
    assert (said.text, said.stop_reason) == ("done", "end_turn")
    kinds = [update["sessionUpdate"] for update in said.updates]
    assert "agent_thought_chunk" in kinds
    (used,) = (
        update for update in said.updates if update["sessionUpdate"] == "usage_update"
    )
    assert used["used"] == 120


def test_a_patch_is_shown_and_applied(place: Workplace) -> None:
    (place.cwd / "a.txt").write_text("one\n", encoding="utf-8")
    call = ev_custom_tool_call("p1", "apply_patch", _PATCH)
    with Editor(place, response(call), DONE) as editor:
        said = editor.run(*in_mode("agent-full-access"))
    shown = said.call()
    assert (shown["kind"], shown["status"]) == ("edit", "completed")
    diffs = [(diff["oldText"], diff["newText"]) for diff in shown["content"]]
    assert diffs == [("one\n", "two\n"), (None, "b\n")]
    assert (place.cwd / "a.txt").read_text(encoding="utf-8") == "two\n"


@pytest.mark.parametrize("answer", ["--approve-all", "--deny-all"])
def test_a_command_is_asked_about(place: Workplace, answer: str) -> None:
    is_allowed = answer == "--approve-all"
    with Editor(place, runs("touch made; echo hi", **_OUTSIDE), DONE) as editor:
        said = editor.run(answer, *in_mode("read-only"), code=0 if is_allowed else 5)
    shown = said.call()
    assert shown["title"] == "touch made; echo hi"
    assert shown["status"] == ("completed" if is_allowed else "failed")
    assert (place.cwd / "made").exists() is is_allowed


def test_a_turn_is_cancelled_and_the_session_goes_on(place: Workplace) -> None:
    command = runs("touch begun; sleep 60; touch late")
    with Editor(place, command, response(ev_message("and on"))) as editor:
        editor.run("sessions", "new")
        prompt = editor.start("prompt", "go", ttl_s=30)
        wait_for(lambda: (place.cwd / "begun").exists() or prompt.poll() is not None)
        editor.run("cancel")
        said = ended(prompt)
        assert said.stop_reason == "cancelled"
        # The released Codex leaves it running, and shows no end.
        assert said.call()["status"] == "failed"
        assert editor.run("prompt", "after", ttl_s=30).text == "and on"
        editor.run("sessions", "close")
    assert not (place.cwd / "late").exists()


def test_a_session_is_resumed_by_another_process(place: Workplace) -> None:
    script = [response(ev_message("first")), response(ev_message("second"))]
    with Editor(place, *script) as editor:
        editor.run("sessions", "new")
        editor.run("prompt", "one")
        wait_for(lambda: editor.run("status").messages[-1]["status"] != "alive")
        said = editor.run("prompt", "two")
    assert said.text == "second"
    methods = [message.get("method") for message in said.messages]
    assert "session/resume" in methods
    # How full the context is, before anything is sent.
    assert said.updates[0]["sessionUpdate"] == "usage_update"
    last = json.dumps(editor.model.requests[-1].fields["input"])
    assert ('"one"' in last, '"first"' in last) == (True, True)


def test_a_session_is_loaded_with_its_history(place: Workplace) -> None:
    (place.cwd / "a.txt").write_text("one\n", encoding="utf-8")
    patch = response(ev_custom_tool_call("p1", "apply_patch", _PATCH))
    with Editor(place, runs("cat a.txt"), patch, DONE) as editor:
        editor.run("exec", "go")
        (file,) = place.rollouts()
        with Adapter(editor) as adapter:
            name = {"sessionId": file.stem[-36:]}
            adapter.ask("session/load", **name, cwd=str(place.cwd), mcpServers=[])
    shown = [
        (update["sessionUpdate"], update.get("title"))
        for update in adapter.said.updates
        if update["sessionUpdate"] in {*_KINDS, "user_message_chunk"}
    ]
    assert shown == [
        ("user_message_chunk", None),
        ("tool_call", f"Read file '{place.cwd / 'a.txt'}'"),
        ("tool_call_update", None),
        ("tool_call", "Editing files"),
        ("agent_message_chunk", None),
    ]


def test_a_plan_is_carried_out_once_it_is_approved(place: Workplace) -> None:
    plan = "<proposed_plan>\n# Plan\n\n- a\n</proposed_plan>"
    answer = response(ev_message(f"I looked.\n{plan}", pieces=4))
    with Editor(place, answer, DONE) as editor:
        editor.run("sessions", "new")
        editor.run("prompt", "/plan", ttl_s=60)
        said = editor.run("--approve-all", "prompt", "do it", ttl_s=60)
        editor.run("sessions", "close")
    assert said.text == "I looked.\n# Plan\n\n- a\ndone"
    asked = [
        message["params"]["toolCall"]["title"]
        for message in said.messages
        if message.get("method") == "session/request_permission"
    ]
    assert asked == ["Implement this plan?"]


def test_the_editor_chooses_the_model_and_its_effort(place: Workplace) -> None:
    with Editor(place, DONE) as editor:
        chosen = ["model=gpt-5.6-sol", "reasoning_effort=high"]
        options = [word for each in chosen for word in ("--config-option", each)]
        said = editor.run("exec", *options, "go")
    assert said.text == "done"
    fields = editor.model.requests[0].fields
    assert (fields["model"], fields["reasoning"]["effort"]) == ("gpt-5.6-sol", "high")


def test_the_editor_chooses_the_mode(place: Workplace) -> None:
    modes = {
        "read-only": "`read-only`",
        "agent": "`workspace-write`",
        "agent-full-access": "`danger-full-access`",
    }
    with Editor(place, *[DONE] * 3) as editor, Adapter(editor) as adapter:
        session = adapter.ask("session/new", cwd=str(place.cwd), mcpServers=[])
        name = {"sessionId": session["sessionId"]}
        for mode in modes:
            adapter.ask("session/set_mode", **name, modeId=mode)
            prompt = [{"type": "text", "text": f"in {mode}"}]
            answer = adapter.ask("session/prompt", **name, prompt=prompt)
            assert answer["stopReason"] == "end_turn"
        adapter.ask("session/close", **name)
    told = {
        mode: permissions(request)
        for request in editor.model.requests
        for mode in modes
        if f'"in {mode}"' in json.dumps(request.fields["input"][-1])
    }
    assert [modes[mode] in told[mode] for mode in modes] == [True] * 3


def test_a_session_has_the_skills_of_another_folder(
    place: Workplace, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    skill = other / ".agents/skills/tidy/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(
        "---\nname: tidy\ndescription: Tidies up.\n---\nTidy up.\n", "utf-8"
    )
    folders = {"cwd": str(place.cwd), "additionalDirectories": [str(other)]}
    with Editor(place, DONE) as editor, Adapter(editor) as adapter:
        session = adapter.ask("session/new", **folders, mcpServers=[])
        name = {"sessionId": session["sessionId"]}
        prompt = [{"type": "text", "text": "$tidy"}]
        adapter.ask("session/prompt", **name, prompt=prompt)
        adapter.ask("session/close", **name)
    assert "Tidy up." in json.dumps(editor.model.requests[0].fields["input"])


def test_the_released_codex_shows_the_same(place: Workplace, tmp_path: Path) -> None:
    """The calls of a turn and its answer, with titles, kinds, contents and ends."""
    if CODEX is None:
        pytest.skip("CODEX_BINARY names no Codex")
    script = [
        runs("cat a.txt"),
        runs("echo hi; exit 3"),
        response(ev_custom_tool_call("p1", "apply_patch", _PATCH)),
        DONE,
    ]

    def shown(program: Path, folder: Path) -> list[Any]:
        folder.mkdir()
        own = Workplace.below(folder)
        (own.cwd / "a.txt").write_text("one\n", encoding="utf-8")
        with Editor(own, *script, program=program) as editor:
            said = editor.run(*in_mode("agent-full-access"))
        updates: list[Any] = []
        for update in said.updates:
            if update["sessionUpdate"] not in _KINDS:
                continue
            # Each program gives items ids of its own, and Codex the name of the tool.
            own_ids = {"toolCallId", "messageId", "name", "_meta", "terminalId"}
            text = json.dumps(update).replace(str(own.cwd), "/work")
            hook = partial(without, own_ids)
            updates.append(json.loads(text, object_hook=hook))
        return [*updates, said.stop_reason]

    assert shown(_PROGRAM, tmp_path / "ours") == shown(Path(CODEX), tmp_path / "codex")
