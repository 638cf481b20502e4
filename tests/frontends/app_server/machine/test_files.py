"""The client's own access to files. Answers, errors and notifications are those of Codex 0.171.

Tests `frontends/app_server/machine/files.py`, `frontends/app_server/machine/file_access.py`,
`frontends/app_server/machine/file_params.py`, `frontends/app_server/machine/held_places.py` and
`frontends/app_server/machine/file_watches.py`.
"""

import asyncio
import base64
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from codex_py.app.json_rpc import INTERNAL_ERROR, INVALID_REQUEST, JsonRpc, RpcError
from codex_py.command_line.arguments import Arguments
from codex_py.filesystem.denials import Denials
from codex_py.filesystem.private import make_record_folder
from codex_py.frontends.app_server.machine import file_access, file_watches
from codex_py.frontends.app_server.machine import file_params as params
from codex_py.frontends.app_server.machine.file_access import FileAccess
from codex_py.frontends.app_server.machine.files import FileMethods
from codex_py.frontends.app_server.params import read_params
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.file_rules import FileRules
from tests.support.app_server import AppServer
from tests.support.codex import answers_of_app_server, needs_codex
from tests.support.program import Workplace, environment

Question = tuple[str, dict[str, Any]]


class Client:
    """A client of the methods in this process.

    Attributes:
        told: the notifications, in order.
        reads: while it is not set, the client reads nothing.
    """

    def __init__(self, place: Workplace) -> None:
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self._came = asyncio.Event()
        arguments = Arguments(cd=str(place.cwd))
        server = Server(cast("JsonRpc", self), arguments, environment(place.home))
        self.files = FileMethods(server, OpenThreads(server))

    def notify(self, method: str, fields: Mapping[str, Any]) -> None:
        """Take a notification in place of the connection."""
        self.told.append((method, fields))
        self._came.set()

    async def drained(self) -> None:
        """Wait, in place of the connection, until the client reads."""
        await self.reads.wait()

    async def ask(self, name: str, **fields: Any) -> Fields:
        method = FileMethods.methods[f"fs/{name}"]
        asked = {key: _plain(value) for key, value in fields.items()}
        return await method.answer(self.files, read_params(method.params, asked))

    async def refused(self, name: str, **fields: Any) -> tuple[int, str]:
        """The code and the text of the error."""
        with pytest.raises(RpcError) as caught:
            await self.ask(name, **fields)
        return caught.value.code, str(caught.value)

    async def changed(self, watch_id: str) -> Sequence[str]:
        """The paths of the next notification for a watch."""
        async with asyncio.timeout(30):
            while True:
                for told in self.told:
                    method, fields = told
                    assert method == "fs/changed"
                    if fields["watchId"] == watch_id:
                        self.told.remove(told)
                        return fields["changedPaths"]
                self._came.clear()
                await self._came.wait()

    async def all_changed(self, watch_id: str, *paths: Path) -> None:
        """Wait until the client was told that these paths have changed, and no others."""
        wanted = set(map(str, paths))
        found: set[str] = set()
        while found != wanted:
            found.update(await self.changed(watch_id))
            assert found <= wanted


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def deny(place: Workplace, *patterns: str) -> None:
    text = f"[protection]\ndeny = {list(patterns)!r}\n"
    (place.home / "config.toml").write_text(text, encoding="utf-8")


def test_the_client_works_with_files(place: Workplace) -> None:
    file = place.cwd / "new" / "a.txt"
    path = {"path": str(file)}
    with AppServer(place.home, place.cwd) as server:
        assert server.ask("fs/createDirectory", {"path": str(file.parent)}) == {}
        written = {**path, "dataBase64": encoded("hello")}
        assert server.ask("fs/writeFile", written) == {}
        assert server.ask("fs/readFile", path) == {"dataBase64": encoded("hello")}
        copy = {"sourcePath": str(file), "destinationPath": str(place.cwd / "b.txt")}
        assert server.ask("fs/copy", copy) == {}
        found = server.ask("fs/readDirectory", {"path": str(file.parent)})
        entry = {"fileName": "a.txt", "isDirectory": False, "isFile": True}
        assert found == {"entries": [entry]}
        facts = server.ask("fs/getMetadata", path)
        assert facts == {
            "isDirectory": False,
            "isFile": True,
            "isSymlink": False,
            "createdAtMs": facts["createdAtMs"],
            "modifiedAtMs": file.stat().st_mtime_ns // 1_000_000,
        }
        watched = {"watchId": "w", "path": str(file.parent)}
        assert server.ask("fs/watch", watched) == {"path": str(file.parent)}
        assert server.ask("fs/remove", path) == {}
        told = server.told("fs/changed")
        assert told == {"watchId": "w", "changedPaths": [str(file)]}
        assert server.ask("fs/unwatch", {"watchId": "w"}) == {}
        error = server.refused("fs/readFile", path)
        text = "No such file or directory (os error 2)"
        assert error == {"code": INTERNAL_ERROR, "message": text}
    assert (place.cwd / "b.txt").read_text(encoding="utf-8") == "hello"


@needs_codex
def test_codex_answers_the_same(place: Workplace, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    theirs = tmp_path / "theirs"
    for top in (ours, theirs):
        (top / "folder" / "inner").mkdir(parents=True)
        (top / "a").write_text("hello", encoding="utf-8")
        (top / "folder" / "inner" / "x").write_text("x", encoding="utf-8")
        (top / "link").symlink_to("a")
        (top / "broken").symlink_to("nowhere")
        (top / "to-folder").symlink_to("folder")
        os.mkfifo(top / "folder" / "pipe")
    answers = answers_of_app_server(
        environment(place.home), place.cwd, *_questions(theirs)
    )
    with AppServer(place.home, place.cwd) as server:
        for (method, fields), answer in zip(_questions(ours), answers, strict=True):
            found = server.answered(server.send(method, fields))
            assert _compared(found) == _compared(answer), (method, fields)
    assert _tree(ours) == _tree(theirs)


def _compared(answer: Mapping[str, Any]) -> Any:
    """What is the same in both programs, of an answer."""
    if "error" in answer:
        text = answer["error"]["message"]
        is_systems = "(os error " in text or text.startswith("fs/copy ")
        return text if is_systems else answer["error"]["code"]
    found = dict(answer["result"])
    found.pop("modifiedAtMs", None)
    if "path" in found:
        found["path"] = Path(found["path"]).name
    if "entries" in found:
        found["entries"].sort(key=str)
    return found


def _questions(top: Path) -> list[Question]:
    def path(name: str, **more: Any) -> dict[str, Any]:
        return {"path": f"{top}/{name}", **more}

    def paths(source: str, destination: str, **more: Any) -> dict[str, Any]:
        both = {"sourcePath": f"{top}/{source}"}
        return {**both, "destinationPath": f"{top}/{destination}", **more}

    return [
        ("fs/readFile", path("a")),
        ("fs/readFile", path("link")),
        ("fs/readFile", path("folder/../a")),
        ("fs/readFile", path("none")),
        ("fs/readFile", path("broken")),
        ("fs/readFile", path("folder")),
        ("fs/readFile", path("folder/pipe")),
        ("fs/readFile", {"path": "a"}),
        ("fs/readFile", {}),
        ("fs/writeFile", path("link", dataBase64=encoded("through"))),
        ("fs/writeFile", path("new", dataBase64="")),
        ("fs/writeFile", path("no/new", dataBase64="")),
        ("fs/writeFile", path("new", dataBase64="!!")),
        ("fs/createDirectory", path("p/q")),
        ("fs/createDirectory", path("p/q", recursive=None)),
        ("fs/createDirectory", path("p/q", recursive=False)),
        ("fs/createDirectory", path("r/s", recursive=False)),
        ("fs/createDirectory", path("a")),
        ("fs/createDirectory", path("a/b")),
        ("fs/getMetadata", path("a")),
        ("fs/getMetadata", path("link")),
        ("fs/getMetadata", path("to-folder")),
        ("fs/getMetadata", path("folder/pipe")),
        ("fs/getMetadata", path("broken")),
        ("fs/readDirectory", path("")),
        ("fs/readDirectory", path("to-folder")),
        ("fs/readDirectory", path("a")),
        ("fs/readDirectory", path("none")),
        ("fs/copy", paths("a", "b")),
        ("fs/copy", paths("link", "link2")),
        ("fs/copy", paths("to-folder", "to-folder2")),
        ("fs/copy", paths("folder", "folder2")),
        ("fs/copy", paths("folder", "folder2", recursive=True)),
        ("fs/copy", paths("folder", "folder2", recursive=True)),
        ("fs/copy", paths("folder", "folder/inner/x2", recursive=True)),
        ("fs/copy", paths("folder", "folder", recursive=True)),
        ("fs/copy", paths("folder", "a", recursive=True)),
        ("fs/copy", paths("folder/pipe", "pipe")),
        ("fs/copy", paths("a", "no/where")),
        ("fs/remove", path("none")),
        ("fs/remove", path("none", force=False)),
        ("fs/remove", path("folder2", recursive=False)),
        ("fs/remove", path("folder2")),
        ("fs/remove", path("to-folder")),
        ("fs/remove", path("p/q", recursive=False)),
        ("fs/remove", path("a/b")),
        ("fs/watch", path("folder", watchId="w")),
        ("fs/watch", path("folder", watchId="w")),
        ("fs/unwatch", {"watchId": "w"}),
        ("fs/unwatch", {"watchId": "w"}),
    ]


def _tree(top: Path) -> list[tuple[str, str, str]]:
    """The names, kinds and contents of everything in a folder."""
    found: list[tuple[str, str, str]] = []
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        content = ""
        if stat.S_ISLNK(mode):
            content = str(path.readlink())
        elif stat.S_ISREG(mode):
            content = path.read_text(encoding="utf-8")
        found.append((str(path.relative_to(top)), stat.filemode(mode), content))
    return found


def test_a_denied_path_is_refused_by_every_method(
    place: Workplace, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret-link").symlink_to("x")
    (elsewhere / "secret-file").touch()
    deny(place, "**/secret*", "/outside")
    (place.cwd / "secret").write_text("x", encoding="utf-8")
    (place.cwd / "secrets").mkdir()
    (place.cwd / "folder").mkdir()
    (place.cwd / "folder" / "secret.txt").write_text("x", encoding="utf-8")
    (place.cwd / "link").symlink_to("secret")
    os.link(place.cwd / "secret", place.cwd / "hard")

    async def run() -> None:
        client = Client(place)
        secret = place.cwd / "secret"
        text = f"`{secret}` is denied by the permissions"
        refusal = (INVALID_REQUEST, text)
        data = encoded("y")
        assert await client.refused("readFile", path=secret) == refusal
        assert await client.refused("getMetadata", path=secret) == refusal
        assert await client.refused("remove", path=secret) == refusal
        watch = {"path": secret, "watchId": "w"}
        assert await client.refused("watch", **watch) == refusal
        write = {"path": secret, "dataBase64": data}
        assert await client.refused("writeFile", **write) == refusal
        new = {"path": place.cwd / "secret2", "dataBase64": data}
        assert "denied" in (await client.refused("writeFile", **new))[1]
        folder = {"path": place.cwd / "secrets"}
        assert "denied" in (await client.refused("readDirectory", **folder))[1]
        assert "denied" in (await client.refused("createDirectory", **folder))[1]
        for name in ("link", "hard"):
            path = place.cwd / name
            assert "denied" in (await client.refused("readFile", path=path))[1]
            change = {"path": path, "dataBase64": data}
            assert "denied" in (await client.refused("writeFile", **change))[1]
        both = {"sourcePath": secret, "destinationPath": place.cwd / "b"}
        assert await client.refused("copy", **both) == refusal
        whole = {
            "sourcePath": place.cwd / "folder",
            "destinationPath": place.cwd / "copied",
            "recursive": True,
        }
        assert "denied" in (await client.refused("copy", **whole))[1]
        inner = await client.refused("remove", path=place.cwd / "folder")
        assert "denied" in inner[1]
        assert not (place.cwd / "copied").exists()
        records = make_record_folder(place.home, "undo-test")
        (records / "copy").write_text("x", encoding="utf-8")
        copy = records / "copy"
        assert "denied" in (await client.refused("readFile", path=copy))[1]
        outside = {
            "sourcePath": elsewhere,
            "destinationPath": place.cwd / "elsewhere",
            "recursive": True,
        }
        assert "denied" in (await client.refused("copy", **outside))[1]

    asyncio.run(run())
    assert not (place.cwd / "elsewhere" / "secret-link").is_symlink()
    assert not (place.cwd / "elsewhere" / "secret-file").exists()
    assert (place.cwd / "secret").read_text(encoding="utf-8") == "x"


class SwappingDenials(Denials):
    """Denials of a folder. After some questions, another folder becomes a link to it, as a command could have it."""

    def __init__(self, secret: Path, folder: Path, questions: int) -> None:
        super().__init__(FileRules(((secret, "deny"),)))
        self._secret = secret
        self._folder = folder
        self._questions = questions

    def refuses(self, path: str | Path, found: os.stat_result | None = None) -> bool:
        is_refused = super().refuses(path, found)
        self._questions -= 1
        if self._questions == 0:
            self._folder.rename(self._folder.with_name("aside"))
            self._folder.symlink_to(self._secret)
        return is_refused


SWAPPED: Mapping[str, Callable[[FileAccess, Path], object]] = {
    "write": lambda access, folder: access.write(folder / "new", b"x"),
    "overwrite": lambda access, folder: access.write(folder / "key", b"x"),
    "make": lambda access, folder: access.make_folder(folder / "m", recursive=False),
    "make all": lambda access, folder: access.make_folder(folder / "m", recursive=True),
    "remove": lambda access, folder: access.remove(
        folder / "key", recursive=True, force=True
    ),
    "remove all": lambda access, folder: access.remove(
        folder, recursive=True, force=True
    ),
    "list": lambda access, folder: access.entries(folder),
    "read": lambda access, folder: access.read(folder / "key"),
    "copy in": lambda access, folder: access.copy(
        folder.with_name("source"), folder, recursive=True
    ),
    "copy out": lambda access, folder: access.copy(
        folder, folder.with_name("copied"), recursive=True
    ),
}


@pytest.mark.parametrize("questions", range(1, 9))
@pytest.mark.parametrize("change", SWAPPED)
def test_a_folder_that_becomes_a_link_leads_to_nothing_denied(
    place: Workplace, tmp_path: Path, change: str, questions: int
) -> None:
    secret = tmp_path / "secret"
    for folder in (secret, place.cwd / "folder", place.cwd / "source"):
        folder.mkdir()
        (folder / "key").write_text(folder.name, encoding="utf-8")
    (place.cwd / "source" / "link").symlink_to("key")
    (secret / "hidden").touch()
    denials = SwappingDenials(secret, place.cwd / "folder", questions)
    access = FileAccess([denials], place.home)
    found: object = None
    with suppress(OSError, RpcError):
        found = SWAPPED[change](access, place.cwd / "folder")
    assert sorted(each.name for each in secret.iterdir()) == ["hidden", "key"]
    assert (secret / "key").read_text(encoding="utf-8") == "secret"
    assert found != b"secret"
    assert "hidden" not in str(found)
    copied = place.cwd / "copied"
    if copied.is_dir() and not copied.is_symlink():
        texts = [each.read_text(encoding="utf-8") for each in copied.iterdir()]
        assert "secret" not in texts


def test_the_denials_of_an_open_thread_hold_too(
    place: Workplace, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "secret").write_text("x", encoding="utf-8")
    path = {"path": str(other / "secret")}
    with AppServer(place.home, place.cwd) as server:
        assert server.ask("fs/readFile", path) == {"dataBase64": encoded("x")}
        server.thread(cwd=str(other), config={"protection.deny": ["secret"]})
        assert "denied" in server.refused("fs/readFile", path)["message"]


def test_files_of_the_kernel_are_not_read(place: Workplace) -> None:
    async def run() -> None:
        client = Client(place)
        code, text = await client.refused("readFile", path="/proc/self/environ")
        assert (code, "procfs" in text) == (INVALID_REQUEST, True)
        device = await client.refused("writeFile", path="/dev/null", dataBase64="")
        assert device[0] == INVALID_REQUEST

    asyncio.run(run())


def test_what_is_too_large_is_refused(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_access, "_MAX_ENTRIES", 2)
    for name in ("a", "b", "c"):
        (place.cwd / name).touch()
    with (place.cwd / "a").open("wb") as file:
        file.truncate((32 << 20) + 1)

    async def run() -> None:
        client = Client(place)
        large = await client.refused("readFile", path=place.cwd / "a")
        assert large == (INTERNAL_ERROR, "it is larger than 32 MB (os error 27)")
        many = await client.refused("readDirectory", path=place.cwd)
        text = f"`{place.cwd}` has more than 2 entries"
        assert many == (INVALID_REQUEST, text)

    asyncio.run(run())


def test_a_client_that_does_not_read_gets_one_large_file_at_a_time(
    place: Workplace,
) -> None:
    (place.cwd / "a").write_text("x", encoding="utf-8")

    async def run() -> None:
        client = Client(place)
        client.reads.clear()
        read = asyncio.create_task(client.ask("readFile", path=place.cwd / "a"))
        await client.ask("getMetadata", path=place.cwd / "a")
        assert not read.done()
        client.reads.set()
        assert await read == {"dataBase64": encoded("x")}

    asyncio.run(run())


def test_writing_keeps_the_links_and_the_mode(place: Workplace) -> None:
    file = place.cwd / "a"
    file.write_text("a long text", encoding="utf-8")
    file.chmod(0o750)
    os.link(file, place.cwd / "b")

    async def run() -> None:
        client = Client(place)
        await client.ask("writeFile", path=file, dataBase64=encoded("short"))
        copied = {"sourcePath": file, "destinationPath": place.cwd / "c"}
        await client.ask("copy", **copied)
        # Codex empties a file that is copied onto itself.
        same = {"sourcePath": file, "destinationPath": place.cwd / "b"}
        await client.ask("copy", **same)

    asyncio.run(run())
    for name in ("a", "b", "c"):
        path = place.cwd / name
        assert path.read_text(encoding="utf-8") == "short"
        assert stat.S_IMODE(path.stat().st_mode) == 0o750


def test_a_long_operation_ends_with_the_client(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("x", encoding="utf-8")
    access = FileAccess([], tmp_path)
    access.ended.set()
    with pytest.raises(file_access.Ended):
        access.copy(source, tmp_path / "copied", recursive=True)
    with pytest.raises(file_access.Ended):
        access.remove(source, recursive=True, force=True)
    assert (source / "a").exists()


def test_a_folder_is_removed_without_following_its_links(place: Workplace) -> None:
    kept = place.cwd / "kept"
    kept.mkdir()
    (kept / "a").touch()
    folder = place.cwd / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "b").touch()
    (folder / "link").symlink_to(kept)

    async def run() -> None:
        await Client(place).ask("remove", path=folder)

    asyncio.run(run())
    assert not folder.exists()
    assert (kept / "a").exists()


def test_a_file_is_watched_while_it_comes_and_goes(place: Workplace) -> None:
    file = place.cwd / "deep" / "er" / "a"

    async def run() -> None:
        client = Client(place)
        asked = {"path": file, "watchId": "w"}
        assert await client.ask("watch", **asked) == {"path": str(file)}
        file.parent.mkdir(parents=True)
        file.write_text("1", encoding="utf-8")
        assert await client.changed("w") == [str(file)]
        part = file.with_name("part")
        part.write_text("2", encoding="utf-8")
        part.rename(file)
        assert await client.changed("w") == [str(file)]
        file.unlink()
        assert await client.changed("w") == [str(file)]
        file.parent.rmdir()
        file.parent.mkdir()
        file.write_text("3", encoding="utf-8")
        assert await client.changed("w") == [str(file)]
        await client.files.aclose()

    asyncio.run(run())


def test_a_folder_is_watched_with_its_entries_alone(place: Workplace) -> None:
    folder = place.cwd / "folder"
    (folder / "inner").mkdir(parents=True)
    link = place.cwd / "link"
    link.symlink_to(folder)

    async def run() -> None:
        client = Client(place)
        await client.ask("watch", path=folder, watchId="w")
        await client.ask("watch", path=link, watchId="l")
        (folder / "inner" / "deep").touch()
        (folder / "b").touch()
        (folder / "a").touch()
        await client.all_changed("w", folder / "a", folder / "b")
        await client.all_changed("l", link / "a", link / "b")
        client.told.clear()
        (folder / "c").touch()
        await client.ask("unwatch", watchId="w")
        await client.all_changed("l", link / "c")
        assert client.told == []
        await client.files.aclose()

    asyncio.run(run())


def test_the_target_of_a_link_is_watched(place: Workplace, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    link = place.cwd / "link"
    link.symlink_to(target)

    async def run() -> None:
        client = Client(place)
        await client.ask("watch", path=link, watchId="w")
        target.write_text("x", encoding="utf-8")
        assert await client.changed("w") == [str(link)]
        link.unlink()
        assert await client.changed("w") == [str(link)]
        await client.files.aclose()

    asyncio.run(run())


def test_many_changes_are_told_as_one_of_the_folder(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_watches, "_MAX_PATHS", 2)

    async def run() -> None:
        client = Client(place)
        client.reads.clear()
        await client.ask("watch", path=place.cwd, watchId="w")
        for name in ("a", "b", "c"):
            (place.cwd / name).touch()
        await asyncio.sleep(0)
        client.reads.set()
        assert await client.changed("w") == [str(place.cwd)]
        await client.files.aclose()

    asyncio.run(run())


def test_a_watch_has_an_id_of_its_own(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_watches, "_MAX_WATCHES", 1)

    async def run() -> None:
        client = Client(place)
        await client.ask("watch", path=place.cwd, watchId="w")
        same = await client.refused("watch", path=place.cwd, watchId="w")
        assert same == (INVALID_REQUEST, "watchId already exists: w")
        more = await client.refused("watch", path=place.cwd, watchId="v")
        assert more == (
            INVALID_REQUEST,
            "more than 1 watches; `fs/unwatch` ends one",
        )
        await client.files.aclose()

    asyncio.run(run())


def test_a_path_has_to_be_absolute() -> None:
    for path in ("a", "~/a", "", "/a\0b"):
        with pytest.raises(ValueError, match="absolute"):
            read_params(params.OnePath, {"path": path})
