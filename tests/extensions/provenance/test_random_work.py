"""Random work of sessions and a person in one repository: each line knows who wrote it.

Tests `extensions/provenance/lines.py`.
"""

import os
import random
import subprocess
from pathlib import Path

import pytest

from codex_py.config.config import load_config
from codex_py.extensions.provenance.written import Repository
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.copies.run_times import RunTimes
from codex_py.patch.undo.recorder import TurnRecorder
from codex_py.protocol.patched_file import PatchedFile
from tests.support.patching import patch

COMMON = ["}", "", "    return None", "else:"]


class World:
    """A repository, and the author of each line that says something; None is the person."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.home, self.root = folder / "home", folder / "work"
        self.home.mkdir()
        self.root.mkdir()
        self.truth: dict[str, tuple[str, int] | None] = {}
        self.turns: dict[str, int] = {}
        self.writer: tuple[str, int] | None = None
        self.git("init", "-qb", "main")
        for name in ("a", "b"):
            self.write(name, [self.line() for _ in range(12)])
        self.commit()

    def git(self, *words: str) -> int:
        who = ("-c", "user.email=a@example.com", "-c", "user.name=a")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.root, capture_output=True, check=False
        )
        return done.returncode

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "work")

    def line(self) -> str:
        if self.random.random() < 0.3:
            return self.random.choice(COMMON)
        text = f"statement_{len(self.truth)} = {self.random.randrange(100)}"
        self.truth[text] = self.writer
        return text

    def files(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir() if path.is_file())

    def read(self, name: str) -> list[str]:
        return (self.root / name).read_text(encoding="utf-8").splitlines()

    def write(self, name: str, lines: list[str]) -> None:
        (self.root / name).write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )

    def edited(self, lines: list[str]) -> list[str]:
        lines, at = list(lines), self.random.randint(0, len(lines))
        size = self.random.randint(1, 5)
        match self.random.choice(
            ["insert", "insert", "replace", "delete", "move", "indent"]
        ):
            case "insert":
                lines[at:at] = [self.line() for _ in range(size)]
            case "replace":
                lines[at : at + size] = [self.line() for _ in range(size)]
            case "delete":
                del lines[at : at + size]
            case "move":
                block = lines[at : at + size]
                del lines[at : at + size]
                to = self.random.randint(0, len(lines))
                lines[to:to] = block
            case _:
                # Whoever indents a line has written it.
                for n in range(at, min(at + size, len(lines))):
                    if lines[n].strip() not in COMMON:
                        lines[n] = f"{lines[n]} + {len(self.truth)}"
                        self.truth[lines[n]] = self.writer
        return lines

    def changes(self) -> dict[str, list[str] | None]:
        """Contents for one or two files."""
        names = self.files()
        name = self.random.choice(names)
        match self.random.randrange(8):
            case 0:
                return {f"new{len(self.truth)}": [self.line() for _ in range(9)]}
            case 1 if len(names) > 2:
                return {
                    name: None,
                    f"moved{len(self.truth)}": self.edited(self.read(name)),
                }
            case 2:
                other = self.random.choice(names)
                if other != name:
                    lines, at = self.read(name), 0
                    if len(lines) > 4:
                        at = self.random.randrange(len(lines) - 4)
                    block = lines[at : at + 4]
                    return {
                        name: lines[:at] + lines[at + 4 :],
                        other: self.read(other) + block,
                    }
            case _:
                pass
        return {name: self.edited(self.read(name))}

    def carry_out(self, changes: dict[str, list[str] | None]) -> None:
        for name, lines in changes.items():
            if lines is None:
                (self.root / name).unlink()
            else:
                self.write(name, lines)

    def person(self) -> None:
        self.writer = None
        match self.random.randrange(10):
            case 0 | 1 | 2:
                self.commit()
            case 3:
                self.commit()
                names = self.files()
                name = self.random.choice(names)
                self.git("mv", name, f"renamed{len(self.truth)}_{len(names)}")
            case 4:
                self.commit()
                if self.git("checkout", "-q", "topic"):
                    self.git("checkout", "-qb", "topic")
            case 5:
                self.commit()
                self.git("checkout", "-q", "main")
            case 6:
                self.commit()
                if self.git("merge", "-q", "topic", "-m", "merge"):
                    self.git("merge", "--abort")
            case 7:
                self.commit()
                self.git("commit", "-q", "--amend", "-m", "amended")
            case _:
                self.carry_out(self.changes())

    def turn(self) -> None:
        thread = self.random.choice(["one", "two"])
        number = self.turns[thread] = self.turns.get(thread, 0) + 1
        recorder = TurnRecorder(
            self.home, self.root, os.environ, thread, is_resumed=True
        )
        for _ in range(self.random.randint(1, 3)):
            if self.random.random() < 0.3:
                self.tick()
                self.person_edits()
                self.tick()
            self.writer = thread, number
            changes = self.changes()
            is_patch = self.random.random() < 0.6
            recorder.will_run(is_confined=is_patch)
            # As the program does: for a patch, if there was a command before.
            if not is_patch or recorder.has_copy:
                recorder.copy()
            recorder.begin_life()
            if is_patch:
                self.patch(recorder, changes)
            else:
                self.carry_out(changes)
            recorder.end_life()
        recorder.end_turn(number, is_new=True)

    def tick(self) -> None:
        """Wait for the next time of the file system."""
        lives = RunTimes(self.root)
        now = lives.now_ns()
        while lives.now_ns() == now:
            os.sched_yield()

    def person_edits(self) -> None:
        self.writer = None
        self.carry_out(self.changes())

    def patch(
        self, recorder: TurnRecorder, changes: dict[str, list[str] | None]
    ) -> None:
        envelope: list[str] = []
        files: list[PatchedFile] = []
        for name, lines in changes.items():
            path = self.root / name
            old = path.read_bytes() if path.exists() else None
            if old is not None:
                envelope.append(f"*** Delete File: {name}")
            if lines is not None:
                envelope += [f"*** Add File: {name}", *(f"+{line}" for line in lines)]
            new = (
                None
                if lines is None
                else "".join(f"{line}\n" for line in lines).encode()
            )
            files.append(PatchedFile.of(path, old, new))
        done = patch(Journal(self.home, self.root), *envelope)
        recorder.patched(files, done.number)


@pytest.mark.parametrize("seed", range(int(os.environ.get("PROVENANCE_SEEDS", "4"))))
def test_no_line_is_claimed_that_was_not_written(tmp_path: Path, seed: int):
    world = World(tmp_path, seed)
    for _ in range(30):
        world.turn() if world.random.random() < 0.5 else world.person()
    config = load_config(
        cwd=world.root, environment={"CODEX_HOME": str(world.home), "HOME": "/"}
    )
    repository = Repository(config, os.environ, world.root)
    wrong: list[object] = []
    right = missed = 0
    for name in world.files():
        lines = world.read(name)
        wanted = {name: [line.encode() for line in lines]}
        for line, author in zip(
            lines, repository.follow(wanted).authors(name, wanted[name]), strict=True
        ):
            claimed = author[:2] if author and author.how != "unsure" else None
            if line in COMMON:
                continue
            truth = world.truth[line]
            if claimed is not None and claimed != truth:
                wrong.append((name, line, claimed, truth))
            right += claimed is not None and claimed == truth
            missed += claimed is None and truth is not None
    assert (wrong, right + missed > 0) == ([], True)
