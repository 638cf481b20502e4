"""Searches for files. Answers, errors and notifications are those of Codex 0.171, scores are ours.

Tests `frontends/app_server/machine/file_search.py`.
"""

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from codex_py.app.json_rpc import JsonRpc, RpcError
from codex_py.command_line.arguments import Arguments
from codex_py.frontends.app_server.machine import file_search, search_params
from codex_py.frontends.app_server.machine.file_search import FileSearchMethods
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.turn_items.items import Fields
from tests.support.app_server import AppServer, Message
from tests.support.codex import answers_of_app_server, needs_codex
from tests.support.program import Workplace, environment

FILES = (
    "src/main.py",
    "src/sub/Main.txt",
    "ignored/main.c",
    ".hidden/main.h",
    "README",
)


@pytest.fixture
def tree(place: Workplace) -> Path:
    for name in FILES:
        (place.cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (place.cwd / name).touch()
    (place.cwd / ".gitignore").write_text("ignored/\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", place.cwd], check=True)
    return place.cwd


class Client:
    """A client of the methods in this process. `told`: the notifications, in order."""

    def __init__(self, place: Workplace) -> None:
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self.completed = asyncio.Event()
        arguments = Arguments(cd=str(place.cwd))
        server = Server(cast("JsonRpc", self), arguments, environment(place.home))
        self.search = FileSearchMethods(server, OpenThreads(server))

    def notify(
        self,
        method: str,
        fields: Mapping[str, Any],
        *,
        is_live: bool,
    ) -> None:
        """Take a notification in place of the connection."""
        assert is_live
        self.told.append((method, fields))
        if method == "fuzzyFileSearch/sessionCompleted":
            self.completed.set()

    async def find(
        self,
        query: str,
        *roots: Path | str,
        token: str | None = None,
    ) -> Fields:
        names = [str(root) for root in roots]
        asked = search_params.Search(query=query, roots=names, cancellation_token=token)
        return await self.search.search(asked)

    async def start(self, session_id: str, *roots: Path) -> Fields:
        names = [str(root) for root in roots]
        return await self.search.start(
            search_params.StartSearch(session_id=session_id, roots=names)
        )

    async def update(self, session_id: str, query: str) -> Fields:
        return await self.search.update(
            search_params.UpdateSearch(session_id=session_id, query=query)
        )


def paths(answer: Mapping[str, Any]) -> Sequence[str]:
    return [each["path"] for each in answer["files"]]


def test_files_and_folders_are_found_by_a_few_letters(
    place: Workplace, tree: Path
) -> None:
    with AppServer(place.home, place.cwd) as server:
        asked = {"query": "main", "roots": [str(tree)], "cancellationToken": None}
        files = server.ask("fuzzyFileSearch", asked)["files"]
        score = files[0]["score"]
        assert files[0] == {
            "root": str(tree),
            "path": "src/main.py",
            "match_type": "file",
            "file_name": "main.py",
            "score": score,
            "indices": [4, 5, 6, 7],
        }
        found = [each["path"] for each in files]
        assert found == ["src/main.py", ".hidden/main.h", "src/sub/Main.txt"]
        folders = server.ask("fuzzyFileSearch", {"query": "sub", "roots": ["src"]})
        assert (folders["files"][0]["path"], folders["files"][0]["match_type"]) == (
            "sub",
            "directory",
        )
        assert folders["files"][0]["root"] == "src"


def test_a_session_tells_what_its_latest_query_finds(
    place: Workplace, tree: Path
) -> None:
    with AppServer(place.home, place.cwd) as server:
        session = {"sessionId": "s"}
        start = {**session, "roots": [str(tree)]}
        assert server.ask("fuzzyFileSearch/sessionStart", start) == {}
        first = server.told("fuzzyFileSearch/sessionUpdated")
        assert first == {"sessionId": "s", "query": "", "files": []}
        assert server.told("fuzzyFileSearch/sessionCompleted") == session
        update = {**session, "query": "mai"}
        assert server.ask("fuzzyFileSearch/sessionUpdate", update) == {}
        told = server.told("fuzzyFileSearch/sessionUpdated", query="mai")
        assert len(told["files"]) == 3
        assert server.told("fuzzyFileSearch/sessionCompleted") == session
        assert server.ask("fuzzyFileSearch/sessionStop", session) == {}
        assert server.ask("fuzzyFileSearch/sessionStop", session) == {}
        error = server.refused("fuzzyFileSearch/sessionUpdate", update)
        text = "fuzzy file search session not found: s"
        assert error == {"code": -32600, "message": text}


@needs_codex
def test_codex_finds_the_same_files(place: Workplace, tree: Path) -> None:
    questions: list[tuple[str, dict[str, Any]]] = [
        *(
            ("fuzzyFileSearch", {"query": query, "roots": [str(tree)]})
            for query in ("main", "MAIN", "mnpy", "src/ma", "readme", "zzzz", "", "sub")
        ),
        ("fuzzyFileSearch", {"query": "main", "roots": []}),
        ("fuzzyFileSearch", {"query": "main", "roots": ["src"]}),
        ("fuzzyFileSearch", {"query": "main", "roots": [str(tree / "none")]}),
        ("fuzzyFileSearch", {"query": "main"}),
        ("fuzzyFileSearch/sessionStart", {"sessionId": "", "roots": [str(tree)]}),
        ("fuzzyFileSearch/sessionStart", {"sessionId": "s", "roots": []}),
        ("fuzzyFileSearch/sessionUpdate", {"sessionId": "s", "query": "main"}),
        ("fuzzyFileSearch/sessionStop", {"sessionId": "s"}),
    ]
    answers = answers_of_app_server(environment(place.home), place.cwd, *questions)
    with AppServer(place.home, place.cwd) as server:
        for (method, asked), answer in zip(questions, answers, strict=True):
            found = server.answered(server.send(method, asked))
            assert _compared(found) == _compared(answer), asked


def _compared(answer: Message) -> Any:
    """What is the same in both programs: all but the scores, what is below `.git`, and the words of a wrong request."""
    if "error" in answer:
        text = answer["error"]["message"]
        return "invalid" if text.startswith("Invalid request") else answer["error"]
    if "files" not in answer["result"]:
        return answer["result"]
    found = [
        {**each, "score": 0}
        for each in answer["result"]["files"]
        if not each["path"].startswith(".git/")
    ]
    return sorted(found, key=lambda each: each["path"])


def test_several_roots_are_one_list(place: Workplace, tree: Path) -> None:
    async def run() -> None:
        client = Client(place)
        found = await client.find("main", tree / "src", tree / ".hidden", tree / "src")
        assert paths(found) == ["main.h", "main.py", "sub/Main.txt"]
        none = ("a\0b", "n" * 300, tree / "README")
        assert (await client.find("main", *none))["files"] == []
        assert (await client.find("../work", tree / "src"))["files"] == []
        with pytest.raises(RpcError, match="more than 32 roots"):
            await client.find("main", *(tree / str(n) for n in range(33)))

    asyncio.run(run())


def test_what_is_denied_or_gone_is_not_found(place: Workplace, tree: Path) -> None:
    text = '[protection]\ndeny = ["**/.hidden"]\n'
    (place.home / "config.toml").write_text(text, encoding="utf-8")
    subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
    (tree / "src/main.py").unlink()

    async def run() -> None:
        found = await Client(place).find("main", tree)
        assert paths(found) == ["src/sub/Main.txt"]

    asyncio.run(run())


def test_a_search_ends_the_one_with_the_same_token(
    place: Workplace, tree: Path
) -> None:
    async def run() -> None:
        client = Client(place)
        first, second, other = await asyncio.gather(
            client.find("main", tree, token="a"),
            client.find("README", tree, token="a"),
            client.find("README", tree, token="b"),
        )
        assert paths(first) == []
        assert paths(second) == paths(other) == ["README"]

    asyncio.run(run())


def test_a_query_ends_the_search_for_the_one_before(
    place: Workplace, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_search, "_MAX_SESSIONS", 1)

    async def run() -> None:
        client = Client(place)
        await client.start("s", tree)
        await client.start("s", tree / "src")
        with pytest.raises(RpcError, match="more than 1 sessions"):
            await client.start("t", tree)
        await client.update("s", "READ")
        await client.update("s", "main")
        async with asyncio.timeout(30):
            await client.completed.wait()
        (updated, found), completed = client.told
        assert (updated, found["query"]) == ("fuzzyFileSearch/sessionUpdated", "main")
        assert paths(found) == ["main.py", "sub/Main.txt"]
        assert completed == ("fuzzyFileSearch/sessionCompleted", {"sessionId": "s"})
        await client.update("s", "sub")
        await client.search.aclose()
        assert len(client.told) == 2

    asyncio.run(run())
