"""Turns in which patches and commands change the same paths.

The rule is plain: the net change of a path is its state before the turn against its state after
it. In an ignored folder, whose files are not copied, it begins with the first patch of the path.

Tests `patch/undo/patched_on_disk.py`.
"""

import os
import random
import stat
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from codex_py.errors import CodexError
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.copies import run_times
from codex_py.patch.undo.copies.run_times import RunTimes
from codex_py.patch.undo.entries import Entries
from codex_py.patch.undo.plan import EditedSince, plan_undo
from codex_py.patch.undo.recorder import TurnRecorder
from tests.support.patching import enveloped, tree
from tests.support.searches import share

CASES = int(os.environ.get("RANDOM_TURNS", share(150)))
PARTS = 5
FOLDERS = ("", "d/", "ign/", "ign/in/")
NAMES = ("p", "q")

Step: TypeAlias = str | Sequence[str]
"""A command, or the lines of a patch."""
Nodes: TypeAlias = dict[str, tuple[int, bytes]]
"""The files and links, by their paths relative to the root."""

ADD_P = ("*** Add File: p", "+x")
MOVE_P = ("*** Update File: p", "*** Move to: q", "@@", "-x", "+y")
UPDATE_OLD = ("*** Update File: old", "@@", "-old", "+new")
MOVE_OLD = ("*** Update File: old", "*** Move to: p", "@@", "-old", "+new")

TURNS: dict[str, tuple[Step, ...]] = {
    "a new file is removed": (ADD_P, "rm p"),
    "it is moved": (ADD_P, "mv p q"),
    "it is moved and edited": (ADD_P, "mv p q; echo 2 >> q"),
    "it is moved into an ignored folder": (ADD_P, "mv p ign/p"),
    "it is read and removed": (ADD_P, "cat p", "rm p"),
    "it becomes a folder": (ADD_P, "rm p; mkdir p; echo z > p/z"),
    "an old file becomes a folder": ("rm old; mkdir -p old/in; echo z > old/p",),
    "an old file becomes an empty folder": ("rm old; mkdir old",),
    "an old file becomes a folder, which a patch empties": (
        "rm old; mkdir -p old/in; echo z > old/p",
        ("*** Delete File: old/p",),
    ),
    "it becomes a link": (ADD_P, "ln -sf k p"),
    "it becomes a link to a folder": (ADD_P, "rm p; ln -s ign p"),
    "it is removed and made anew": (ADD_P, "rm p", "echo anew > p"),
    "it is removed and patched anew": (ADD_P, "rm p", ADD_P),
    "it is removed twice": (ADD_P, "rm p", ADD_P, "rm p"),
    "a patch moves it, and a command removes it": (ADD_P, MOVE_P, "rm q"),
    "a patch moves it, and a command moves it back": (ADD_P, MOVE_P, "mv q p"),
    "its folder is moved": (("*** Add File: k1/g", "+x"), "mv k1 l"),
    "its folder is removed": (("*** Add File: k1/in/g", "+x"), "rm -r k1"),
    "a command makes a file, and it goes": (
        "echo x > p",
        ("*** Update File: p", "@@", "-x", "+y"),
        "rm p",
    ),
    "an old file is changed and removed": (UPDATE_OLD, "rm old"),
    "an old file is changed and brought back": (UPDATE_OLD, "echo old > old"),
    "an old file is moved, and the new one removed": (MOVE_OLD, "rm p"),
    "an old file is moved there and back": (MOVE_OLD, "mv p old"),
    "an old file is deleted and made anew": (
        ("*** Delete File: old",),
        "echo anew > old",
    ),
    "an old file is removed, patched anew and removed": (
        "rm old",
        ("*** Add File: old", "+x"),
        "rm old",
    ),
    "a new ignored file is removed": (("*** Add File: ign/q", "+x"), "rm ign/q"),
    "its ignored folder is removed": (
        ("*** Add File: ign/in/q", "+x"),
        "rm -r ign/in",
    ),
    "a new ignored file is edited": (
        ("*** Add File: ign/q", "+x"),
        "echo 2 >> ign/q",
    ),
    "a new ignored file is moved out": (
        ("*** Add File: ign/q", "+x"),
        "mv ign/q q",
    ),
    "an ignored file is changed and removed": (
        ("*** Update File: ign/u", "@@", "-user", "+model"),
        "rm ign/u",
    ),
    "an ignored file is changed and moved out": (
        ("*** Update File: ign/u", "@@", "-user", "+model"),
        "mv ign/u u2",
    ),
    "an ignored file is changed and brought back": (
        ("*** Update File: ign/u", "@@", "-user", "+model"),
        "echo user > ign/u",
    ),
    "an ignored file is moved out by a patch, and removed": (
        ("*** Update File: ign/u", "*** Move to: p", "@@", "-user", "+model"),
        "rm p",
    ),
    "a new file outside is removed": (
        ("*** Add File: ../beside/q", "+x"),
        "rm ../beside/q",
    ),
    "a new file outside is moved in": (
        ("*** Add File: ../beside/q", "+x"),
        "mv ../beside/q q",
    ),
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # However slow this machine is.
    monkeypatch.setattr(run_times, "_LONG_NS", 1 << 60)
    return make_root(tmp_path)


def make_root(folder: Path) -> Path:
    os.umask(0o022)
    root = folder / "work"
    (root / "ign").mkdir(parents=True)
    (root / "d").mkdir()
    (folder / "beside").mkdir()
    (root / ".gitignore").write_text("ign/\n", encoding="utf-8")
    (root / "old").write_text("old\n", encoding="utf-8")
    (root / "ign/u").write_text("user\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


class Turn:
    """One turn of a session, and its undo."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root.parent / "home"
        self.journal = Journal(self.home, root)
        self.recorder = TurnRecorder(self.home, root, os.environ, "one")
        self.before: Nodes = read(root)
        self.unseen: Nodes = {}
        """The state of the paths that are not copied, before the first patch of each."""

    def run(self, step: Step) -> None:
        if isinstance(step, str):
            self.command(step)
        else:
            self.patch(step)

    def command(self, line: str, *, copies: bool = False) -> None:
        if copies or not self.recorder.has_copy:
            self.recorder.copy()
        self.recorder.will_run(is_confined=False)
        self.recorder.begin_life()
        words = ["sh", "-c", line]
        subprocess.run(words, cwd=self.root, check=False, stderr=subprocess.DEVNULL)
        self.recorder.end_life()
        pass_time(self.root)

    def patch(self, lines: Sequence[str]) -> None:
        before = read(self.root)
        plan = plan_patch(enveloped(*lines), self.root)
        self.recorder.begin_life()
        done = plan.commit(self.journal)
        self.recorder.end_life()
        self.recorder.patched(plan.changes, done.number)
        for file in plan.changes:
            for path in (file.path, file.destination):
                name = os.path.relpath(path, self.root)
                if is_unseen(name):
                    self.unseen.setdefault(name, before.get(name, (0, b"")))
        pass_time(self.root)

    def end(self) -> None:
        """End the turn, and compare what it has recorded, and its undo, with the rule."""
        diff = self.recorder.end_turn(1, is_new=True)
        after = read(self.root)
        before = self._restored(after)
        changed = {
            name for name in {*before, *after} if before.get(name) != after.get(name)
        }
        recorded: dict[str, tuple[bytes | None, bytes | None]] = {}
        for number in self.journal.numbers()[:1]:
            for each in self.journal.read(number).changes:
                name = os.path.relpath(each.path, self.root)
                recorded[name] = (each.old, each.new)
        expected = {
            name: (before.get(name, (0, None))[1], after.get(name, (0, None))[1])
            for name in changed
        }
        assert recorded == expected, f"{recorded}, not {expected}"
        for name in {*before, *after}:
            assert (f"/{Path(name).name}" in diff) or name not in changed, diff
        if not changed:
            assert diff == ""
            return
        plan = plan_undo(self.journal)
        assert plan.doubts == []
        plan.commit()
        assert read(self.root) == before
        plan_undo(self.journal, Entries(self.journal).newest_undo()).commit()
        assert read(self.root) == after

    def _restored(self, after: Nodes) -> Nodes:
        """The state that an undo brings back."""
        found = {
            name: node for name, node in self.before.items() if not is_unseen(name)
        }
        found |= {name: node for name, node in after.items() if is_unseen(name)}
        for name, node in self.unseen.items():
            found.pop(name, None)
            if node[0]:
                found[name] = node
        return found


def is_unseen(name: str) -> bool:
    """True for a path that is not copied."""
    return name.startswith(("ign/", "../"))


def read(root: Path) -> Nodes:
    found: Nodes = {}
    for folder in (root, root.parent / "beside"):
        for name, (mode, contents) in tree(folder).items():
            path = os.path.relpath(folder / name, root)
            if not path.startswith(".git/") and not stat.S_ISDIR(mode):
                found[path] = (mode, contents)
    return found


def pass_time(root: Path) -> None:
    """Wait for the next step of the file system's time."""
    clock = RunTimes(root)
    now = clock.now_ns()
    deadline = time.monotonic() + 10
    while clock.now_ns() == now and time.monotonic() < deadline:
        time.sleep(0.001)


@pytest.mark.parametrize("steps", TURNS.values(), ids=TURNS)
@pytest.mark.parametrize("first", ["a command", "a patch"])
def test_the_change_of_a_path_is_its_state_before_the_turn_against_that_after_it(
    root: Path, first: str, steps: Sequence[Step]
) -> None:
    turn = Turn(root)
    if first == "a command":
        turn.command("echo 2 > k")
    for step in steps:
        turn.run(step)
    turn.command("true")
    turn.end()


@pytest.mark.parametrize("name", ["ign/q", "../beside/q"])
def test_an_edit_of_somebody_else_in_a_patched_file_is_not_undone(
    root: Path, name: str
) -> None:
    turn = Turn(root)
    turn.command("echo 2 > k")
    turn.patch((f"*** Add File: {name}", "+x"))
    (root / name).write_text("mine\n", encoding="utf-8")
    pass_time(root)
    turn.command("echo 3 > k")
    diff = turn.recorder.end_turn(1, is_new=True)
    assert "+x" in diff
    assert "mine" not in diff
    with pytest.raises(EditedSince, match="edited since"):
        plan_undo(turn.journal)
    assert (root / name).read_text(encoding="utf-8") == "mine\n"


def test_a_folder_that_became_a_link_is_not_read_through(root: Path) -> None:
    (root.parent / "beside/q").write_text("secret\n", encoding="utf-8")
    turn = Turn(root)
    turn.command("echo 2 > k")
    turn.patch(("*** Add File: ign/in/q", "+x"))
    turn.command("rm -r ign/in; ln -s ../../beside ign/in")
    diff = turn.recorder.end_turn(1, is_new=True)
    assert "secret" not in diff
    assert "ign/in/q" not in diff
    plan_undo(turn.journal).commit()
    assert (root.parent / "beside/q").read_text(encoding="utf-8") == "secret\n"


def random_step(root: Path, chance: random.Random) -> Step:
    """A command or a patch, which may not fit."""
    # What is ignored stays so.
    names = sorted(read(root).keys() - {".gitignore"})
    path = chance.choice(FOLDERS) + chance.choice(NAMES)
    other = chance.choice(FOLDERS) + chance.choice(NAMES)
    there = chance.choice([*names, path])
    seen = there.removeprefix("ign/").removeprefix("in/")
    text = f"{chance.random()}"
    commands = (
        f"rm {there}",
        f"rm -r {chance.choice(FOLDERS[1:4])}",
        f"mkdir -p $(dirname {other}); mv {there} {other}",
        f"mkdir -p $(dirname {path}); echo {text} > {path}",
        f"echo {text} >> {there}",
        f"rm {seen}; mkdir -p {seen}/in/q; echo {text} > {seen}/p",
        f"ln -sf p {path}",
        f"chmod 755 {there}",
    )
    if chance.random() < 0.5:
        return chance.choice(commands)
    first = ""
    with suppress(OSError):
        first = (root / there).read_text(encoding="utf-8").partition("\n")[0]
    update = ("@@", f"-{first}", f"+{text}")
    patches = (
        (f"*** Add File: {path}", f"+{text}"),
        (f"*** Delete File: {there}",),
        (f"*** Update File: {there}", *update),
        (f"*** Update File: {there}", f"*** Move to: {other}", *update),
    )
    return chance.choice(patches)


def try_case(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    root = make_root(folder / str(seed))
    # All ignored files are of the session.
    (root / "ign/u").unlink()
    turn = Turn(root)
    steps: list[Step] = []
    try:
        for _ in range(chance.randint(2, 7)):
            step = random_step(root, chance)
            steps.append(step)
            if isinstance(step, str):
                turn.command(step, copies=chance.random() < 0.3)
                continue
            with suppress(CodexError, OSError):
                turn.patch(step)
        if turn.recorder.is_open:
            turn.end()
    except (AssertionError, CodexError) as error:
        raise AssertionError(f"{seed}: {steps}: {error}") from error


def seeds(part: int) -> Iterator[int]:
    yield from range(part, CASES, PARTS)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_patches_and_commands_keep_to_the_rule(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_times, "_LONG_NS", 1 << 60)
    for seed in seeds(part):
        try_case(tmp_path, seed)
