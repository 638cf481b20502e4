"""Links to files give the model the text that is not saved."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import ToolError
from codex_py.filesystem.denials import denials_of
from codex_py.frontends.acp.mentions import unsaved_texts
from codex_py.protocol.file_rules import NO_RULES
from codex_py.testing import ev_completed, ev_message
from tests.support.editor import always, begin_prompt, editor, new_session, prompt
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
CAN_READ = {"fs": {"readTextFile": True}}


class Buffers:
    """The open files of an editor, by name."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.asked: list[str] = []

    def __call__(self, method: str, params: Any) -> Any:
        assert method == "fs/read_text_file"
        name = Path(params["path"]).stem
        self.asked.append(name)
        if name not in self.texts:
            return {"error": {"code": -32002, "message": "not open"}}
        return {"result": {"content": self.texts[name]}}

    async def read(self, path: Path) -> str | None:
        self.asked.append(path.stem)
        return self.texts.get(path.stem)

    async def show(self, texts: Mapping[Path, str]) -> Sequence[str]:
        raise AssertionError(texts)


def link(path: Path, lines: str = "") -> dict[str, str]:
    uri = f"{path.as_uri()}{lines}"
    return {"type": "resource_link", "name": path.name, "uri": uri}


def sent(server: ScriptedServer) -> str:
    messages = [
        each for each in server.requests[-1].input if each.get("role") == "user"
    ]
    return "".join(part["text"] for part in messages[-1]["content"])


def linked(
    place: Workplace,
    answer: Any,
    *parts: Any,
    options: Sequence[str] = (),
    can: Mapping[str, Any] = CAN_READ,
) -> str:
    """The prompt as the model got it."""
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        with editor(place, *options, answer=answer, capabilities=can) as client:
            assert prompt(client, new_session(client, place), *parts) == "end_turn"
        return sent(server)


def test_the_model_gets_the_text_that_is_not_saved(place: Workplace) -> None:
    changed = place.cwd / "changed.txt"
    saved = place.cwd / "saved.txt"
    image = place.cwd / "image.png"
    changed.write_text("old\n", encoding="utf-8")
    saved.write_bytes(b"same\r\n")
    image.write_bytes(b"\x89PNG\0")
    buffers = Buffers(changed="new\n", saved="same\n", fresh="only here\n")
    parts = [
        "Look at ",
        link(changed, "#L1-2"),
        link(saved),
        link(image),
        link(place.cwd / "fresh.txt"),
        link(place.cwd),
        {"type": "resource_link", "name": "x", "uri": "https://a.example/x"},
    ]
    text = linked(place, buffers, *parts)
    assert text.startswith(f"Look at [@changed.txt]({changed}#L1-2)")
    assert text.count("<context") == 2
    assert f'<context ref="{changed}">\nnew\n\n</context>' in text
    assert "only here" in text
    assert sorted(buffers.asked) == ["changed", "fresh", "saved"]


def test_a_client_without_files_is_not_asked(place: Workplace) -> None:
    file = place.cwd / "a.txt"
    file.write_text("old\n", encoding="utf-8")
    buffers = Buffers(a="new\n")
    assert "context" not in linked(place, buffers, link(file), can={})
    assert buffers.asked == []


@pytest.mark.parametrize("exists", [True, False])
def test_what_is_denied_is_not_asked_for(place: Workplace, exists: bool) -> None:
    file = place.cwd / "a.txt"
    if exists:
        file.write_text("old\n", encoding="utf-8")
    buffers = Buffers(a="new\n")
    options = ("--deny", "a.txt", "-s", "danger-full-access")
    assert "new" not in linked(place, buffers, link(file), options=options)
    assert buffers.asked == []


def test_a_cancel_ends_the_wait_for_the_text(place: Workplace) -> None:
    file = place.cwd / "a.txt"
    file.write_text("old\n", encoding="utf-8")
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        with editor(place, answer=always(None), capabilities=CAN_READ) as client:
            session = new_session(client, place)
            number = begin_prompt(client, session, link(file))
            while not client.asked:
                client.step()
            client.notify("session/cancel", sessionId=session)
            assert client.result(number)["stopReason"] == "cancelled"
    assert server.requests == []


def passages(buffers: Any, *paths: Path) -> Sequence[str]:
    refuses = denials_of(NO_RULES).refuses
    return asyncio.run(unsaved_texts(list(map(str, paths)), buffers, refuses))


def test_of_a_long_text_the_changes_are_sent(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    lines = [f"line {number}\n" for number in range(20_000)]
    file.write_text("".join(lines), encoding="utf-8")
    lines[10_000] = "changed\n"
    (passage,) = passages(Buffers(a="".join(lines)), file)
    assert "+changed" in passage
    assert "-line 10000\n" in passage
    assert len(passage) < 1_000


def test_every_passage_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old\n", encoding="utf-8")
    for buffers in (Buffers(a="x\n" * 200_000), Buffers(b="x" * 300_000)):
        (passage,) = passages(buffers, file, tmp_path / "b.txt")
        assert len(passage) < 51_000


def test_an_editor_that_fails_is_told(tmp_path: Path) -> None:
    class Failing(Buffers):
        async def read(self, path: Path) -> str | None:
            raise ToolError("the editor did not answer", code="EditorFailed")

    file = tmp_path / "a.txt"
    file.write_text("old\n", encoding="utf-8")
    (passage,) = passages(Failing(), file)
    assert passage == (
        f"Note: {file} may have text that is not saved: the editor did not answer."
    )


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_a_link_that_names_no_file_is_only_a_link(tmp_path: Path, name: str) -> None:
    assert passages(Buffers(), tmp_path / name) == []
