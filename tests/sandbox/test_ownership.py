"""What root may do with the files of others in its workspace, and what it never leaves behind."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox
from tests.sandbox.local_backends import BACKENDS, run_in, workspace

PYTHON = os.path.realpath(sys.executable)
CHANGING = [
    each for each in BACKENDS if each.name in {"namespaces", "views", "supervised"}
]
_STRANGER = 12345

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="ordinary users own what they work on"
)


def on_each(backends: list[Backend]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "backend", backends, ids=lambda backend: backend.name
    )


def sh(backend: Backend, script: str, cwd: Path) -> tuple[int, str]:
    done = run_in(backend, ["/bin/bash", "-c", script], workspace(cwd), cwd)
    return done.returncode, done.stdout


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Of another user, as a checkout that is mounted into a container."""
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "file").write_text("text\n", encoding="ascii")
    for path in (folder, folder / "sub", folder / "file"):
        os.chown(path, _STRANGER, _STRANGER)
    return folder


@on_each(CHANGING)
@pytest.mark.parametrize(
    "script",
    [
        "chmod +x file && [ -x file ]",
        "chmod 750 sub && [ $(stat -c %a sub) = 750 ]",
        "touch -d @5 file && [ $(stat -c %Y file) = 5 ]",
        "chown 1001:1002 file && [ $(stat -c %u:%g file) = 1001:1002 ]",
        "chown -R 1001 sub && [ $(stat -c %u sub) = 1001 ]",
        "ln -s file link && chown -h 1003 link && [ $(stat -c %u link) = 1003 ]",
        "install -o 1001 -m 640 file new && [ $(stat -c %u:%a new) = 1001:640 ]",
        "cp -a file copy && [ $(stat -c %u copy) = 12345 ]",
        "tar cf a.tar sub file && rm -r sub file && tar xpf a.tar && [ $(stat -c %u file) = 12345 ]",
        "mv file sub && rm -r sub",
    ],
)
def test_root_works_on_the_files_of_others(
    backend: Backend, work: Path, script: str
) -> None:
    assert sh(backend, script, work) == (0, "")


_OUTSIDE = """
import os, sys
def attempt(act):
    try:
        act()
        print("CHANGED", act)
    except OSError:
        pass
for path in sys.argv[1:]:
    attempt(lambda: os.chown(path, 1001, 1001))
    attempt(lambda: os.chmod(path, 0o777))
    attempt(lambda: os.utime(path, (5, 5)))
    with open(path) if not os.path.isdir(path) else os.fdopen(os.open(path, os.O_RDONLY)) as file:
        attempt(lambda: os.fchown(file.fileno(), 1001, 1001))
        attempt(lambda: os.fchmod(file.fileno(), 0o777))
        attempt(lambda: os.chown(f"/proc/self/fd/{file.fileno()}", 1001, 1001))
for descriptor in 0, 2:
    attempt(lambda: os.fchown(descriptor, 1001, 1001))
"""


def unread(path: Path) -> tuple[int, ...]:
    """The status of a file but for the time at which it was read last."""
    found = path.stat()
    return (
        found.st_mode,
        found.st_uid,
        found.st_gid,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


@on_each(CHANGING)
def test_root_changes_no_owner_outside(backend: Backend, work: Path) -> None:
    outside = work.parent / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (work / "link").symlink_to(outside / "file")
    (work / ".git").mkdir()
    (work / ".git/config").touch()
    paths = [
        outside,
        outside / "file",
        work / "link",
        work / ".git",
        work / ".git/config",
    ]
    for path in paths:
        os.chown(path, _STRANGER, _STRANGER)
    before = [unread(path) for path in paths]
    words = [
        str(path) for path in (*paths, "/etc/passwd", "/dev/null", "/proc/version", "/")
    ]
    done = run_in(
        backend, [PYTHON, "-I", "-c", f"import os; os.dup2(0, 2)\n{_OUTSIDE}", *words],
        workspace(work), work,
    )  # fmt: skip
    assert done.stdout == ""
    assert [unread(path) for path in paths] == before


_GIVEN = """
import os
def attempt(act):
    try:
        act()
    except OSError:
        pass
for descriptor in 0, 1:
    attempt(lambda: os.fchown(descriptor, 1, 1))
    attempt(lambda: os.fchmod(descriptor, 0o777))
"""


@on_each(BACKENDS)
def test_root_changes_no_owner_of_what_it_was_given(
    backend: Backend, work: Path
) -> None:
    given = work.parent / "given"
    given.touch()
    os.chown(given, _STRANGER, _STRANGER)
    before = given.stat()
    pipe = work.parent / "pipe"
    os.mkfifo(pipe)
    sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
    argv = sandbox.command([PYTHON, "-I", "-c", _GIVEN], workspace(work), work)
    with given.open("rb") as stdin, pipe.open("rb+", buffering=0) as stdout:
        owner = os.fstat(stdout.fileno()).st_uid
        subprocess.run(argv, cwd=work, stdin=stdin, stdout=stdout, check=True)
        assert os.fstat(stdout.fileno()).st_uid == owner
    sandbox.release()
    assert (given.stat().st_uid, given.stat().st_mode) == (
        before.st_uid,
        before.st_mode,
    )


_SET_USER = """
import ctypes, os, stat
libc = ctypes.CDLL(None, use_errno=True)
open("own", "w").close()
def attempt(act):
    try:
        act()
    except OSError:
        pass
attempt(lambda: os.chmod("own", 0o4755))
attempt(lambda: os.chmod("own", 0o6711))
attempt(lambda: os.fchmod(os.open("own", os.O_RDONLY), 0o4755))
attempt(lambda: os.chmod("own", 0o4755, dir_fd=os.open(".", os.O_RDONLY)))
attempt(lambda: os.open("made", os.O_CREAT | os.O_WRONLY, 0o4755))
attempt(lambda: os.mknod("node", stat.S_IFREG | 0o4755))
attempt(lambda: os.link(f"/proc/self/fd/{os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755)}", "unnamed"))
libc.creat(b"created", 0o4755)
libc.syscall(452, -100, b"own", 0o4755, 0)
how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0)
libc.syscall(437, -100, b"opened", how, 24)
os.chmod("own", 0o755)
os.umask(0)
os.close(os.open("plain", os.O_CREAT | os.O_WRONLY, 0o2755))
"""


@on_each(BACKENDS)
def test_root_leaves_no_program_that_makes_root_of_others(
    backend: Backend, work: Path
) -> None:
    done = run_in(backend, [PYTHON, "-I", "-c", _SET_USER], workspace(work), work)
    assert done.returncode == 0, done.stdout
    modes = {path.name: path.stat().st_mode for path in work.iterdir()}
    assert [name for name, mode in modes.items() if mode & stat.S_ISUID] == []
    assert {"own", "plain"} <= modes.keys()
