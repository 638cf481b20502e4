"""One run of each benchmark of patches: a change like that of a release, and a search at its worst."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from codex_py.patch.convert import to_envelope
from codex_py.patch.diff.writer import exact_diff
from codex_py.protocol.patched_file import PatchedFile
from scripts.benchmarks.agent import Agent, Place
from scripts.benchmarks.releases import pairs, write_change
from scripts.benchmarks.samples import Sample
from scripts.benchmarks.server import BenchmarkServer

_FILES = 880
_HUNKS = 3_600
_FOLDERS = 40
_EQUAL_LINES = 20_000
_BLOCK_LINES = 2_000
_MS = 1_000
_FITS_NOT = 7


def patch(_server: BenchmarkServer, agent: Agent) -> Sample:
    """`apply` of a whole change; of git, which knows no envelopes, the diff counts for both."""
    change = _change()
    sample: Sample = {}
    for name, kind in (("patch, diff", "diff"), ("patch, envelope", "envelope")):
        file = change / ("diff" if agent.name == "git" else kind)
        place = _place(change)
        shutil.copytree(change / "tree", place.repository)
        # Or what is measured begins with writing the copy to the disk.
        os.sync()
        ended = place.start(agent, "apply", str(file)).wait()
        sample[name], sample[f"{name}, CPU"] = ended.wall_s * _MS, ended.cpu_s * _MS
    sample["patch, library"] = sample["patch, diff"]
    if agent.name != "git":
        sample["patch, library"] = _library_ms(change, agent)
    return sample


def releases(_server: BenchmarkServer, agent: Agent) -> Sample:
    """The changes between releases of projects as diffs, a process each."""
    return {"releases, diff": _releases_ms(agent, "diff")}


def releases_as_envelopes(_server: BenchmarkServer, agent: Agent) -> Sample:
    """The same as envelopes, which Codex takes from its input under the name `apply_patch`."""
    return {"releases, envelope": _releases_ms(agent, "envelope")}


def _releases_ms(agent: Agent, kind: str) -> float:
    total_s = 0.0
    for change in _release_changes():
        place = _place(change)
        shutil.copytree(change / "old", place.repository, symlinks=True)
        os.sync()
        file = change / kind
        if agent.name == "peer":
            apply_patch = change / "apply_patch"
            if not apply_patch.is_symlink():
                apply_patch.symlink_to(agent.program)
            codex = Agent(agent.name, apply_patch, agent.group)
            running = place.start(codex, stdin=file)
        elif agent.name == "git":
            running = place.start(agent, "apply", "--whitespace=nowarn", str(file))
        else:
            running = place.start(agent, "apply", str(file))
        total_s += running.wait().wall_s
    return total_s * _MS


@cache
def _release_changes() -> list[Path]:
    """A folder for each pair of releases: the tree `old`, and its change as a `diff` and an `envelope`."""
    folder = os.environ.get("RELEASES_DIR")
    if folder is None:
        sys.exit("RELEASES_DIR names no folder with releases")
    changes: list[Path] = []
    for old, new in pairs(Path(folder)):
        work = Path(tempfile.mkdtemp(prefix="release-", dir=_change()))
        write_change(old, new, work)
        changes.append(work)
    return changes


_LIBRARY = """
import sys, time
from pathlib import Path
from codex_py.patch.unified.plan import plan_unified
change = Path(sys.argv[1]).read_bytes()
began = time.monotonic()
plan_unified(change, Path.cwd()).commit()
print((time.monotonic() - began) * 1000)
"""


def _library_ms(change: Path, agent: Agent) -> float:
    """The time for the change in a process that has the engine loaded, in ms."""
    place = _place(change)
    shutil.copytree(change / "tree", place.repository)
    os.sync()
    printed = subprocess.run(
        [agent.program.with_name("python"), "-c", _LIBRARY, change / "diff"],
        cwd=place.repository,
        env=place.environment(),
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    return float(printed.stdout)


def worst(_server: BenchmarkServer, agent: Agent) -> Sample:
    """A block that differs from a file of equal lines in its last line only."""
    place = _place(_change())
    place.repository.mkdir()
    (place.repository / "f").write_text("x\n" * _EQUAL_LINES, encoding="ascii")
    lines = [
        "*** Begin Patch",
        "*** Update File: f",
        *[" x"] * (_BLOCK_LINES - 1),
        "-y",
    ]
    file = place.home / "patch"
    file.write_text("\n".join([*lines, "*** End Patch\n"]), encoding="ascii")
    ended = place.start(agent, "apply", str(file)).wait(code=_FITS_NOT)
    return {"patch, worst": ended.wall_s * _MS}


def _place(change: Path) -> Place:
    """A home and no repository yet. Nothing is removed before the end: a file system that has just
    removed many files takes several times as long to make new ones (ext4)."""
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=change))
    (folder / "home").mkdir()
    return Place(folder / "home", folder / "tree")


@cache
def _change() -> Path:
    """A folder with a `tree`, and a change of it as a `diff` and as an `envelope`."""
    folder = Path(tempfile.mkdtemp(prefix="bench-patch-"))
    chance = random.Random(1)
    changes: list[PatchedFile] = []
    for number in range(_FILES):
        path = folder / "tree" / f"package{number % _FOLDERS}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        old = _source(chance)
        path.write_bytes(b"".join(old))
        hunks = (number + 1) * _HUNKS // _FILES - number * _HUNKS // _FILES
        new = _changed(old, hunks, chance)
        changes.append(PatchedFile(path, "update", None, b"".join(old), b"".join(new)))
    diff = exact_diff(changes, folder / "tree")
    (folder / "diff").write_bytes(diff)
    envelope = to_envelope(diff.decode(), folder / "tree")
    (folder / "envelope").write_text(envelope, encoding="utf-8")
    return folder


def remove_change() -> None:
    if _change.cache_info().currsize:
        shutil.rmtree(_change())


def _source(chance: random.Random) -> list[bytes]:
    return [
        b"%sname%d = value%d(%d)\n"
        % (b"    " * chance.randrange(4), *[chance.randrange(3_000) for _ in range(3)])
        for _ in range(chance.randrange(150, 800))
    ]


def _changed(lines: list[bytes], hunks: int, chance: random.Random) -> list[bytes]:
    changed = list(lines)
    step = (len(lines) - 20) // hunks
    for number in reversed(range(hunks)):
        at = 10 + number * step
        changed[at] = changed[at].replace(b" = ", b" = not ")
        if chance.random() < 0.5:
            changed.insert(at, b"new%d = None\n" % chance.randrange(10**6))
    return changed
