"""Patches change what the editor shows, also where it is not saved.

Also tests `tools/patch/unsaved.py`.
"""

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.errors import ToolError
from codex_py.frontends.acp.files import EditorFiles
from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.support.editor import always, begin_prompt, editor, new_session, prompt
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
FREE = ("-s", "danger-full-access")
CAN = {"fs": {"readTextFile": True, "writeTextFile": True}}
FAILS = {"error": {"code": -32603, "message": "no luck"}}


def patches(*lines: str, call_id: str = "call_1") -> list[Any]:
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    return [*ev_custom_tool_call(call_id, "apply_patch", text), ev_completed()]


def runs(command: str, call_id: str) -> list[Any]:
    call = ev_function_call(call_id, "exec_command", {"cmd": command})
    return [*call, ev_completed()]


class Buffers:
    """The open files of an editor, which saves what it is told to write."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.asked: list[tuple[str, str]] = []

    def __call__(self, method: str, params: Any) -> Any:
        if method == "session/request_permission":
            outcome = {"outcome": "selected", "optionId": "approved"}
            return {"result": {"outcome": outcome}}
        path = Path(params["path"])
        name = path.name.partition(".")[0]
        self.asked.append((method, path.name))
        if method == "fs/write_text_file":
            self.texts[name] = params["content"]
            path.write_text(params["content"], encoding="utf-8")
            return {"result": {}}
        if name not in self.texts:
            return {"error": {"code": -32002, "message": "not open"}}
        return {"result": {"content": self.texts[name]}}


def told(server: ScriptedServer) -> str:
    """The output of the last call, as the model got it."""
    return json.dumps(server.requests[-1].input[-1])


EDIT = ("*** Update File: a.txt", "@@", " one", "-two", "+TWO")


def undone(place: Workplace) -> None:
    done = run_codex_py(["undo"], place.home, place.cwd)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", ["patch", "command"])
def test_unsaved_text_is_patched_and_undo_brings_it_back(
    place: Workplace, first: str
) -> None:
    file = place.cwd / "a.txt"
    file.write_text("one\nthree\n", encoding="utf-8")
    buffers = Buffers(a="one\ntwo\nthree\n")
    script = [patches(*EDIT), DONE]
    if first == "command":
        script.insert(0, runs("touch made", "call_0"))
    with ScriptedServer(script) as server:
        place.configure(server)
        with editor(place, *FREE, answer=buffers, capabilities=CAN) as client:
            assert prompt(client, new_session(client, place)) == "end_turn"
        diff = list(client.calls().values())[-1]["content"][0]
        assert (diff["oldText"], diff["newText"]) == (
            "one\ntwo\nthree\n",
            "one\nTWO\nthree\n",
        )
    assert file.read_text(encoding="utf-8") == buffers.texts["a"] == "one\nTWO\nthree\n"
    undone(place)
    assert file.read_text(encoding="utf-8") == "one\ntwo\nthree\n"


def test_an_edit_between_two_patches_of_a_turn_survives_the_undo(
    place: Workplace,
) -> None:
    file = place.cwd / "a.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    buffers = Buffers(a="one\ntwo\n")

    def second(_: Any) -> list[Any]:
        buffers.texts["a"] += "mine\n"
        return patches("*** Update File: a.txt", "@@", " mine", "+more", call_id="c_2")

    with ScriptedServer([patches(*EDIT), second, DONE]) as server:
        place.configure(server)
        with editor(place, *FREE, answer=buffers, capabilities=CAN) as client:
            assert prompt(client, new_session(client, place)) == "end_turn"
    assert file.read_text(encoding="utf-8") == "one\nTWO\nmine\nmore\n"
    undone(place)
    assert file.read_text(encoding="utf-8") == "one\nTWO\nmine\n"


def test_line_ends_and_marks_of_a_file_stay(place: Workplace) -> None:
    file = place.cwd / "a.txt"
    file.write_bytes("\ufeffone\r\ntwo\r\n".encode())
    buffers = Buffers(a="one\ntwo\n")
    with ScriptedServer(
        [patches("*** Update File: a.txt", "@@", "-two", "+TWO"), DONE]
    ) as server:
        place.configure(server)
        with editor(place, *FREE, answer=buffers, capabilities=CAN) as client:
            prompt(client, new_session(client, place))
            assert client.call()["status"] == "completed"
    assert file.read_bytes() == "\ufeffone\r\nTWO\r\n".encode()


@pytest.mark.parametrize(
    "contents", [b"one\ntwo\n\0\n", b"one\ntwo\n\xff\n"], ids=["binary", "latin"]
)
def test_the_editor_is_not_asked_about_what_is_no_text(
    place: Workplace, contents: bytes
) -> None:
    file = place.cwd / "a.txt"
    file.write_bytes(contents)
    buffers = Buffers(a="one\nelse\n")
    with ScriptedServer([patches(*EDIT), DONE]) as server:
        place.configure(server)
        with editor(place, *FREE, answer=buffers, capabilities=CAN) as client:
            prompt(client, new_session(client, place))
    assert file.read_bytes() == contents.replace(b"two", b"TWO")
    assert buffers.asked == []


def test_a_file_that_the_editor_does_not_know_is_read_from_disk(
    place: Workplace,
) -> None:
    file = place.cwd / "a.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    buffers = Buffers()
    with ScriptedServer([patches(*EDIT), DONE]) as server:
        place.configure(server)
        with editor(place, *FREE, answer=buffers, capabilities=CAN) as client:
            prompt(client, new_session(client, place))
    assert file.read_text(encoding="utf-8") == "one\nTWO\n"
    assert buffers.asked == [
        ("fs/read_text_file", "a.txt"),
        ("fs/write_text_file", "a.txt"),
    ]


@pytest.mark.parametrize("can", [{}, {"fs": {"readTextFile": "yes"}}, {"fs": 1}])
def test_an_editor_that_offers_no_files_is_not_asked(
    place: Workplace, can: dict[str, Any]
) -> None:
    (place.cwd / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    buffers = Buffers(a="other\n")
    with ScriptedServer([patches(*EDIT), DONE]) as server:
        place.configure(server)
        with editor(place, *FREE, answer=buffers, capabilities=can) as client:
            prompt(client, new_session(client, place))
    assert buffers.asked == []
    assert (place.cwd / "a.txt").read_text(encoding="utf-8") == "one\nTWO\n"


@pytest.mark.parametrize("answer", [FAILS, {"result": {}}, {"result": {"content": 3}}])
def test_an_editor_that_fails_is_one_error_of_the_call(
    place: Workplace, answer: Any
) -> None:
    (place.cwd / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    with ScriptedServer([patches(*EDIT), DONE]) as server:
        place.configure(server)
        with editor(place, *FREE, answer=always(answer), capabilities=CAN) as client:
            assert prompt(client, new_session(client, place)) == "end_turn"
        assert client.call()["status"] == "failed"
        assert "the editor" in told(server)
    assert (place.cwd / "a.txt").read_text(encoding="utf-8") == "one\ntwo\n"


def test_a_cancel_ends_the_wait_for_an_editor_that_never_answers(
    place: Workplace,
) -> None:
    (place.cwd / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    with ScriptedServer([patches(*EDIT), DONE]) as server:
        place.configure(server)
        with editor(place, *FREE, answer=always(None), capabilities=CAN) as client:
            session = new_session(client, place)
            number = begin_prompt(client, session)
            while not client.asked:
                client.step()
            client.notify("session/cancel", sessionId=session)
            assert client.result(number)["stopReason"] == "cancelled"
            assert prompt(client, session) == "end_turn"
    assert (place.cwd / "a.txt").read_text(encoding="utf-8") == "one\ntwo\n"


@pytest.mark.parametrize("how", ["denied", "read-only", "rejected"])
def test_rules_hold_as_for_the_disk(place: Workplace, how: str) -> None:
    file = place.cwd / "a.txt"
    file.write_text("one\nthree\n", encoding="utf-8")
    buffers = Buffers(a="one\ntwo\nthree\n")
    options = {
        "denied": ("-s", "workspace-write", "-a", "never", "--deny", "a.txt"),
        "read-only": ("-s", "read-only", "-a", "never"),
        "rejected": ("-s", "workspace-write", "-a", "untrusted"),
    }

    def answer(method: str, params: Any) -> Any:
        if method == "session/request_permission":
            outcome = {"outcome": "selected", "optionId": "denied"}
            return {"result": {"outcome": outcome}}
        return buffers(method, params)

    with ScriptedServer([patches(*EDIT), DONE]) as server:
        place.configure(server)
        with editor(place, *options[how], answer=answer, capabilities=CAN) as client:
            prompt(client, new_session(client, place))
            assert client.call()["status"] == "failed"
    # The unsaved text is not saved either.
    assert file.read_text(encoding="utf-8") == "one\nthree\n"
    methods = [method for method, _ in buffers.asked]
    if how == "denied":
        assert methods == []
    else:
        assert methods == ["fs/read_text_file"]


def test_an_editor_that_does_not_take_the_text_is_told_to_the_model(
    place: Workplace,
) -> None:
    (place.cwd / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    with ScriptedServer([patches(*EDIT), DONE]) as server:
        place.configure(server)
        can = {"fs": {"writeTextFile": True}}
        with editor(place, *FREE, answer=always(FAILS), capabilities=can) as client:
            prompt(client, new_session(client, place))
            assert client.call()["status"] == "completed"
        assert "the editor did not take its text: no luck" in told(server)
    assert (place.cwd / "a.txt").read_text(encoding="utf-8") == "one\nTWO\n"


class SilentRpc:
    """A client that never answers, or knows no file."""

    def __init__(self, error: RpcError | None = None) -> None:
        self.error = error

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        if self.error is not None:
            raise self.error
        await asyncio.Event().wait()


def files_of(rpc: SilentRpc, folder: Path) -> EditorFiles:
    return EditorFiles(
        cast("JsonRpc", rpc),
        can_read=True,
        can_write=True,
        folders=(folder,),
        timeout_s=0.01,
    )


def test_a_wait_for_the_editor_has_a_deadline(tmp_path: Path) -> None:
    async def main() -> None:
        files = files_of(SilentRpc(), tmp_path)
        with pytest.raises(ToolError, match="did not answer within"):
            await files.read(tmp_path / "a")
        (note,) = await files.show({tmp_path / "a": "x"})
        assert "did not answer" in note

    asyncio.run(main())


def test_an_error_about_a_file_elsewhere_means_that_it_is_not_known(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        files = files_of(SilentRpc(RpcError(-32603, "no")), tmp_path / "work")
        assert await files.read(tmp_path / "a") is None

    asyncio.run(main())


def test_an_editor_may_format_what_was_patched(place: Workplace) -> None:
    file = place.cwd / "a.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")

    class Formatting(Buffers):
        def __call__(self, method: str, params: Any) -> Any:
            if method == "fs/write_text_file":
                params = {**params, "content": params["content"].upper()}
            return super().__call__(method, params)

    buffers = Formatting(a="one\ntwo\n")
    with ScriptedServer([patches(*EDIT), DONE]) as server:
        place.configure(server)
        with editor(place, *FREE, answer=buffers, capabilities=CAN) as client:
            prompt(client, new_session(client, place))
        assert "with other contents; read it again" in told(server)
    undone(place)
    assert file.read_text(encoding="utf-8") == "one\ntwo\n"


def test_an_undo_after_a_kill_brings_the_unsaved_text_back(place: Workplace) -> None:
    """The agent is killed when the patch is written, and the editor does not have it yet."""
    file = place.cwd / "a.txt"
    file.write_text("one\nthree\n", encoding="utf-8")
    buffers = Buffers(a="one\ntwo\nthree\n")
    is_written = False

    def answer(method: str, params: Any) -> Any:
        nonlocal is_written
        if method == "fs/write_text_file":
            is_written = True
            return None
        return buffers(method, params)

    def killed() -> None:
        with editor(place, *FREE, answer=answer, capabilities=CAN) as client:
            begin_prompt(client, new_session(client, place))
            while not is_written:
                client.step()
            client.program.kill()

    with ScriptedServer([patches(*EDIT), DONE]) as server:
        place.configure(server)
        # It has not left in order.
        with pytest.raises(AssertionError):
            killed()
    assert file.read_text(encoding="utf-8") == "one\nTWO\nthree\n"
    undone(place)
    assert file.read_text(encoding="utf-8") == "one\ntwo\nthree\n"
