"""Where patches are applied otherwise than by Codex 0.171, on purpose: both behaviours, side by side.

What is said of Codex is checked where `CODEX_BINARY` names its program.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codex_py.commands.apply.envelope import RUN_AS_APPLY_PATCH
from tests.support.codex import CODEX, needs_codex
from tests.support.patch_cases import PatchCase, patch_case
from tests.support.patching import enveloped

SOME_CASES = 300


@dataclass(frozen=True)
class Outcome:
    code: int
    stdout: str = ""
    stderr: str = ""
    tree: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True)
class Difference:
    why: str
    patch: str
    files: Mapping[str, bytes]
    theirs: tuple[int, Mapping[str, bytes]]
    """Exit code, and the tree afterwards."""
    ours: tuple[int, Mapping[str, bytes]]


LINES = b"one\ntwo\nthree\n"
UPDATE = "*** Update File: f"

DIFFERENCES = [
    Difference(
        "a patch that fails half-way changes nothing",
        enveloped("*** Add File: new", "+x", UPDATE, "-missing", "+y"),
        {"f": LINES},
        theirs=(1, {"f": LINES, "new": b"x\n"}),
        ours=(1, {"f": LINES}),
    ),
    Difference(
        "folders made for a patch that fails are removed",
        enveloped("*** Add File: a/b/new", "+x", "*** Delete File: missing"),
        {"f": LINES},
        theirs=(1, {"f": LINES, "a/b/new": b"x\n"}),
        ours=(1, {"f": LINES}),
    ),
    Difference(
        "a file moved onto itself stays",
        enveloped(UPDATE, "*** Move to: ./f", "-two", "+TWO"),
        {"f": LINES},
        theirs=(0, {}),
        ours=(0, {"f": b"one\nTWO\nthree\n"}),
    ),
    Difference(
        "a moved file keeps its permission bits",
        enveloped("*** Update File: run*", "*** Move to: go", "-two", "+TWO"),
        {"run*": LINES},
        theirs=(0, {"go": b"one\nTWO\nthree\n"}),
        ours=(0, {"go*": b"one\nTWO\nthree\n"}),
    ),
    Difference(
        "additions under a header go below its line, not to the end of the file",
        enveloped(UPDATE, "@@ one", "+new"),
        {"f": LINES},
        theirs=(0, {"f": b"one\ntwo\nthree\nnew\n"}),
        ours=(0, {"f": b"one\nnew\ntwo\nthree\n"}),
    ),
    Difference(
        "several headers in a row are sought one after the other",
        enveloped(UPDATE, "@@ one", "@@ two", "-three", "+3"),
        {"f": LINES},
        theirs=(1, {"f": LINES}),
        ours=(0, {"f": b"one\ntwo\n3\n"}),
    ),
    Difference(
        "the ranges of a unified diff are a hint",
        enveloped(UPDATE, "@@ -3,1 +3,1 @@", "-one", "+1"),
        {"f": b"one\ntwo\none\n"},
        theirs=(1, {"f": b"one\ntwo\none\n"}),
        ours=(0, {"f": b"one\ntwo\n1\n"}),
    ),
    Difference(
        "blank lines between sections are passed over",
        enveloped("*** Add File: a", "+x", "", "*** Delete File: f", ""),
        {"f": LINES},
        theirs=(1, {"f": LINES}),
        ours=(0, {"a": b"x\n"}),
    ),
    Difference(
        "a fence and prose around the one patch are taken away",
        f"Here it is:\n```\n{enveloped('*** Delete File: f')}\n```\n",
        {"f": LINES},
        theirs=(1, {"f": LINES}),
        ours=(0, {}),
    ),
    Difference(
        "a byte order mark need not be in the patch, and stays",
        enveloped(UPDATE, "-one", "+1"),
        {"f": b"\xef\xbb\xbfone\n"},
        theirs=(1, {"f": b"\xef\xbb\xbfone\n"}),
        ours=(0, {"f": b"\xef\xbb\xbf1\n"}),
    ),
    Difference(
        "a tab in a name stays",
        enveloped("*** Delete File: a\tb"),
        {"a\tb": LINES, "ab": LINES},
        theirs=(0, {"a\tb": LINES}),
        ours=(0, {"ab": LINES}),
    ),
    Difference(
        "lines of ASCII are changed in a file that is not UTF-8",
        enveloped(UPDATE, "-two", "+TWO"),
        {"f": b"caf\xe9\ntwo\n"},
        theirs=(1, {"f": b"caf\xe9\ntwo\n"}),
        ours=(0, {"f": b"caf\xe9\nTWO\n"}),
    ),
]


def tree(root: Path) -> dict[str, bytes]:
    """Contents by relative path; an executable file has a `*` behind its name."""
    return {
        f"{path.relative_to(root)}{'*' * (os.access(path, os.X_OK) and path.name != 'run*')}": (
            path.read_bytes()
        )
        for path in root.rglob("*")
        if path.is_file()
    }


def fill(root: Path, files: Mapping[str, bytes]) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name, contents in files.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(contents)
        if name.endswith("*"):
            path.chmod(0o755)


def outcome(root: Path, program: list[str], patch: bytes) -> Outcome:
    done = subprocess.run(
        [*program, RUN_AS_APPLY_PATCH, patch],
        cwd=root,
        env=os.environ
        | {"PYTHONPATH": str(Path(__file__).parents[2]), "CODEX_HOME": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Outcome(
        done.returncode,
        done.stdout.decode(),
        done.stderr.decode("utf-8", "replace"),
        tree(root),
    )


OURS = [sys.executable, "-m", "codex_py"]


@pytest.mark.parametrize(
    "difference", DIFFERENCES, ids=lambda found: found.why.replace(" ", "-")
)
def test_each_difference_from_codex_is_on_purpose(
    tmp_path: Path, difference: Difference
) -> None:
    fill(tmp_path / "tree", difference.files)
    found = outcome(tmp_path / "tree", OURS, difference.patch.encode())
    assert (found.code, found.tree) == difference.ours


@needs_codex
@pytest.mark.parametrize(
    "difference", DIFFERENCES, ids=lambda found: found.why.replace(" ", "-")
)
def test_codex_does_what_is_said_of_it(tmp_path: Path, difference: Difference) -> None:
    assert CODEX is not None
    fill(tmp_path / "tree", difference.files)
    found = outcome(tmp_path / "tree", [CODEX], difference.patch.encode())
    assert (found.code, found.tree) == difference.theirs


@needs_codex
@pytest.mark.timeout(300)
def test_nothing_else_differs(tmp_path: Path) -> None:
    assert CODEX is not None
    wrong: list[tuple[int, Outcome, Outcome]] = []
    for seed in range(SOME_CASES):
        case = patch_case(seed)
        root = tmp_path / "tree"
        fill(root, case.files)
        before = tree(root)
        ours = outcome(root, OURS, case.patch)
        fill(root, case.files)
        theirs = outcome(root, [CODEX], case.patch)
        if not agree(case, before, ours, theirs):
            wrong.append((seed, ours, theirs))
    assert wrong == []


def agree(
    case: PatchCase, before: Mapping[str, bytes], ours: Outcome, theirs: Outcome
) -> bool:
    """Whether both did the same, but for what is decided otherwise and for explanations."""
    if theirs.code == 0:
        return ours == theirs
    if case.lax and (
        ours.code == 0 or not ours.stderr.startswith(theirs.stderr.rstrip("\n"))
    ):
        # Read further than Codex reads it, whatever came of that.
        return ours.code == 0 or ours.tree == before
    return (ours.code, ours.stdout, ours.tree) == (
        theirs.code,
        theirs.stdout,
        before,
    ) and ours.stderr.startswith(theirs.stderr.rstrip("\n"))
