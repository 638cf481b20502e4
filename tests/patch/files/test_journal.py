"""Also tests `patch/files/change.py`, `patch/files/commit.py`, `patch/files/entry_file.py`,
`patch/files/rollback.py` and `patch/files/transaction.py`.
"""

import errno
import fcntl
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from itertools import count
from pathlib import Path

import pytest

from codex_py.errors import PatchError
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files import journal, transaction
from codex_py.patch.files.entry_file import DamagedEntry
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.plan import plan_undo
from tests.support.patching import enveloped, killed_at, patch, tree
from tests.support.searches import sample

ALL_KINDS = (
    *("*** Update File: plain", "-1", "+2", "*** Add File: new/deep/x", "+x"),
    *(
        "*** Add File: new/y",
        "+y",
        "*** Update File: hard",
        "-one",
        "+two, which is longer",
    ),
    *(
        "*** Update File: run",
        "*** Move to: moved/run",
        "-a",
        "+b",
        "*** Delete File: link",
    ),
    *(
        "*** Delete File: name",
        "*** Add File: name/below",
        "+z",
        "*** Delete File: gone",
    ),
    *(
        "*** Update File: big",
        "-old",
        "+new",
        "*** Delete File: shape",
        "*** Add File: shape",
        "+f",
    ),
)


@pytest.fixture
def made(tmp_path: Path) -> Journal:
    """A journal for a folder with a bit of everything in it."""
    root = tmp_path / "root"
    root.mkdir()
    for name, text in {
        "plain": "1\n",
        "hard": "one\n",
        "name": "n\n",
        "gone": "g\n",
    }.items():
        (root / name).write_text(text, encoding="utf-8")
    (root / "linked").hardlink_to(root / "hard")
    (root / "run").write_text("a\n", encoding="utf-8")
    (root / "run").chmod(0o755)
    (root / "big").write_text("old\n" * 50, encoding="utf-8")
    (root / "link").symlink_to("plain")
    (root / "shape").symlink_to("nowhere")
    return Journal(tmp_path / "home", root)


def files(journal: Journal) -> list[str]:
    """Of the journal, without the lock and what was replaced."""
    folder = journal.cwd.parent / "home" / "codex-py" / "journal"
    return sorted(
        path.name for path in folder.iterdir() if path.suffix not in {"", ".replaced"}
    )


def replaced(journal: Journal, number: int) -> dict[str, str]:
    """Contents of the files that a patch replaced, as they lie in the journal, by inode."""
    folder = journal.cwd.parent / "home" / "codex-py" / "journal" / f"{number}.replaced"
    return {
        str(path.stat().st_ino): path.read_text(encoding="utf-8")
        for path in folder.iterdir()
    }


@pytest.mark.parametrize("kept", [transaction.MAX_KEPT, 100])
def test_a_patch_that_is_killed_leaves_all_of_the_old_or_all_of_the_new(
    made: Journal, monkeypatch: pytest.MonkeyPatch, kept: int
):
    # With a small limit, `big` is set aside instead of being written down.
    monkeypatch.setattr(transaction, "MAX_KEPT", kept)
    old = tree(made.cwd)
    patch(made, *ALL_KINDS)
    new = tree(made.cwd)
    assert old != new
    outcomes = {"old": 0, "new": 0}
    for moment in count():
        restore(made.cwd, old)
        if not killed_at(moment, lambda: patch(made, *ALL_KINDS)):
            break
        made.recover()
        now = tree(made.cwd)
        assert now in (old, new), f"killed at {moment}"
        outcomes["new" if now == new else "old"] += 1
        assert all(name.endswith(".committed") for name in files(made))
        if now == old:
            assert (made.cwd / "hard").samefile(made.cwd / "linked")
    assert tree(made.cwd) == new
    assert outcomes["old"] > 20
    assert outcomes["new"] > 1


def test_an_undo_that_is_killed_leaves_all_or_nothing(made: Journal):
    old = tree(made.cwd)
    patch(made, *ALL_KINDS)
    new = tree(made.cwd)
    for moment in count():
        if not killed_at(moment, lambda: plan_undo(made).commit()):
            break
        made.recover()
        now = tree(made.cwd)
        assert now in (old, new), f"killed at {moment}"
        if now == old:
            patch(made, *ALL_KINDS)
    assert tree(made.cwd) == old


@pytest.mark.parametrize("moment", sample(range(8, 40, 4)))
def test_a_recovery_that_is_killed_is_begun_again(made: Journal, moment: int):
    old = tree(made.cwd)
    for second in count():
        restore(made.cwd, old)
        assert killed_at(moment, lambda: patch(made, *ALL_KINDS))
        killed = killed_at(second, made.recover)
        made.recover()
        assert tree(made.cwd) == old, f"killed at {moment}, then at {second}"
        if not killed:
            break
    assert files(made) == []


def restore(root: Path, wanted: dict[str, tuple[int, bytes]]) -> None:
    """Make a tree as it was, apart from the links of `hard`."""
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
    for name, (mode, contents) in wanted.items():
        path = root / name
        if name == "linked":
            path.hardlink_to(root / "hard")
        elif stat.S_ISLNK(mode):
            path.symlink_to(os.fsdecode(contents))
        elif stat.S_ISDIR(mode):
            path.mkdir()
        else:
            path.write_bytes(contents)
            path.chmod(mode & 0o7777)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any folder")
def test_a_file_in_a_folder_that_may_not_be_written_is_overwritten_in_place(
    made: Journal,
):
    old = tree(made.cwd)
    made.cwd.chmod(0o555)
    try:
        for moment in count():
            if not killed_at(
                moment, lambda: patch(made, "*** Update File: plain", "-1", "+2", "+3")
            ):
                break
            made.recover()
            assert tree(made.cwd) == old, f"killed at {moment}"
    finally:
        made.cwd.chmod(0o755)
    assert (made.cwd / "plain").read_text(encoding="utf-8") == "2\n3\n"


def test_changes_that_another_process_is_making_are_left_alone(made: Journal):
    assert killed_at(15, lambda: patch(made, *ALL_KINDS))
    before, names = tree(made.cwd), files(made)
    assert names == ["1.prepared"]
    with (made.cwd.parent / "home/codex-py/journal/lock").open(
        "w", encoding="utf-8"
    ) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert made.recover() == []
        assert (tree(made.cwd), files(made)) == (before, names)
    assert made.recover() == [
        f"A patch in {made.cwd} was cut off while it was written; it has been taken back."
    ]
    assert made.recover() == []


def test_the_next_patch_recovers_what_the_last_one_left(made: Journal):
    old = tree(made.cwd)
    assert killed_at(15, lambda: patch(made, *ALL_KINDS))
    committed = patch(made, "*** Add File: ../other", "+x")
    assert tree(made.cwd) == old
    assert committed.notes == (
        f"A patch in {made.cwd} was cut off while it was written; it has been taken back.",
    )


def test_a_file_that_was_edited_after_the_cut_is_not_overwritten(made: Journal):
    old = tree(made.cwd)
    for moment in count():
        assert killed_at(moment, lambda: patch(made, *ALL_KINDS))
        if tree(made.cwd).get("plain", old["plain"])[1] == b"2\n":
            break
        made.recover()
    (made.cwd / "plain").write_text("mine\n", encoding="utf-8")
    assert made.recover() == [
        f"A patch in {made.cwd} was cut off while it was written; it has been taken back, but for "
        f"what was edited since: {made.cwd}/plain."
    ]
    assert tree(made.cwd) == {**old, "plain": (old["plain"][0], b"mine\n")}
    assert files(made) == ["1.interrupted"]
    # What was there before is still to be had.
    assert next(c.old for c in made.read(1).changes if c.name == "plain") == b"1\n"


def test_replaced_files_are_moved_into_the_journal_and_can_be_restored(
    made: Journal,
):
    plain, gone = made.cwd / "plain", made.cwd / "gone"
    inodes = [str(path.stat().st_ino) for path in (plain, gone)]
    patch(made, "*** Update File: plain", "-1", "+2", "*** Delete File: gone")
    assert replaced(made, 1) == dict(zip(inodes, ["1\n", "g\n"], strict=True))
    assert [change.old for change in made.read(1).changes] == [b"1\n", b"g\n"]
    # The new contents are a copy: what is done to the file later does not change what is kept.
    with plain.open("a", encoding="utf-8") as stream:
        stream.write("more\n")
    assert [change.new for change in made.read(1).changes] == [b"2\n", None]


def test_the_journal_may_be_moved(made: Journal):
    patch(made, "*** Update File: plain", "-1", "+2")
    home = made.cwd.parent / "home"
    moved = Journal(home.rename(home.with_name("elsewhere")), made.cwd)
    assert [change.old for change in moved.read(1).changes] == [b"1\n"]


def test_a_process_with_a_replaced_file_open_does_not_change_the_restored_one(
    made: Journal,
):
    with (made.cwd / "plain").open("a", encoding="utf-8") as stream:
        patch(made, "*** Update File: plain", "-1", "+2")
        stream.write("more\n")
    with pytest.raises(DamagedEntry, match=r"what was in .*plain has been changed"):
        made.read(1)


@pytest.mark.parametrize(("code", "first"), [(errno.EXDEV, 0), (errno.EACCES, 2)])
def test_replaced_files_that_cannot_be_moved_into_the_journal_are_copied(
    made: Journal, monkeypatch: pytest.MonkeyPatch, code: int, first: int
):
    # As between two mounts of one device, and where not every file may be moved.
    real, left = os.rename, first

    def rename(source: Path | str, target: Path | str, **handles: int) -> None:
        nonlocal left
        if str(target).isdecimal():
            left -= 1
            if left < 0:
                raise OSError(code, os.strerror(code))
        real(source, target, **handles)

    monkeypatch.setattr(os, "rename", rename)
    check_each_kill(made)
    left = first
    number = patch(made, *ALL_KINDS).number
    assert number is not None
    assert len(replaced(made, number)) == first


def test_a_journal_on_another_file_system_has_copies(made: Journal):
    shared_memory = Path("/dev/shm")
    if (
        not shared_memory.is_dir()
        or shared_memory.stat().st_dev == made.cwd.stat().st_dev
    ):
        pytest.skip("there is no other file system")
    with tempfile.TemporaryDirectory(dir=shared_memory) as home:
        check_each_kill(Journal(Path(home), made.cwd))
        assert not list(Path(home).rglob("*.replaced"))


def check_each_kill(journal: Journal) -> None:
    """That a patch can be undone, and leaves all of the old or all of the new whenever it is killed."""
    old = tree(journal.cwd)
    patch(journal, *ALL_KINDS)
    new = tree(journal.cwd)
    for moment in count():
        if tree(journal.cwd) == new:
            plan_undo(journal).commit()
        assert tree(journal.cwd) == old, f"killed at {moment - 1}"
        if not killed_at(moment, lambda: patch(journal, *ALL_KINDS)):
            break
        journal.recover()
    assert tree(journal.cwd) == new
    plan_undo(journal).commit()
    assert tree(journal.cwd) == old


def test_patches_of_several_processes_take_turns(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "counter").write_text("0\n", encoding="utf-8")
    program = """
import sys
from pathlib import Path
from codex_py.errors import PatchError
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.journal import Journal

root = Path(sys.argv[1])
for _ in range(20):
    while True:
        # Between the two renames of another process, the name is missing.
        try:
            now = int((root / "counter").read_text(encoding="utf-8"))
            patch = f"*** Begin Patch\\n*** Update File: counter\\n-{now}\\n+{now + 1}\\n*** End Patch"
            plan_patch(patch, root).commit(Journal(root.parent / "home", root))
        except (FileNotFoundError, PatchError):
            continue
        break
"""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(root)], stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    ended = [
        (process.communicate(timeout=120)[1], process.returncode) for process in running
    ]
    assert ended == [(b"", 0)] * 3
    assert (root / "counter").read_text(encoding="utf-8") == "60\n"
    assert sorted(files(Journal(tmp_path / "home", root))) == sorted(
        f"{n}.committed" for n in range(1, 61)
    )


def test_a_lock_that_is_never_let_go_ends_in_an_error(made: Journal):
    with made.locked():
        started = time.monotonic()
        with (
            pytest.raises(PatchError, match="does not come to an end"),
            made.locked(0.05),
        ):
            pass
        assert time.monotonic() - started < 5


def test_a_process_that_waits_for_the_lock_gets_it(made: Journal):
    got = threading.Event()

    def wait() -> None:
        with made.locked():
            got.set()

    with made.locked():
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not got.is_set()
    waiting.join(10)
    assert got.is_set()


@pytest.mark.parametrize("limit", [200, 60_000])
def test_a_full_disk_changes_nothing_and_leaves_nothing(made: Journal, limit: int):
    # The entry of the journal is some 44 kB; the file beside its place is larger still.
    (made.cwd / "plain").write_text("1\n" + "x\n" * 10_000, encoding="utf-8")
    old = tree(made.cwd)
    plan = plan_patch(
        enveloped(
            "*** Update File: run", "-a", "+b", "*** Update File: plain", "-1", "+2"
        ),
        made.cwd,
    )
    if limit > 200:
        plan = plan_patch(
            enveloped(
                "*** Update File: run",
                "-a",
                "+b",
                "*** Add File: large",
                *["+" + "y" * 99] * 900,
            ),
            made.cwd,
        )
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(PatchError, match=r"\(os error 27\)$") as caught:
            plan.commit(made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.kind == "file"
    assert tree(made.cwd) == old
    assert files(made) == []


def test_patches_are_applied_even_if_no_journal_can_be_kept(tmp_path: Path):
    (tmp_path / "home").write_text("no folder", encoding="utf-8")
    committed = patch(Journal(tmp_path / "home", tmp_path), "*** Add File: a", "+x")
    assert (tmp_path / "a").read_text(encoding="utf-8") == "x\n"
    assert committed.number is None
    assert committed.notes == (
        "This patch cannot be undone: no journal is kept: Not a directory (os error 20).",
    )


def test_the_journal_is_for_its_owner_alone(made: Journal):
    patch(made, *ALL_KINDS)
    folder = made.cwd.parent / "home" / "codex-py" / "journal"
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (folder, *folder.iterdir())
    }
    assert modes == {
        "journal": 0o700,
        "1.committed": 0o600,
        "1.replaced": 0o700,
        "lock": 0o600,
    }


def test_the_journal_forgets_what_is_too_old_too_much_or_too_many(
    made: Journal, monkeypatch: pytest.MonkeyPatch
):
    def add(n: int) -> None:
        patch(made, f"*** Add File: n{n}", "+" + "x" * 1000)

    for n in range(1, 5):
        add(n)
    folder = made.cwd.parent / "home" / "codex-py" / "journal"
    long_ago = time.time() - journal.MAX_AGE_S - 10
    os.utime(folder / "1.committed", (long_ago, long_ago))
    add(5)
    assert made.numbers() == [5, 4, 3, 2]
    monkeypatch.setattr(journal, "MAX_ENTRIES", 3)
    add(6)
    assert made.numbers() == [6, 5, 4]
    monkeypatch.setattr(journal, "MAX_TOTAL_BYTES", 4000)
    add(7)
    assert made.numbers() == [7, 6]
    monkeypatch.setattr(journal, "MAX_TOTAL_BYTES", 100)
    add(8)
    assert made.numbers() == [8]


def test_replaced_files_count_as_part_of_the_journal_and_go_with_their_entry(
    made: Journal, monkeypatch: pytest.MonkeyPatch
):
    (made.cwd / "big").write_text("x\n" * 5000, encoding="utf-8")
    folder = made.cwd.parent / "home" / "codex-py" / "journal"
    patch(made, "*** Delete File: big")
    patch(made, "*** Update File: plain", "-1", "+2")
    monkeypatch.setattr(journal, "MAX_TOTAL_BYTES", 9000)
    # As by a process that was killed while it forgot an entry.
    shutil.copytree(folder / "1.replaced", folder / "3.replaced")
    patch(made, "*** Delete File: gone")
    assert made.numbers() == [4, 2]
    assert {path.name for path in folder.glob("*.replaced")} == {
        "2.replaced",
        "4.replaced",
    }


@pytest.mark.parametrize("state", ["prepared", "applied", "writing"])
@pytest.mark.parametrize("kept", [0, 20, 150, -1])
def test_damaged_entries_stop_nobody(made: Journal, state: str, kept: int):
    patch(made, *ALL_KINDS)
    folder = made.cwd.parent / "home" / "codex-py" / "journal"
    whole = (folder / "1.committed").read_bytes()
    (folder / f"2.{state}").write_bytes(whole[:kept])
    now = tree(made.cwd)
    told = made.recover()
    assert tree(made.cwd) == now
    assert len(told) == (0 if state == "writing" else 1)
    assert all("its record is damaged" in sentence for sentence in told)
    assert patch(made, "*** Add File: more").number == (2 if state == "writing" else 3)


def test_flipped_bits_are_noticed(made: Journal):
    patch(made, *ALL_KINDS)
    path = made.cwd.parent / "home" / "codex-py" / "journal" / "1.committed"
    whole = path.read_bytes()
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(DamagedEntry):
            made.read(1)


def test_an_entry_is_read_back_as_it_was_written(tmp_path: Path):
    odd = os.fsdecode(b"caf\xe9 \n")
    (tmp_path / odd).write_bytes(b"\xff\0")
    made = Journal(tmp_path / "home", tmp_path)
    plan = plan_patch(enveloped("*** Add File: a", "+x"), tmp_path)
    committed = plan.commit(made)
    assert committed.number == 1
    entry = made.read(1)
    assert (entry.cwd, entry.undoes, entry.made, entry.obsolete) == (
        str(tmp_path),
        None,
        [],
        [],
    )
    (only,) = entry.changes
    assert (only.path, only.before, only.old, only.new) == (
        str(tmp_path / "a"),
        None,
        None,
        b"x\n",
    )
    assert made.read(1, with_contents=False).changes[0].new is None
