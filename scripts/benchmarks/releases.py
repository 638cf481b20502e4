"""Apply the real changes between releases, byte for byte: python -m scripts.benchmarks.releases FOLDER

FOLDER holds unpacked releases side by side, `NAME-VERSION`. Each change from one release of a project to the
next is applied by `git apply`, and by `codex-py apply` as a diff and as an envelope. The trees that come
out have to be those of the later release.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from codex_py.errors import PatchError
from codex_py.patch.convert import to_envelope
from codex_py.patch.files.modes import written_mode

_ROOT = Path(__file__).resolve().parents[2]
_RELEASE = re.compile(r"(.+)-(\d[\w.]*)")
_FILE = re.compile(rb"^(?=diff --git )", re.MULTILINE)
# What the project says of line ends and the like is not to change a byte.
_ATTRIBUTES = "* -text -ident !eol !filter !working-tree-encoding diff\n"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One change, and how it was applied."""

    name: str
    files: int
    hunks: int
    unsayable: int
    """Files whose change an envelope cannot say; they are left out of it."""
    wall_s: dict[str, float]
    """By `git`, `diff` and `envelope`."""
    wrong: list[str]
    """What did not come out as it should."""


def pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Each release with the next one of its project."""
    projects: defaultdict[str, list[tuple[list[int], Path]]] = defaultdict(list)
    for path in folder.iterdir():
        if path.is_dir() and (found := _RELEASE.fullmatch(path.name)):
            version = [int(number) for number in re.findall(r"\d+", found[2])]
            projects[found[1].lower()].append((version, path))
    for _, releases in sorted(projects.items()):
        releases.sort()
        for (_, old), (_, new) in pairwise(releases):
            yield old, new


def apply_release(old: Path, new: Path, program: Sequence[str], work: Path) -> Outcome:
    """Apply the change between two releases in every way.

    Args:
        program: the command that is codex-py.
        work: an empty folder to work in; what is in it afterwards can be thrown away.
    """
    diff, unsayable = write_change(old, new, work)
    wall_s: dict[str, float] = {}
    wrong: list[str] = []
    for way, command in (
        ("git", ["git", "apply", "--whitespace=nowarn", "../diff"]),
        ("diff", [*program, "apply", "../diff"]),
        ("envelope", [*program, "apply", "../envelope"]),
    ):
        tree = work / f"by-{way}"
        shutil.copytree(old, tree, symlinks=True)
        started_s = time.monotonic()
        done = subprocess.run(
            command, cwd=tree, env=_environment(work), capture_output=True, check=False
        )
        wall_s[way] = time.monotonic() - started_s
        if done.returncode:
            wrong.append(f"{way}: {done.stderr.decode(errors='replace')[-500:]}")
            continue
        passed_over = unsayable if way == "envelope" else set[str]()
        expected, found = _contents(new), _contents(tree)
        wrong += [
            f"{way}: {name}"
            for name in sorted(expected.keys() | found.keys())
            if name not in passed_over and expected.get(name) != found.get(name)
        ]
    pieces = _FILE.split(diff)[1:]
    return Outcome(
        f"{old.name} to {new.name}",
        len(pieces),
        len(re.findall(rb"^@@ ", diff, re.MULTILINE)),
        len(unsayable),
        wall_s,
        wrong,
    )


def write_change(old: Path, new: Path, work: Path) -> tuple[bytes, set[str]]:
    """Write the change between two releases into `work`, as `diff` and as `envelope`.

    Returns the diff, and the files whose change an envelope cannot say.
    """
    diff = _diff(old, new, work)
    (work / "diff").write_bytes(diff)
    # The releases may belong to another user: `to_envelope` refuses what its reader may not write.
    shutil.copytree(old, work / "old", symlinks=True)
    envelope, unsayable = _envelope(diff, work / "old")
    (work / "envelope").write_text(envelope, encoding="utf-8")
    return diff, unsayable


def _diff(old: Path, new: Path, work: Path) -> bytes:
    repository = work / "repository"
    _git(repository.parent, "init", "-q", str(repository))
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text(
        _ATTRIBUTES, encoding="ascii"
    )
    trees: list[str] = []
    for release in (old, new):
        git_dir = f"--git-dir={repository / '.git'}"
        _git(release, git_dir, "--work-tree=.", "add", "-A", "-f", ".")
        trees.append(_git(release, git_dir, "write-tree").decode().strip())
    return _git(repository, "diff", "--text", "--full-index", "--no-renames", *trees)


def _git(cwd: Path, *words: str) -> bytes:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return subprocess.run(
        ["git", *words], cwd=cwd, env=environment, capture_output=True, check=True
    ).stdout


def _environment(work: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(work),
        "PYTHONPATH": str(_ROOT),
        "GIT_CEILING_DIRECTORIES": str(work),
    }


def _envelope(diff: bytes, old: Path) -> tuple[str, set[str]]:
    """The diff as an envelope, and the files whose change it cannot say."""
    sections: list[str] = []
    unsayable: set[str] = set()
    for piece in _FILE.split(diff)[1:]:
        try:
            text = to_envelope(piece.decode(errors="surrogateescape"), old.resolve())
        except PatchError:
            first = piece.partition(b"\n")[0].decode(errors="surrogateescape")
            unsayable.add(first.rpartition(" b/")[2])
            continue
        sections += text.split("\n")[1:-2]
    return "\n".join(["*** Begin Patch", *sections, "*** End Patch\n"]), unsayable


def _contents(root: Path) -> dict[str, tuple[bytes, str]]:
    """By relative path, contents of each file or where a link leads, and the mode that git gives it."""
    contents: dict[str, tuple[bytes, str]] = {}
    for path in root.rglob("*"):
        name, mode = str(path.relative_to(root)), path.lstat().st_mode
        if stat.S_ISLNK(mode):
            contents[name] = os.fsencode(path.readlink()), written_mode(mode)
        elif stat.S_ISREG(mode):
            contents[name] = path.read_bytes(), written_mode(mode)
    return contents


def main() -> None:
    (folder,) = sys.argv[1:]
    row = "{:<36} {:>5} {:>6} {:>9} {:>8} {:>8} {:>8}"
    print(
        row.format("change", "files", "hunks", "unsayable", "git", "diff", "envelope")
    )
    failed = False
    for old, new in pairs(Path(folder)):
        with tempfile.TemporaryDirectory(prefix="releases-") as work:
            program = [sys.executable, "-m", "codex_py"]
            outcome = apply_release(old, new, program, Path(work))
        times = [
            f"{outcome.wall_s[way] * 1000:.0f} ms"
            for way in ("git", "diff", "envelope")
        ]
        print(
            row.format(
                outcome.name, outcome.files, outcome.hunks, outcome.unsayable, *times
            ),
            flush=True,
        )
        for line in outcome.wrong:
            failed = True
            print(f"  WRONG {line}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
