"""Patches that are wrong, places that do not take them, and ends in the middle: the real program."""

import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.codex_process import start_codex_py
from tests.support.patching import enveloped, tree
from tests.support.privileges import heed_permissions, needs_permissions
from tests.support.program import environment

MANY = 2000
"""Files of a patch that takes long enough to be cut off."""


class Place:
    """A folder to be patched; what is made in it is part of the test's arrangement."""

    def __init__(self, folder: Path) -> None:
        self.home, self.root = folder / "home", folder / "root"
        self.home.mkdir()
        (self.root / "d").mkdir(parents=True)
        (self.root / "f").write_text("1\n", encoding="utf-8")

    def start(
        self,
        *argv: str,
        limit: Callable[[], None] | None = None,
        stdout: int | IO[bytes] = subprocess.PIPE,
        real: bool | None = None,
    ) -> subprocess.Popen[bytes]:
        return start_codex_py(
            argv,
            self.root,
            environment(self.home),
            stdin=subprocess.PIPE,
            stdout=stdout if isinstance(stdout, int) else stdout.fileno(),
            limit=limit,
            real=real,
        )

    def run(
        self,
        *argv: str,
        stdin: bytes = b"",
        limit: Callable[[], None] | None = None,
        stdout: int | IO[bytes] = subprocess.PIPE,
    ) -> tuple[int, str, str]:
        with self.start(*argv, limit=limit, stdout=stdout) as program:
            out, err = program.communicate(stdin, timeout=120)
        return program.returncode, (out or b"").decode(), err.decode()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def read_only_file(root: Path) -> None:
    (root / "f").chmod(0o444)


def unreadable_file(root: Path) -> None:
    (root / "f").chmod(0)


def read_only_folder(root: Path) -> None:
    (root / "d" / "old").write_text("1\n", encoding="utf-8")
    (root / "d").chmod(0o555)


def looping_link(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")


def pipe(root: Path) -> None:
    os.mkfifo(root / "pipe")


def nothing(_root: Path) -> None: ...


def small_disk() -> None:
    # A limit on the size of files stands in for a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def diff(name: str, old: str = "1", new: str = "2") -> bytes:
    return f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{old}\n+{new}\n".encode()


def envelope(*lines: str) -> bytes:
    return enveloped(*lines).encode()


UPDATE = envelope("*** Update File: f", "-1", "+2")
# The first file of each fits, and must not be changed either.
FAULTS: dict[str, tuple[Callable[[Path], None], bytes, tuple[str, ...], int, str]] = {
    "nothing": (nothing, b"", (), 65, "the patch is empty"),
    "no patch": (nothing, b"hello\n", (), 65, "no patch can be read from this"),
    "bytes": (nothing, b"\xff\xfe\x00\x01", (), 65, "no patch can be read from this"),
    "not UTF-8": (
        nothing,
        envelope("*** Add File: x", "+?").replace(b"?", b"\xff"),
        (),
        65,
        "UTF-8",
    ),
    "cut envelope": (nothing, UPDATE[:-9], (), 65, "last line of the patch must be"),
    "cut diff": (nothing, diff("f")[:-3], (), 65, "cut short"),
    "bad line": (nothing, envelope("*** Update File: f", "-1", "?"), (), 65, "line 4"),
    "no fit": (nothing, diff("f") + diff("f", "3"), (), 7, "f: "),
    "no file": (nothing, UPDATE.replace(b"f\n", b"g\n"), (), 7, "g: No such file"),
    "strip": (nothing, diff("f"), ("-p0",), 7, "With -p1 it fits."),
    "strip all": (nothing, diff("f"), ("-p9",), 7, "f"),
    "a folder": (nothing, diff("f") + diff("d"), (), 7, "d` is not a file"),
    "onto a folder": (
        nothing,
        envelope("*** Add File: d", "+x"),
        (),
        7,
        "Is a directory",
    ),
    "below a file": (
        nothing,
        envelope("*** Add File: f/x", "+x"),
        (),
        7,
        "Not a directory",
    ),
    "a NUL": (nothing, envelope("*** Add File: a\0b", "+x"), (), 7, "NUL"),
    "a long name": (
        nothing,
        envelope(f"*** Add File: {'n' * 300}"),
        (),
        7,
        "File name too long",
    ),
    "outside": (nothing, diff("f") + diff("../x"), (), 7, ".."),
    "read-only file": (read_only_file, diff("f"), (), 1, "f: Permission denied"),
    "read-only file, envelope": (read_only_file, UPDATE, (), 1, "f: Permission denied"),
    "unreadable file": (unreadable_file, UPDATE, (), 1, "f: Permission denied"),
    "add in a read-only folder": (
        read_only_folder,
        UPDATE.replace(b"*** End", b"*** Add File: d/x\n*** End"),
        (),
        1,
        "d/x: Permission denied",
    ),
    "delete in a read-only folder": (
        read_only_folder,
        UPDATE.replace(b"*** End", b"*** Delete File: d/old\n*** End"),
        (),
        1,
        "d/old: Permission denied",
    ),
    "an unreadable file, diff": (
        unreadable_file,
        diff("f"),
        (),
        1,
        "f: Permission denied",
    ),
    "an unreadable file, of which lines do not fit": (
        unreadable_file,
        diff("f", "3"),
        (),
        1,
        "f: Permission denied",
    ),
    "add in a read-only folder, diff": (
        read_only_folder,
        b"--- /dev/null\n+++ b/d/x\n@@ -0,0 +1 @@\n+x\n",
        (),
        1,
        "d/x: Permission denied",
    ),
    "delete in a read-only folder, diff": (
        read_only_folder,
        b"--- a/d/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n",
        (),
        1,
        "d/old: Permission denied",
    ),
    "move into a read-only folder": (
        read_only_folder,
        envelope("*** Update File: f", "*** Move to: d/x", "-1", "+2"),
        (),
        1,
        "d/x: Permission denied",
    ),
    "a read-only file, and one that is missing": (
        read_only_file,
        diff("f") + diff("g"),
        (),
        7,
        "f: Permission denied",
    ),
    "a looping link": (
        looping_link,
        diff("a"),
        (),
        7,
        "Too many levels of symbolic links",
    ),
    "a looping folder": (
        looping_link,
        envelope("*** Add File: a/x", "+x"),
        (),
        7,
        "Too many levels of symbolic links",
    ),
    "a pipe": (pipe, diff("pipe"), (), 7, "pipe` is not a file"),
    "no input": (nothing, b"", ("missing",), 2, "No such file or directory"),
    "a folder for input": (nothing, b"", ("d",), 2, "Is a directory"),
    "no place": (nothing, UPDATE, ("-C", "missing"), 2, "cannot work in 'missing'"),
    "no session": (
        nothing,
        b"",
        ("-C", "d", "missing"),
        2,
        "No such file or directory",
    ),
    "an option of diffs": (
        nothing,
        UPDATE,
        ("-p1",),
        2,
        "--strip is for unified diffs",
    ),
}


@needs_permissions
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_clear_error_and_changes_nothing(
    place: Place, fault: str
) -> None:
    arrange, patch, argv, code, message = FAULTS[fault]
    arrange(place.root)
    before = tree_of(place.root)
    failed, out, err = place.run("apply", *argv, stdin=patch, limit=heed_permissions)
    assert (failed, out) == (code, "")
    assert message in err
    errors = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert "Traceback" not in err
    assert tree_of(place.root) == before
    assert list((place.home / "codex-py" / "journal").glob("[0-9]*")) == []

    failed, out, err = place.run(
        "apply", "--json", *argv, stdin=patch, limit=heed_permissions
    )
    row = json.loads(out)
    assert (failed, row["applied"], row["files"]) == (code, False, [])
    assert message in row["error"]["message"]
    assert f"Error: {row['error']['message']}\n" in err


def tree_of(root: Path) -> dict[str, tuple[int, bytes]]:
    """As `tree`, of what cannot be read by who owns it too."""
    locked = [path for path in root.rglob("*") if not path.is_symlink()]
    modes = {path: path.stat().st_mode for path in locked}
    for path, mode in modes.items():
        path.chmod(mode | 0o600)
    found = tree(root)
    for path, mode in modes.items():
        path.chmod(mode)
        found[str(path.relative_to(root))] = (
            mode,
            found[str(path.relative_to(root))][1],
        )
    return found


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_disk_changes_nothing(place: Place, options: list[str]) -> None:
    patch = envelope(
        "*** Update File: f", "-1", "+2", "*** Add File: big", *["+" + "x" * 99] * 99
    )
    before = tree(place.root)
    code, out, err = place.run("apply", *options, stdin=patch, limit=small_disk)
    assert (code, "File too large" in err) == (1, True)
    assert tree(place.root) == before
    assert (
        "File too large" in json.loads(out)["error"]["message"]
        if options
        else out == ""
    )


@pytest.mark.parametrize("argv", [["apply"], ["apply", "--json"], ["undo", "--list"]])
def test_an_output_that_takes_nothing_is_told(place: Place, argv: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        code, _, err = place.run(*argv, stdin=UPDATE, stdout=full)
    assert code == 1
    assert err.endswith(
        "Error: Failed to write to standard output: No space left on device\n"
    )
    assert (place.root / "f").read_text(encoding="utf-8") == (
        "2\n" if "apply" in argv else "1\n"
    )


def test_an_input_that_nobody_closes_can_be_interrupted(place: Place) -> None:
    with place.start("apply", "--json") as program:
        assert program.stdin is not None
        program.stdin.write(b"*** Begin Patch\n")
        program.stdin.flush()
        wait_for(lambda: reads_standard_input(program.pid), program)
        program.send_signal(signal.SIGTERM)
        out, err = program.communicate(timeout=120)
    assert (program.returncode, err) == (143, b"Error: stopped by SIGTERM\n")
    assert json.loads(out)["error"]["code"] == "aborted"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_takes_everything_back(
    place: Place, number: signal.Signals
) -> None:
    before = tree(place.root)
    program = cut_off(place, number)
    _, err = program.communicate(timeout=120)
    if program.returncode == 0:
        # It came too late.
        assert len(tree(place.root)) == len(before) + MANY
    else:
        assert (program.returncode, err.splitlines()[-1:]) == (
            128 + number,
            [f"Error: stopped by {number.name}".encode()],
        )
        assert tree(place.root) == before


def test_a_kill_in_the_middle_is_taken_back_by_whoever_comes_next(place: Place) -> None:
    before = tree(place.root)
    program = cut_off(place, signal.SIGKILL)
    program.communicate(timeout=120)
    code, _, err = place.run("undo", "--list")
    assert code == 0
    if err:
        assert "was cut off while it was written; it has been taken back" in err
        assert tree(place.root) == before
    else:
        assert len(tree(place.root)) in {len(before), len(before) + MANY}


def cut_off(place: Place, number: signal.Signals) -> "subprocess.Popen[bytes]":
    """Send a signal to a program that applies a large patch, once it has begun to write files."""
    patch = envelope(
        "*** Update File: f", "-1", "+2", *[f"*** Add File: n{n}" for n in range(MANY)]
    )
    program = place.start("apply", real=True)
    assert program.stdin is not None
    program.stdin.write(patch)
    program.stdin.close()
    program.stdin = None
    wait_for(lambda: len(os.listdir(place.root)) > 2, program)
    program.send_signal(number)
    return program


def wait_for(condition: Callable[[], Any], program: "subprocess.Popen[bytes]") -> None:
    while program.poll() is None and not condition():
        os.sched_yield()


def reads_standard_input(pid: int) -> bool:
    """Whether the process waits for more of it, as far as the system says."""
    try:
        state = Path(f"/proc/{pid}/wchan").read_text(encoding="utf-8")
    except OSError:
        return True
    return "pipe" in state
