"""What a command can do where Landlock holds it and we help, and what it cannot.

Also tests `sandbox/child/notifications.py`, `sandbox/child/notified.py`,
`sandbox/child/path_policy.py` and `sandbox/child/supervised.py`.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.child.seccomp import SUPERVISED_CALLS
from codex_py.sandbox.child.supervisor import CALLS
from codex_py.sandbox.child.system_calls import numbers_on
from codex_py.sandbox.choice import PlatformSandbox
from tests.sandbox.local_backends import BACKENDS, run_in, workspace
from tests.support.lifeline import Lifeline

SUPERVISED = [backend for backend in BACKENDS if backend.name == "supervised"]
PYTHON = os.path.realpath(sys.executable)

pytestmark = pytest.mark.skipif(
    not SUPERVISED, reason="needs Landlock, and to be asked"
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    (folder / "src/code.py").write_text("x\n", encoding="ascii")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def sh(
    script: str, folder: Path, policy: SandboxPolicy | None = None
) -> tuple[int, str]:
    done = run_in(
        SUPERVISED[0], ["/bin/bash", "-c", script], policy or workspace(folder), folder
    )
    return done.returncode, done.stdout


def python(code: str, folder: Path) -> tuple[int, str]:
    done = run_in(SUPERVISED[0], [PYTHON, "-I", "-c", code], workspace(folder), folder)
    return done.returncode, done.stdout


def test_new_entries_beside_git_are_as_any_others(repository: Path) -> None:
    script = (
        "umask 027 && touch new && mkdir -p build/a build/b/ && echo x >build/a/f && echo y >>build/a/f"
        " && mv build/a build/b && ln -s build/b/a/f link && ln new hard && echo z >>link && mkfifo pipe"
        " && sed -i s/x/X/ link && cp -a src copy && rm -r src && mkdir src && touch src/again"
        " && stat -c '%a %n' new build pipe && cat link && rm -rf build copy link hard pipe && ls"
    )
    assert sh(script, repository) == (
        0,
        "640 new\n750 build\n640 pipe\nX\ny\nz\nnew\nsrc\n",
    )


def test_a_newer_call_that_opens_is_missing_and_not_refused(repository: Path) -> None:
    code = """
import ctypes, errno
how = (ctypes.c_uint64 * 3)(0o101, 0o644, 0)
libc = ctypes.CDLL(None, use_errno=True)
# Who is told so falls back to `openat`.
assert libc.syscall(437, -100, b"new", how, 24) < 0 and ctypes.get_errno() == errno.ENOSYS
"""
    assert python(code, repository) == (0, "")


def test_a_file_is_opened_with_the_flags_of_the_command(repository: Path) -> None:
    code = """
import os
new = os.open("new", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o640)
assert os.write(new, b"abc") == 3 and os.pread(new, 3, 0) == b"abc" and not os.get_inheritable(new)
for flags, error in (
    (os.O_CREAT | os.O_EXCL | os.O_WRONLY, FileExistsError),
    (os.O_WRONLY | os.O_DIRECTORY, NotADirectoryError),
    (os.O_WRONLY | os.O_NOFOLLOW, None),
):
    try:
        os.close(os.open("new", flags))
        assert error is None
    except OSError as caught:
        assert type(caught) is error, caught
os.symlink("new", "link")
os.symlink("dangling-target", "dangling")
assert open("link", "a").write("d") == 1
assert open("dangling", "w").write("made") == 4 and open("dangling-target").read() == "made"
try:
    os.open("link", os.O_WRONLY | os.O_NOFOLLOW)
    raise AssertionError
except OSError as caught:
    assert caught.errno == 40, caught
for path, error in (("no/file", FileNotFoundError), ("new/file", NotADirectoryError), ("", FileNotFoundError)):
    try:
        open(path, "w")
        raise AssertionError
    except OSError as caught:
        assert type(caught) is error, caught
with open("new", "r+") as file:
    file.truncate(2)
folder = os.open("src", os.O_RDONLY)
os.mkdir("deep", dir_fd=folder)
os.chdir("src/deep")
os.rename("../code.py", "../../moved.py")
assert open("/proc/self/cwd/../there", "w").write("x") and os.listdir("..") == os.listdir(folder)
print(open("../../new").read())
"""
    assert python(code, repository) == (0, "ab\n")


def test_attributes_are_changed_in_the_workspace_alone(
    repository: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.touch(mode=0o600)
    before = outside.stat()
    code = f"""
import os
outside = {str(outside)!r}
git = ".git/config"
for path in ("src/code.py", "src", "."):
    os.chmod(path, 0o700)
    os.utime(path, ns=(5, 7_000_000_001))
    os.chown(path, -1, os.getgid())
    assert (os.stat(path).st_mode & 0o777, os.stat(path).st_mtime_ns) == (0o700, 7_000_000_001), path
with open("src/code.py") as file:
    os.fchmod(file.fileno(), 0o640)
    os.utime(file.fileno(), (8, 9))
    assert (os.stat("src/code.py").st_mode & 0o777, os.stat("src/code.py").st_mtime) == (0o640, 9)
os.symlink(outside, "link")
os.utime("link", (1, 2), follow_symlinks=False)
pipe, _ = os.pipe()
os.fchmod(pipe, 0o600)
opened, opened_git = os.open(outside, os.O_RDONLY), os.open(git, os.O_RDONLY)
folder = os.open(os.path.dirname(outside), os.O_RDONLY)
tries = [
    lambda path: os.chmod(path, 0o666),
    lambda path: os.utime(path),
    lambda path: os.utime(path, (1, 2)),
    lambda path: os.chown(path, -1, os.getgid()),
]
for path in (outside, git, "link", opened, opened_git, f"/proc/self/fd/{{opened}}"):
    for change in tries:
        try:
            change(path)
            print("changed", path)
        except PermissionError:
            pass
for change in (
    lambda: os.chmod("outside", 0o666, dir_fd=folder),
    lambda: os.setxattr(outside, "user.x", b"x"),
    lambda: os.chmod("", 0o666),
):
    try:
        change()
        print("changed")
    except OSError:
        pass
"""
    assert python(code, repository) == (0, "")
    after = outside.stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def test_names_that_are_swapped_while_we_look_do_not_get_out(
    repository: Path, tmp_path: Path
) -> None:
    code = """
import ctypes, os, threading, time
libc = ctypes.CDLL(None, use_errno=True)
good, bad = b"aaaaaaaaaaaaa\\0", b".git/hooks/xx\\0"
name = ctypes.create_string_buffer(bad)
done = False
def swap():
    while not done:
        ctypes.memmove(name, good, len(good))
        ctypes.memmove(name, bad, len(bad))
def move():
    while not done:
        for path in ("d", "e"):
            try:
                os.symlink(".git/hooks", path) if path == "d" else os.mkdir(path)
                os.rename("d", "f"); os.rename("e", "d"); os.rename("f", "e")
                os.unlink("e"); os.rmdir("d")
            except OSError:
                pass
threads = [threading.Thread(target=swap), threading.Thread(target=move)]
for thread in threads:
    thread.start()
tries, end = 0, time.monotonic() + 10
while tries < 1500 and time.monotonic() < end:
    tries += 1
    fd = libc.open(name, os.O_CREAT | os.O_WRONLY, 0o644)
    if fd >= 0:
        os.close(fd)
    libc.mkdir(name, 0o755)
    fd = libc.open(b"d/xx", os.O_CREAT | os.O_WRONLY, 0o644)
    if fd >= 0:
        os.close(fd)
done = True
print("tried")
"""
    hooks = sorted(path.name for path in (repository / ".git/hooks").iterdir())
    assert python(code, repository) == (0, "tried\n")
    assert sorted(path.name for path in (repository / ".git/hooks").iterdir()) == hooks


def test_folders_with_something_protected_stay_where_they_are(tmp_path: Path) -> None:
    inner = tmp_path / "between/inner"
    (inner / ".codex").mkdir(parents=True)
    script = (
        "mv between moved; mv between/inner moved; rmdir between/inner/.codex; mkdir x; mv -T x between;"
        " mv --exchange x between; ln -s x .agents; mv x .aws; touch between/new between/inner/new"
    )
    sh(script, tmp_path, workspace(tmp_path, inner))
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        *("between", "between/inner", "between/inner/.codex", "between/inner/new"),
        *("between/new", "x"),
    ]


def test_descriptors_of_the_supervisor_are_not_changed(repository: Path) -> None:
    # One is the agent's pipe, without which no command would start any more.
    code = """
import os
for number in range(3, 20):
    for name in f"/dev/fd/{number}", f"/proc/./self/fd/{number}", f"/proc/{os.getppid()}/fd/{number}":
        try:
            os.chmod(name, 0)
            print(name)
        except OSError:
            continue
"""
    assert python(code, repository) == (0, "")


def test_a_pipe_waits_for_its_other_end_alone(repository: Path) -> None:
    script = "mkfifo p; (touch before; echo through >p; touch after) & touch other; cat p; wait; ls"
    output = "through\nafter\nbefore\nother\np\nsrc\n"
    assert sh(script, repository) == (0, output)
    # One that nobody opens ends with the command.
    assert sh("(echo lost >p) & echo done", repository) == (0, "done\n")


def test_processes_that_are_left_behind_end_with_the_command(tmp_path: Path) -> None:
    script = (
        "setsid sh -c 'echo $$ >pid; exec sleep 600' & while ! test -s pid; do :; done"
    )
    assert sh(script, tmp_path)[0] == 0
    pid = int((tmp_path / "pid").read_text(encoding="ascii"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_call_with_arguments_that_make_no_sense_fails_alone(repository: Path) -> None:
    code = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
os.mkfifo("pipe")
long, size, bad = 1 << 63, 0xFFFFFFFFFFFFFFFF, 8
numbers = {"chown": 92, "mkdir": 83, "open": 2, "utimensat": 280, "mknod": 133, "fchmodat": 268}
if os.uname().machine != "x86_64":
    numbers = {"utimensat": 88, "fchmodat": 53}
for number in numbers.values():
    for words in (
        (b"src", 0x80000000, 0), (b"src", 0xFFFFFFFE, 0x80000001), (b"src", size, size), (-1, b"src", size, size),
        (-100, b"src", bad, long), (bad, bad, bad, bad), (b"\\xff\\xfe", long, long), (long, long, long, long),
        (-100, b"src", b"\\xff" * 32, 0),
    ):
        libc.syscall(number, *(ctypes.c_long(w) if isinstance(w, int) else w for w in words))
os.mkdir("still answered")
print("done")
"""
    assert python(code, repository) == (0, "done\n")


def test_an_owner_may_have_any_number(repository: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    code = "import os; os.chown('src/code.py', 0x80000000, 0xFFFFFFFE)"
    status, output = python(code, repository)
    owner = (repository / "src/code.py").stat()
    assert (status, output) == (0, "")
    assert (owner.st_uid, owner.st_gid) == (0x80000000, 0xFFFFFFFE)


def test_pipes_that_nobody_opens_do_not_use_up_the_supervisor(repository: Path) -> None:
    code = """
import os, threading
os.mkfifo("pipe")
def open_pipe():
    try:
        os.close(os.open("pipe", os.O_WRONLY))
    except OSError:
        pass
threads = [threading.Thread(target=open_pipe, daemon=True) for _ in range(300)]
for thread in threads:
    thread.start()
os.mkdir("still answered")
print("done", flush=True)
os._exit(0)
"""
    assert python(code, repository) == (0, "done\n")


@pytest.mark.parametrize("victim", ["agent", "group"])
def test_nothing_survives_a_killed_agent_or_group(
    repository: Path, victim: str
) -> None:
    with Lifeline(repository) as line:
        sandbox = PlatformSandbox(dict(os.environ), backends=SUPERVISED)
        script = f"{line.hold} env -i setsid sh -c 'echo up >&9; sleep 600 & sleep 600' & sleep 600"
        argv = sandbox.command(
            ["/bin/bash", "-c", script], workspace(repository), repository
        )
        starting = "import subprocess, sys; subprocess.run(sys.argv[1:], start_new_session=True)"
        agent = subprocess.Popen(
            [sys.executable, "-c", starting, *argv],
            cwd=repository,
            stdin=subprocess.DEVNULL,
        )
        line.wait_until_up(2)
        if victim == "agent":
            agent.kill()
        else:
            (child,) = (
                Path(f"/proc/{agent.pid}/task/{agent.pid}/children")
                .read_text("ascii")
                .split()
            )
            os.killpg(int(child), signal.SIGKILL)
        line.wait_until_dead()
        agent.wait()
        sandbox.release()


def test_many_processes_and_threads_are_answered(repository: Path) -> None:
    code = """
import os
from concurrent.futures import ThreadPoolExecutor
def work(number):
    for step in range(20):
        path = f"new/{os.getpid()}-{number}-{step}"
        os.mkdir(path)
        with open(f"{path}/f", "x") as file:
            file.write("x")
        os.rename(f"{path}/f", f"{path}/g")
os.mkdir("new")
children = [os.fork() for _ in range(2)]
with ThreadPoolExecutor(4) as pool:
    list(pool.map(work, range(4)))
if 0 not in children:
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    print(len(os.listdir("new")))
"""
    assert python(code, repository) == (0, "320\n")


def test_signals_do_not_interrupt_the_start_of_a_process(repository: Path) -> None:
    code = """
import os, signal
# Without SA_RESTART, as in shells.
signal.signal(signal.SIGCHLD, lambda *_: None)
for _ in range(1000):
    if not os.fork():
        os._exit(0)
print("started")
"""
    assert python(code, repository) == (0, "started\n")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
def test_a_package_is_built_beside_git(repository: Path) -> None:
    (repository / "main.c").write_text(
        "int main(void) { return 7; }\n", encoding="ascii"
    )
    (repository / "Makefile").write_text(
        "app: main.c\n\tgcc -o app main.c\n", encoding="ascii"
    )
    policy = SandboxPolicy("workspace-write", (repository,))
    assert sh("gcc -c main.c && gcc main.o && ./a.out", repository, policy) == (7, "")


def test_an_answer_belongs_to_its_question() -> None:
    assert set(CALLS) == {*SUPERVISED_CALLS, "open", "openat"}
    assert set(CALLS) <= set(numbers_on("x86_64"))
