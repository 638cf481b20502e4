"""Random turns against the rule of undo: nothing is deleted that was there before the turn and is not kept.

The model here knows nothing of copies. It reads the folder before a turn, after it and after the undo, asks git what
was ignored when the turn began, and compares. `RANDOM_TURNS` sets how many are tried.
"""

import os
import random
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from codex_py.errors import CodexError, PatchError
from codex_py.filesystem.folder_times import FolderTimes
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.copies import run_times, snapshots
from codex_py.patch.undo.copies.run_times import RunTimes
from codex_py.patch.undo.entries import Entries
from codex_py.patch.undo.plan import EditedSince, UndoPlan, plan_undo
from codex_py.patch.undo.recorder import TurnRecorder
from codex_py.sandbox.placeholders import Placeholders
from tests.support.patching import enveloped
from tests.support.searches import share

CASES = int(os.environ.get("RANDOM_TURNS", share(300)))
PARTS = 10
LARGE, LARGE_IGNORED = 200, 100
"""Bytes beyond which a file is not kept, for this test."""
FOLDERS = ("", "out", "out/in", "src", "src/out", "web", "logs")
NAMES = ("a", "b", "run.log", "x.db", "d")
RULES = (
    "out/",
    "*.log",
    "*.db",
    "/out",
    "src/out/",
    "!*.log",
    "logs/",
    "**/in",
    "web",
    "!web",
)


class Node(NamedTuple):
    """A file or link."""

    mode: int
    contents: bytes


Nodes = dict[str, Node]


def read(root: Path) -> Nodes:
    found: Nodes = {}
    for folder, folders, names in os.walk(root):
        if ".git" in folders:
            folders.remove(".git")
        for name in (*names, *folders):
            path = Path(folder) / name
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                found[str(path.relative_to(root))] = Node(
                    mode, os.fsencode(path.readlink())
                )
            elif stat.S_ISREG(mode):
                found[str(path.relative_to(root))] = Node(mode, path.read_bytes())
    return found


def ignored(root: Path, nodes: Nodes) -> set[str]:
    """The names that git ignores, and the folders, which end in a slash."""
    names = {*nodes}
    for name in nodes:
        names |= {
            f"{folder}/" for folder in map(str, Path(name).parents) if folder != "."
        }
    printed = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=root,
        input=b"\0".join(sorted(map(os.fsencode, names))),
        capture_output=True,
        check=False,
        env={
            **os.environ,
            "GIT_DIR": str(root.parent / "rules.git"),
            "GIT_WORK_TREE": str(root),
        },
    )
    return {*filter(None, os.fsdecode(printed.stdout).split("\0"))}


def kept(root: Path, nodes: Nodes) -> Nodes:
    """The files that an undo has to bring back."""
    hidden = ignored(root, nodes)
    found: Nodes = {}
    for name, node in nodes.items():
        is_below = any(f"{folder}/" in hidden for folder in Path(name).parents)
        limit = LARGE_IGNORED if name in hidden else LARGE
        is_small = stat.S_ISLNK(node.mode) or len(node.contents) <= limit
        if is_small and not is_below:
            found[name] = node
    return found


class World:
    """A folder in which a session works."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        self.steps: list[str] = []
        self._made = 0
        self._made_at = seed

    def contents(self) -> bytes:
        """New ones, which nothing else has."""
        self._made += 1
        head = f"{self._made_at} {self._made}\n".encode()
        size = self.random.choice((0, 0, 0, 120, 250))
        return head + b"." * (max(size - len(head), 0))

    def place(self) -> Path:
        return self.root / self.random.choice(FOLDERS) / self.random.choice(NAMES)

    def existing(self) -> Path:
        names = sorted(read(self.root))
        return self.root / self.random.choice(names) if names else self.place()

    def folder(self) -> Path:
        return self.root / self.random.choice(FOLDERS[1:])

    def write(self, path: Path | None = None) -> None:
        path = path or self.place()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            path.unlink()
        path.write_bytes(self.contents())

    def append(self) -> None:
        with self.existing().open("ab") as file:
            file.write(self.contents())

    def remove(self) -> None:
        self.existing().unlink()

    def remove_folder(self) -> None:
        shutil.rmtree(self.folder())

    def move(self) -> None:
        target = self.place()
        target.parent.mkdir(parents=True, exist_ok=True)
        self.existing().rename(target)

    def move_folder(self) -> None:
        target = self.root / self.random.choice(
            ("new", "results", "src/new", "out/new", "web")
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        self.folder().rename(target)

    def move_folder_and_leave_link(self) -> None:
        source, target = (
            self.folder(),
            self.root / self.random.choice(("new", "results", "web/l")),
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        source.symlink_to(os.path.relpath(target, source.parent))

    def copy(self, copying: Callable[[Path, Path], object] = shutil.copy2) -> None:
        source, target = self.existing(), self.place()
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_symlink() and self.random.random() < 0.5:
            target.unlink()
        copying(source, target)

    def copy_plainly(self) -> None:
        self.copy(shutil.copyfile)

    def link(self) -> None:
        self.copy(lambda source, target: os.link(source, target, follow_symlinks=False))

    def replace_by_link(self) -> None:
        target = self.place()
        target.unlink(missing_ok=True)
        os.link(self.existing(), target, follow_symlinks=False)

    def copy_as_links_and_remove(self) -> None:
        source, target = (
            self.folder(),
            self.root / self.random.choice(("new", "results", "out/l")),
        )
        shutil.copytree(source, target, copy_function=os.link, symlinks=True)
        shutil.rmtree(source)

    def copy_and_remove(self) -> None:
        source, target = (
            self.folder(),
            self.root / self.random.choice(("new", "results", "out/c")),
        )
        shutil.copytree(source, target, symlinks=True)
        shutil.rmtree(source)

    def point(self) -> None:
        path = self.place()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(self.random.choice(("a", "b", "../src/a", "nowhere", "d")))

    def permit(self) -> None:
        path = self.existing()
        if not path.is_symlink():
            path.chmod(self.random.choice((0o600, 0o644, 0o755, 0o700)))

    def set_rules(self) -> None:
        path = self.root / self.random.choice(("", "", "", "src", "out")) / ".gitignore"
        path.parent.mkdir(exist_ok=True)
        rules = self.random.sample(RULES, self.random.randint(1, 3))
        path.write_text("".join(f"{rule}\n" for rule in rules), encoding="utf-8")

    def remove_rules(self) -> None:
        self.random.choice(sorted(self.root.rglob(".gitignore"))).unlink()

    def trace(self) -> str:
        """The folder now, for who looks for a fault."""
        if not os.environ.get("TRACE_TURNS"):
            return ""
        return f" {read(self.root)}\n"

    def act(self) -> None:
        """One thing that a command does, or the first that works of several."""
        actions = (
            *(
                self.write,
                self.write,
                self.append,
                self.remove,
                self.remove_folder,
                self.move,
            ),
            *(
                self.move,
                self.move_folder,
                self.move_folder,
                self.move_folder_and_leave_link,
            ),
            *(self.copy, self.copy_plainly),
            *(self.link, self.replace_by_link, self.copy_as_links_and_remove),
            *(
                self.copy_and_remove,
                self.point,
                self.permit,
                self.set_rules,
                self.remove_rules,
            ),
            *(self.set_rules, self.remove_rules),
        )
        for action in self.random.sample(actions, 5):
            with suppress(OSError, shutil.Error, IndexError):
                action()
                self.steps.append(f"{action.__name__}{self.trace()}")
                return

    def patch(self) -> Sequence[str]:
        """The lines of a patch, which may not fit."""
        path, to = self.existing(), self.place()
        name, target = (str(each.relative_to(self.root)) for each in (path, to))
        kind = self.random.choice(("add", "delete", "update", "move", "move", "rules"))
        if kind == "rules":
            return ("*** Delete File: .gitignore",)
        if kind == "add":
            return (f"*** Add File: {target}", f"+{self.contents().decode().rstrip()}")
        if kind == "delete":
            return (f"*** Delete File: {name}",)
        with suppress(OSError):
            first = path.read_text(encoding="utf-8").partition("\n")[0]
            moved = (f"*** Move to: {target}",) if kind == "move" else ()
            return (
                f"*** Update File: {name}",
                *moved,
                "@@",
                f"-{first}",
                f"+{first} edited",
            )
        return ()


class Session:
    """Turns as they run, and their undo, with the checks of the model."""

    def __init__(self, root: Path, world: World) -> None:
        self.root, self.world = root, world
        home = root.parent / "home"
        self.journal = Journal(home, root)
        times = FolderTimes()
        self.recorder = TurnRecorder(home, root, os.environ, "one", folder_times=times)
        self.placeholders = Placeholders(folder_times=times)
        self.begins: list[tuple[Nodes, Nodes]] = []
        """Before each turn: all files, and those to be brought back."""

        self.named: set[str] = set()
        """What an undo has said that it does not bring back."""
        self.in_journal: set[bytes] = set()
        """The contents that those files had, and that the journal keeps."""

    def turn(self) -> None:
        nodes = read(self.root)
        self.begins.append((nodes, kept(self.root, nodes)))
        for _ in range(self.world.random.randint(1, 3)):
            if self.world.random.random() < 0.3:
                self._patch()
            else:
                self._run()
        self.placeholders.release()
        self.recorder.end_turn(len(self.begins), is_new=True)

    def _patch(self) -> None:
        lines = self.world.patch()
        with suppress(CodexError, OSError):
            plan = plan_patch(enveloped(*lines), self.root)
            paths = {
                path for file in plan.changes for path in (file.path, file.destination)
            }
            if any(path.exists() and path.stat().st_nlink > 1 for path in paths):
                # As the feature does: the patch changes all of them.
                self.recorder.copy()
            self.recorder.begin_life()
            try:
                done = plan.commit(self.journal)
            finally:
                self.recorder.end_life()
            self.recorder.patched(plan.changes, done.number)
            self.world.steps.append(" ".join(lines))
            pass_time(self.root)

    def _run(self) -> None:
        if not self.recorder.has_copy or self.world.random.random() < 0.3:
            self.recorder.copy()
        self.recorder.will_run(is_confined=False)
        if self.world.random.random() < 0.5:
            # As the sandbox does.
            self.placeholders.hold([self.root / ".codex", self.root / ".agents"])
        self.recorder.begin_life()
        for _ in range(self.world.random.randint(1, 3)):
            self.world.act()
        self.recorder.end_life()
        pass_time(self.root)
        if self.world.random.random() < 0.7:
            self.placeholders.release()

    def undo(self, turns: int) -> None:
        """Undo the last turns, and redo that."""
        numbers = Entries(self.journal).turns_to(len(self.begins) - turns + 1)
        after = read(self.root)
        before, to_keep = self.begins[-turns]
        try:
            plan = plan_undo(self.journal, numbers[0], others=numbers[1:])
        except EditedSince:
            self.world.steps.append("refused")
            assert read(self.root) == after
            return
        # Nobody else is at work.
        assert plan.doubts == []
        plan.commit()
        undone = read(self.root)
        self.world.steps.append("undone")
        self._check(plan, before, to_keep, after, undone)
        redo = plan_undo(self.journal, Entries(self.journal).newest_undo())
        redo.commit()
        assert read(self.root) == after
        if self.world.random.random() < 0.5:
            plan_undo(self.journal, numbers[0], others=numbers[1:]).commit()
            assert read(self.root) == undone
            del self.begins[-turns:]

    def _check(
        self, plan: UndoPlan, before: Nodes, to_keep: Nodes, after: Nodes, undone: Nodes
    ) -> None:
        had, has = all_contents(before), all_contents(undone)
        assert (had & all_contents(after)) - has - self.in_journal == set()
        self.named |= {os.path.relpath(path, self.root) for path in plan.unkept}
        for name, node in to_keep.items():
            if name in self.named:
                self.in_journal.add(node.contents)
            else:
                assert undone.get(name) == node, (
                    f"{name}: {undone.get(name)}, not {node}"
                )
        changed = {os.path.relpath(file.path, self.root) for file in plan.changes}
        for name in {*after, *undone} - changed:
            if undone.get(name) == before.get(name):
                # Another link to a file that was brought back.
                continue
            assert after.get(name) == undone.get(name), (
                f"{name}: {after.get(name)} became {undone.get(name)}"
            )


def all_contents(nodes: Nodes) -> set[bytes]:
    return {node.contents for node in nodes.values() if stat.S_ISREG(node.mode)} - {b""}


def pass_time(root: Path) -> None:
    """Wait for the next step of the file system's time."""
    clock = RunTimes(root)
    now, deadline = clock.now_ns(), time.monotonic() + 10
    while clock.now_ns() == now and time.monotonic() < deadline:
        time.sleep(0.001)


def make_repository(path: Path) -> None:
    (path / "objects/pack").mkdir(parents=True)
    (path / "refs").mkdir()
    (path / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    (path / "config").write_text(
        "[core]\nrepositoryformatversion = 0\n", encoding="ascii"
    )


def try_case(base: Path, seed: int) -> list[str]:
    """Returns the steps."""
    root = base / str(seed) / "work"
    root.mkdir(parents=True)
    make_repository(root.parent / "rules.git")
    world = World(root, seed)
    if world.random.random() < 0.7:
        make_repository(root / ".git")
    for _ in range(world.random.randint(3, 8)):
        world.write()
    for _ in range(world.random.randint(1, 3)):
        with suppress(OSError):
            world.random.choice(
                (world.set_rules, world.point, world.permit, world.link)
            )()
    world.steps.append(f"{sorted(read(root))}")
    session = Session(root, world)
    try:
        for _ in range(world.random.choice((1, 1, 1, 1, 2, 2, 3))):
            world.steps.append("turn")
            session.turn()
        while session.begins:
            left = len(session.begins)
            with suppress(CodexError):
                session.undo(world.random.randint(1, left))
            if len(session.begins) == left:
                break
    except (AssertionError, PatchError) as error:
        raise AssertionError(f"{seed}: {world.steps}: {error}") from error
    finally:
        shutil.rmtree(root.parent)
    return world.steps


def seeds(part: int) -> Iterator[int]:
    yield from range(part, CASES, PARTS)


@pytest.mark.parametrize("part", range(PARTS))
def test_an_undo_loses_nothing_brings_back_what_is_kept_and_can_be_redone(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.umask(0o022)
    monkeypatch.setattr(snapshots, "_MAX_FILE_BYTES", LARGE)
    monkeypatch.setattr(snapshots, "_MAX_IGNORED_BYTES", LARGE_IGNORED)
    # However slow this machine is.
    monkeypatch.setattr(run_times, "_LONG_NS", 1 << 60)
    steps = [step for seed in seeds(part) for step in try_case(tmp_path, seed)]
    assert steps.count("refused") < len(steps) / 4
