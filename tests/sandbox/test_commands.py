"""What commands can do all the same, on every way to hold them that this machine has.

Tests `sandbox/backends/linux.py`, `sandbox/child/landlock.py` and
`sandbox/child/launcher.py`.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.child.landlock import version
from codex_py.sandbox.choice import PlatformSandbox
from tests.sandbox.local_backends import BACKENDS, run_in, workspace
from tests.support.lifeline import Lifeline

_SCOPES_SINCE = 6
PYTHON = os.path.realpath(sys.executable)
GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"]

pytestmark = pytest.mark.parametrize(
    "backend", BACKENDS, ids=lambda backend: backend.name
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    for path, text in {
        "sub/code.py": "def two():\n    return 2\n",
        "sub/test_code.py": "import unittest\nfrom code_ import two\n",
        "main.c": "int main(void) { return 7; }\n",
    }.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="ascii")
    subprocess.run([*GIT, "init", "-q"], cwd=folder, check=True)
    subprocess.run([*GIT, "add", "."], cwd=folder, check=True)
    subprocess.run([*GIT, "commit", "-qm", "first"], cwd=folder, check=True)
    return folder


def sh(
    backend: Backend, script: str, policy: SandboxPolicy, cwd: Path
) -> tuple[int, str]:
    done = run_in(backend, ["/bin/bash", "-c", script], policy, cwd)
    code = done.returncode
    return code if code >= 0 else 128 - code, done.stdout


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 3", 3),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("kill -0 $$", 0),
        ("nosuch", 127),
    ],
)
def test_the_exit_code_is_the_commands_own(
    backend: Backend, tmp_path: Path, script: str, code: int
) -> None:
    assert sh(backend, script, SandboxPolicy(), tmp_path)[0] == code


def test_a_program_that_is_not_there_is_named(backend: Backend, tmp_path: Path) -> None:
    done = run_in(backend, ["no-such-program"], SandboxPolicy(), tmp_path)
    assert done.returncode != 0
    assert "no-such-program" in done.stdout


def test_in_a_read_only_sandbox_everything_is_read_and_nothing_written(
    backend: Backend, tmp_path: Path
) -> None:
    (tmp_path / "kept").write_text("kept", encoding="ascii")
    script = "cat kept; cat /etc/hostname >/dev/null; echo x >new || echo y >kept || echo z >/tmp/new"
    code, output = sh(backend, script, SandboxPolicy(), tmp_path)
    assert code == 1
    assert output.startswith("kept")
    assert (tmp_path / "kept").read_text(encoding="ascii") == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_devices_that_keep_nothing_can_be_written(
    backend: Backend, tmp_path: Path
) -> None:
    script = (
        "echo x >/dev/null && echo x >/dev/zero && head -c 2 /dev/urandom | wc -c"
        " && echo out >/dev/stdout && echo err >/dev/stderr && cat <(echo sub)"
    )
    assert sh(backend, script, SandboxPolicy(), tmp_path) == (0, "2\nout\nerr\nsub\n")


def test_files_in_the_workspace_can_be_changed(
    backend: Backend, tmp_path: Path
) -> None:
    script = (
        "mkdir -p a/b && echo x >a/b/c && mv a/b/c a/d && ln a/d a/e && ln -s d a/f && chmod 600 a/d"
        " && cp a/d g && rm a/e && truncate -s 0 g && sed -i s/x/y/ a/d && cat a/f && touch -d @5 a/d"
    )
    assert sh(backend, script, workspace(tmp_path), tmp_path) == (0, "y\n")


def test_folders_for_temporary_files_can_be_written(
    backend: Backend, tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    work = tmp_path / "work"
    temporary.mkdir()
    work.mkdir()
    policy = SandboxPolicy("workspace-write", (work,), exclude_slash_tmp=True)
    done = run_in(
        backend,
        [
            "/bin/bash",
            "-c",
            "cat <<END\nheredoc\nEND\nmktemp >/dev/null && touch ../new",
        ],
        policy,
        work,
        {"TMPDIR": str(temporary)},
    )
    assert done.stdout.startswith("heredoc\n")
    assert done.returncode == 1
    assert len(list(temporary.iterdir())) == 1
    without = SandboxPolicy(
        "workspace-write", (work,), exclude_slash_tmp=True, exclude_tmpdir_env_var=True
    )
    done = run_in(backend, ["mktemp"], without, work, {"TMPDIR": str(temporary)})
    assert done.returncode == 1


def test_slash_tmp_is_writable_unless_it_is_excluded(
    backend: Backend, tmp_path: Path
) -> None:
    policy = SandboxPolicy("workspace-write", (tmp_path,), exclude_tmpdir_env_var=True)
    script = "file=$(mktemp /tmp/codex-py-XXXXXX) && rm $file"
    assert sh(backend, script, policy, tmp_path) == (0, "")
    assert sh(backend, script, workspace(tmp_path), tmp_path)[0] == 1


def test_git_reads_and_does_not_write(backend: Backend, repository: Path) -> None:
    (repository / "main.c").write_text(
        "int main(void) { return 8; }\n", encoding="ascii"
    )
    script = "git -c safe.directory='*' status --short && git -c safe.directory='*' diff --stat"
    code, output = sh(backend, script, workspace(repository), repository)
    assert (code, output.splitlines()[0]) == (0, " M main.c")
    code, _ = sh(
        backend,
        "git -c safe.directory='*' commit -qam x",
        workspace(repository),
        repository,
    )
    assert code != 0


def test_git_reads_a_folder_whose_git_is_held_away(
    backend: Backend, repository: Path
) -> None:
    code, output = sh(
        backend,
        "git -c safe.directory='*' rev-parse --show-toplevel",
        workspace(repository / "sub"),
        repository / "sub",
    )
    assert (code, output) == (0, f"{repository}\n")
    assert sorted(path.name for path in (repository / "sub").iterdir()) == [
        "code.py",
        "test_code.py",
    ]


def test_python_runs_tests_and_keeps_its_caches(
    backend: Backend, tmp_path: Path
) -> None:
    (tmp_path / "code_.py").write_text("TWO = 2\n", encoding="ascii")
    (tmp_path / "test_it.py").write_text(
        "import asyncio, multiprocessing, unittest\nfrom code_ import TWO\n"
        "async def nothing(): pass\n"
        "class T(unittest.TestCase):\n"
        "    def test_it(self):\n        self.assertEqual(TWO, 2)\n"
        "        asyncio.run(nothing())\n        multiprocessing.Pipe()\n",
        encoding="ascii",
    )
    code, output = sh(
        backend,
        f"env -u PYTHONDONTWRITEBYTECODE {PYTHON} -m unittest",
        workspace(tmp_path),
        tmp_path,
    )
    assert code == 0, output
    assert (tmp_path / "__pycache__").is_dir()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
def test_a_compiler_works(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 7; }\n", encoding="ascii")
    policy = SandboxPolicy("workspace-write", (tmp_path,))
    code, output = sh(backend, "gcc main.c && ./a.out", policy, tmp_path)
    assert code == 7, output


def test_a_command_gets_no_descriptor_but_the_three(
    backend: Backend, tmp_path: Path
) -> None:
    read_end, write_end = os.pipe()
    try:
        os.set_inheritable(write_end, True)
        done = run_in(
            backend,
            ["/bin/sh", "-c", "ls /proc/self/fd | wc -l"],
            SandboxPolicy(),
            tmp_path,
            pass_fds=(write_end,) if backend.name != "bwrap" else (),
        )
    finally:
        os.close(read_end)
        os.close(write_end)
    # The three, and the one that lists.
    assert done.stdout == "4\n"


def test_signals_that_python_ignores_are_not_ignored_by_commands(
    backend: Backend, tmp_path: Path
) -> None:
    code, output = sh(backend, "grep SigIgn /proc/$$/status", SandboxPolicy(), tmp_path)
    assert (code, int(output.split()[1], 16)) == (0, 0)


def test_the_network_is_there_where_it_is_allowed(
    backend: Backend, tmp_path: Path
) -> None:
    policy = SandboxPolicy("workspace-write", (tmp_path,), network_access=True)
    done = run_in(
        backend,
        [
            PYTHON,
            "-c",
            "import socket; socket.create_server(('127.0.0.1', 0)); print('up')",
        ],
        policy,
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "up\n")


def test_names_that_were_not_there_are_gone_afterwards(
    backend: Backend, tmp_path: Path
) -> None:
    code, _ = sh(backend, "rm -rf .git .codex; touch a", workspace(tmp_path), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert code in {0, 1}


def test_names_stay_held_when_another_agent_is_done(
    backend: Backend, tmp_path: Path
) -> None:
    if backend.name == "landlock":
        pytest.skip("it holds no names")
    first, second = (
        PlatformSandbox(dict(os.environ), backends=[backend]) for _ in range(2)
    )
    policy = workspace(tmp_path)
    try:
        first.command(["true"], policy, tmp_path)
        script = "read line; mkdir .codex; echo x >.codex/config.toml"
        with subprocess.Popen(
            second.command(["/bin/sh", "-c", f"echo; {script}"], policy, tmp_path),
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as command:
            assert command.stdout is not None
            command.stdout.readline()
            first.release()
            command.communicate(b"\n")
    finally:
        first.release()
        second.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "script",
    [
        "git clean -qfd",
        "git stash -qu",
        "find . -type d -empty -not -path './.git/*' -delete",
        "rmdir .codex .claude .agents .aws",
        "mkdir old; mv .codex .claude .agents .aws old",
    ],
)
def test_names_are_held_again_after_somebody_removed_them(
    backend: Backend, repository: Path, script: str
) -> None:
    more = repository.parent / "more"
    shutil.copytree(repository, more)
    sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
    policy = workspace(repository, more)
    plant = (
        "for folder in . ../more; do for name in .codex .claude .agents .aws; do"
        " mkdir -p $folder/$name; echo {} >$folder/$name/settings.json; done; done"
    )

    def run(words: str) -> None:
        argv = sandbox.command(["/bin/sh", "-c", words], policy, repository)
        subprocess.run(argv, cwd=repository, check=False, capture_output=True)

    try:
        run("echo x >main.c")
        for folder in (repository, more):
            names = ["-c", f'git() {{ command {" ".join(GIT)} "$@"; }}; {script}']
            subprocess.run(
                ["/bin/sh", *names], cwd=folder, check=False, capture_output=True
            )
        run(plant)
    finally:
        sandbox.release()
    assert [
        path for folder in (repository, more) for path in folder.rglob("settings.json")
    ] == []


def test_leftovers_of_a_killed_agent_are_gone_after_the_next_command(
    backend: Backend, tmp_path: Path
) -> None:
    policy = workspace(tmp_path)
    # As a killed one, it does not come to `release`.
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from codex_py.protocol.approval import SandboxPolicy\n"
        "from codex_py.sandbox.choice import PlatformSandbox\n"
        "from codex_py.sandbox.choice import platform_backends\n"
        "[backend] = [r for r in platform_backends(os.environ['PATH']) if r.name == sys.argv[1]]\n"
        "policy = SandboxPolicy('workspace-write', (Path.cwd(),))\n"
        "PlatformSandbox({}, backends=[backend]).command(['true'], policy, Path.cwd())\n"
    )
    subprocess.run([sys.executable, "-c", code, backend.name], cwd=tmp_path, check=True)
    assert sh(backend, "true", policy, tmp_path)[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_a_command_signals_nobody_in_the_group_that_it_was_started_in(
    backend: Backend, tmp_path: Path
) -> None:
    if backend.name == "bwrap" or version() < _SCOPES_SINCE:
        pytest.skip("the group is that of the command too")
    sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
    command = sandbox.command(
        ["/bin/sh", "-c", "kill -KILL 0"], SandboxPolicy(), tmp_path
    )
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@"; echo survived', "sh", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )
    assert done.stdout == b"survived\n"


def test_a_command_lowers_its_own_priority(backend: Backend, tmp_path: Path) -> None:
    code = (
        "import os; os.nice(3); os.sched_setaffinity(0, os.sched_getaffinity(0));"
        " os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0));"
        " print(os.getpriority(os.PRIO_PROCESS, os.getpid()), os.sched_getscheduler(0))"
    )
    script = f'nice -n 2 {PYTHON} -c "{code}"'
    before = os.getpriority(os.PRIO_PROCESS, 0)
    nice = min(before + 5, 19)
    assert sh(backend, script, workspace(tmp_path), tmp_path) == (
        0,
        f"{nice} {os.SCHED_BATCH}\n",
    )


def test_processes_share_locks(backend: Backend, tmp_path: Path) -> None:
    code = "import multiprocessing as m; q = m.Queue(); q.put('shared'); print(q.get())"
    policy = SandboxPolicy("workspace-write", (tmp_path,))
    assert sh(backend, f'{PYTHON} -c "{code}"', policy, tmp_path) == (0, "shared\n")


def test_a_program_without_a_name_is_not_there(
    backend: Backend, tmp_path: Path
) -> None:
    done = run_in(backend, [""], SandboxPolicy(), tmp_path)
    assert done.returncode != 0
    assert "Traceback" not in done.stdout


def test_the_pointer_of_a_worktree_and_what_it_leads_to_are_held(
    backend: Backend, repository: Path
) -> None:
    if backend.name == "landlock":
        pytest.skip("the folders around it could not be written either")
    tree = repository / "tree"
    subprocess.run(
        [*GIT, "worktree", "add", "-q", str(tree)], cwd=repository, check=True
    )
    for script in (
        "echo x >tree/.git",
        "rm tree/.git",
        "echo x >.git/worktrees/tree/HEAD",
    ):
        code, _ = sh(backend, script, workspace(repository, tree), repository)
        assert code == 1
    script = "git -c safe.directory='*' status --short"
    assert sh(backend, script, workspace(tree), tree) == (0, "")


def test_a_root_that_became_a_link_is_no_root_any_more(
    backend: Backend, tmp_path: Path
) -> None:
    root, inner, outside = (
        tmp_path / "root",
        tmp_path / "root/inner",
        tmp_path / "outside",
    )
    inner.mkdir(parents=True)
    outside.mkdir()
    policy = workspace(root, inner)
    sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
    try:
        sandbox.command(["true"], policy, root)
        sandbox.release()
        inner.rmdir()
        inner.symlink_to(outside)
        command = sandbox.command(["/bin/sh", "-c", "echo x >inner/a"], policy, root)
        done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    finally:
        sandbox.release()
    assert done.returncode != 0
    assert list(outside.iterdir()) == []


def test_a_command_has_a_terminal_where_it_wants_one(
    backend: Backend, tmp_path: Path
) -> None:
    async def run() -> tuple[int | None, str]:
        sessions = ProcessSessions()
        sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
        # bash can miss a signal that comes just before it waits: it looks again when the time of `read` is up.
        script = "trap 'echo caught; exit 5' INT; echo there >/dev/tty; while :; do read -t 0.2; done"
        argv = sandbox.command(["/bin/bash", "-c", script], SandboxPolicy(), tmp_path)
        ready = asyncio.Event()
        process = sessions.spawn(
            list(argv),
            cwd=tmp_path,
            environment=dict(os.environ),
            tty=True,
            on_output=lambda _: ready.set(),
        )
        async with asyncio.timeout(120):
            await ready.wait()
            process.write(b"\x03")
            await process.finished.wait()
        output = process.all_output().text()
        await sessions.aclose()
        return process.exit_code, output

    code, output = asyncio.run(run())
    if backend.name == "bwrap":
        # Its monitor is in the same group and dies of the key: why it is not the first choice.
        assert code == 130
    else:
        assert (code, output.split()) == (5, ["there", "^Ccaught"])


def test_other_terminals_are_not_read(backend: Backend, tmp_path: Path) -> None:
    master, slave = os.openpty()
    try:
        os.write(master, b"password\n")
        script = f"cat {os.ttyname(slave)}"
        code, output = sh(backend, script, workspace(tmp_path), tmp_path)
    finally:
        os.close(slave)
        os.close(master)
    assert code != 0
    assert "password" not in output


def test_a_command_opens_its_own_terminal_by_every_name(
    backend: Backend, tmp_path: Path
) -> None:
    async def run() -> tuple[int | None, str]:
        sessions = ProcessSessions()
        sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
        script = (
            "echo one >/dev/stderr && echo two >/dev/stdout && echo three | tee /dev/stderr >/dev/null"
            " && read line </dev/stdin && echo $line >/dev/tty"
        )
        argv = sandbox.command(["/bin/bash", "-c", script], SandboxPolicy(), tmp_path)
        process = sessions.spawn(
            list(argv), cwd=tmp_path, environment=dict(os.environ), tty=True
        )
        process.write(b"typed\n")
        async with asyncio.timeout(120):
            await process.finished.wait()
        output = process.all_output().text()
        await sessions.aclose()
        sandbox.release()
        return process.exit_code, output

    code, output = asyncio.run(run())
    # What is typed comes back as an echo too, sooner or later.
    assert (code, [word for word in output.split() if word != "typed"]) == (
        0,
        ["one", "two", "three"],
    )
    assert output.split().count("typed") == 2


def test_a_terminal_has_a_name_that_leads_to_it(
    backend: Backend, tmp_path: Path
) -> None:
    code = (
        "import os; name = os.ttyname(0); there = os.stat(name); here = os.fstat(0);"
        " print(os.path.samestat(there, here), {os.ttyname(n) for n in (0, 1, 2)} == {name});"
        " os.write(os.open(name, os.O_RDWR), b'written ')"
    )
    script = f'[ "$(tty)" -ef /dev/stdin ] && {PYTHON} -I -c "{code}"'

    async def run() -> tuple[int | None, str]:
        sessions = ProcessSessions()
        sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
        argv = sandbox.command(["/bin/bash", "-c", script], SandboxPolicy(), tmp_path)
        process = sessions.spawn(
            list(argv), cwd=tmp_path, environment=dict(os.environ), tty=True
        )
        async with asyncio.timeout(120):
            await process.finished.wait()
        output = process.all_output().text()
        await sessions.aclose()
        sandbox.release()
        return process.exit_code, output

    code, output = asyncio.run(run())
    assert (code, output.split()) == (0, ["True", "True", "written"])


def test_files_and_devices_are_read_as_before(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text\n", encoding="ascii")
    script = (
        "cat file /proc/self/comm && echo in | cat /dev/stdin && head -c 1 /dev/zero | wc -c"
        " && cat /etc/passwd /sys/kernel/mm/transparent_hugepage/enabled >/dev/null && exec 5<file && cat /dev/fd/5"
        " && cat <(echo sub) && ls /dev >/dev/null && python3 --version >/dev/null"
    )
    code, output = sh(backend, script, workspace(tmp_path), tmp_path)
    assert (code, output) == (0, "text\ncat\nin\n1\ntext\nsub\n")


def test_nothing_is_left_when_the_group_is_killed(
    backend: Backend, tmp_path: Path
) -> None:
    async def run(line: Lifeline) -> int | None:
        sessions = ProcessSessions()
        sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
        script = f"{line.hold} (setsid sleep 600 &) ; sleep 600"
        argv = sandbox.command(
            ["/bin/bash", "-c", script], workspace(tmp_path), tmp_path
        )
        process = sessions.spawn(list(argv), cwd=tmp_path, environment=dict(os.environ))
        await asyncio.to_thread(line.wait_until_up)
        await process.stop(exit_code=124)
        sandbox.release()
        await sessions.aclose()
        return process.exit_code

    with Lifeline(tmp_path) as line:
        assert asyncio.run(run(line)) == 124
        line.wait_until_dead()


def test_a_command_may_clean_up_when_it_is_asked_to_end(
    backend: Backend, tmp_path: Path
) -> None:
    if backend.name == "bwrap":
        pytest.skip("its monitor dies of the signal and takes the command with it")

    async def run() -> int | None:
        sessions = ProcessSessions()
        sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
        script = (
            "trap 'echo bye >said; exit 0' TERM; echo up; while :; do sleep 0.05; done"
        )
        argv = sandbox.command(
            ["/bin/bash", "-c", script], workspace(tmp_path), tmp_path
        )
        ready = asyncio.Event()
        process = sessions.spawn(
            list(argv),
            cwd=tmp_path,
            environment=dict(os.environ),
            on_output=lambda _: ready.set(),
        )
        async with asyncio.timeout(120):
            await ready.wait()
        process.hang_up()
        async with asyncio.timeout(120):
            await process.finished.wait()
        sandbox.release()
        await sessions.aclose()
        return process.exit_code

    assert asyncio.run(run()) == 0
    assert (tmp_path / "said").read_text(encoding="ascii") == "bye\n"


def test_children_die_with_whoever_started_them(
    backend: Backend, tmp_path: Path
) -> None:
    with Lifeline(tmp_path) as line:
        sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
        argv = sandbox.command(
            ["/bin/bash", "-c", f"{line.hold} sleep 600"], workspace(tmp_path), tmp_path
        )
        starter = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import subprocess, sys; subprocess.run(sys.argv[1:])",
                *argv,
            ],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
        )
        line.wait_until_up()
        starter.kill()
        starter.wait()
        line.wait_until_dead()
        sandbox.release()


@pytest.mark.parametrize("lock", ["codex-py/journal/lock", "codex-py/undo/hash/lock"])
def test_logins_and_the_locks_of_the_home_are_hidden(
    backend: Backend, tmp_path: Path, lock: str
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    login = "codex-py/mcp-logins/server/login.json"
    for folder in (work, (home / login).parent, (home / lock).parent):
        folder.mkdir(parents=True)
    for name in ("auth.json", "config.toml", login, lock):
        (home / name).write_text("text", encoding="ascii")
    sandbox = PlatformSandbox(dict(os.environ), home=home, backends=[backend])
    script = (
        f"cd {home}; cat config.toml; cat auth.json; ls codex-py/mcp-logins; (exec 9<{lock}) && echo held;"
        " >codex-py/mcp-logins/x"
    )
    argv = sandbox.command(["/bin/sh", "-c", script], workspace(work), work)
    done = subprocess.run(argv, cwd=work, capture_output=True, check=False)
    sandbox.release()
    assert (done.returncode != 0, done.stdout.removesuffix(b"server\n")) == (
        True,
        b"text",
    )


def test_no_command_makes_a_home_that_is_not_there_yet(
    backend: Backend, tmp_path: Path
) -> None:
    if backend.name == "landlock":
        pytest.skip("it holds what exists")
    home, work = tmp_path / "user/settings", tmp_path / "work"
    for folder in (home.parent, work):
        folder.mkdir()
    policy = replace(workspace(work), exclude_tmpdir_env_var=False)
    sandbox = PlatformSandbox(
        {**os.environ, "TMPDIR": str(tmp_path)}, home=home, backends=[backend]
    )
    script = (
        f"echo >{home.parent}/beside; mkdir -p {home}; echo evil >{home}/config.toml"
    )
    argv = sandbox.command(["/bin/sh", "-c", script], policy, work)
    done = subprocess.run(argv, cwd=work, capture_output=True, check=False)
    sandbox.release()
    assert done.returncode != 0
    assert [path.name for path in home.parent.iterdir()] == ["beside"]


def test_a_stream_can_be_opened_anew_by_its_name(
    backend: Backend, tmp_path: Path
) -> None:
    sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
    script = "mkfifo pipe && (echo through >pipe &) && read line <pipe && echo $line >/dev/stdout"
    argv = sandbox.command(["/bin/sh", "-c", script], workspace(tmp_path), tmp_path)
    with (tmp_path / "out").open("wb") as out:
        subprocess.run(argv, cwd=tmp_path, stdout=out, check=True)
    sandbox.release()
    assert (tmp_path / "out").read_text(encoding="ascii") == "through\n"


def test_a_file_that_is_open_for_reading_is_not_opened_for_writing(
    backend: Backend, tmp_path: Path
) -> None:
    if backend.name == "bwrap":
        pytest.skip("it cannot: see the README")
    work, given = tmp_path / "work", tmp_path / "given"
    work.mkdir()
    given.write_text("kept\n", encoding="ascii")
    sandbox = PlatformSandbox(dict(os.environ), backends=[backend])
    argv = sandbox.command(
        ["/bin/sh", "-c", "echo lost >/proc/self/fd/0; cat"], workspace(work), work
    )
    with given.open("rb") as opened:
        done = subprocess.run(
            argv, cwd=work, stdin=opened, capture_output=True, check=True
        )
    sandbox.release()
    assert done.stdout.decode() == given.read_text(encoding="ascii") == "kept\n"


# Of one's own, as nobody else may mount; with an outer folder that is shared, as on most machines.
_MOUNTER = """
import os, subprocess, sys
from pathlib import Path
from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.sandbox.choice import platform_backends
folder = Path(sys.argv[1])
def mount(*words):
    subprocess.run(["mount", *words], check=True)
mount("-t", "tmpfs", "none", str(folder))
mount("--make-shared", str(folder))
(folder / "work").mkdir()
(folder / "later").mkdir()
[backend] = [r for r in platform_backends(os.environ["PATH"]) if r.name == sys.argv[2]]
sandbox = PlatformSandbox({}, backends=[backend])
policy = SandboxPolicy("workspace-write", (folder / "work",), exclude_slash_tmp=True)
script = "echo; read line; echo x >../later/x"
argv = sandbox.command(["/bin/sh", "-c", script], policy, folder / "work")
with subprocess.Popen(argv, cwd=folder / "work", stdin=-1, stdout=-1, stderr=-1) as command:
    if command.stdout.readline() != b"\\n":
        sys.exit(command.stderr.read().decode())
    mount("-t", "tmpfs", "none", str(folder / "later"))
    command.communicate(b"\\n")
sandbox.release()
print(os.listdir(folder / "later"))
"""


def test_a_file_system_that_is_mounted_later_cannot_be_written(
    backend: Backend, tmp_path: Path
) -> None:
    if backend.name == "bwrap":
        pytest.skip("its mounts follow those outside")
    own = ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*own, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs a user namespace")
    done = subprocess.run(
        [*own, sys.executable, "-c", _MOUNTER, str(tmp_path), backend.name],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"[]\n", b"")


def _hides_new_logins(backend: Backend) -> bool:
    """False for bwrap, whose mount on a file falls off with the file."""
    return backend.name != "bwrap"


def test_a_login_that_is_renewed_while_a_command_runs_stays_hidden(
    backend: Backend, tmp_path: Path
) -> None:
    if not _hides_new_logins(backend):
        pytest.skip("it hides the present file alone")
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (work, home / "skills"):
        folder.mkdir(parents=True)
    for name in ("auth.json", ".auth.json.part-1", "auth.json.lock", "config.toml"):
        (home / name).write_text("secret", encoding="ascii")
    (home / "skills/one").write_text("shown", encoding="ascii")
    (home / "linked").symlink_to("skills/one")
    (home / "dangling").symlink_to("nowhere")
    (home / "copy.json").symlink_to("auth.json")
    (home / "self").symlink_to(".")
    sandbox = PlatformSandbox(dict(os.environ), home=home, backends=[backend])
    script = (
        f"cd {home}; echo ready; read go; cat skills/one linked;"
        " cat auth.json copy.json self/auth.json .auth.json.part-1 .auth.json.part-2;"
        " (exec 9<auth.json.lock) && echo held; cat new; exit 0"
    )
    argv = sandbox.command(["/bin/sh", "-c", script], workspace(work), work)
    assert argv is not None
    command = subprocess.Popen(
        argv, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert command.stdin is not None
    assert command.stdout is not None
    assert command.stdout.readline() == "ready\n"
    for name in (".auth.json.part-2", "new"):
        (home / name).write_text("secret", encoding="ascii")
    (home / ".auth.json.part-2").rename(home / "auth.json")
    (home / ".auth.json.part-2").write_text("secret", encoding="ascii")
    out, _ = command.communicate("go\n", timeout=30)
    sandbox.release()
    assert out == "shownshown"


def test_a_workspace_inside_of_a_home_with_a_login_can_be_written(
    backend: Backend, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    work = home / "worktrees/one"
    (work / "folder").mkdir(parents=True)
    (home / "auth.json").write_text("secret", encoding="ascii")
    sandbox = PlatformSandbox(dict(os.environ), home=home, backends=[backend])
    script = (
        f"echo text >folder/new && cat {work}/folder/new; ls {home}/worktrees;"
        f" cat {home}/auth.json; echo >{home}/x"
    )
    argv = sandbox.command(["/bin/sh", "-c", script], workspace(work), work)
    done = subprocess.run(argv, cwd=work, capture_output=True, check=False)
    sandbox.release()
    assert done.stdout == b"text\none\n"
    assert not (home / "x").exists()


@pytest.mark.parametrize("folder", ["elsewhere", "user", "user/.codex/logins"])
def test_a_login_that_is_a_link_stays_hidden_when_it_is_renewed(
    backend: Backend, tmp_path: Path, folder: str
) -> None:
    if not _hides_new_logins(backend):
        pytest.skip("it hides the present file alone")
    home, work, elsewhere = (
        tmp_path / "user/.codex",
        tmp_path / "work",
        tmp_path / folder,
    )
    for each in (home, work, elsewhere):
        each.mkdir(parents=True, exist_ok=True)
    (elsewhere / "login.json").write_text("secret", encoding="ascii")
    (elsewhere / ".login.json.part-1").write_text("secret", encoding="ascii")
    (elsewhere / "other").write_text("shown", encoding="ascii")
    (home / "auth.json").symlink_to(elsewhere / "login.json")
    lock = home / "auth.json.lock"
    if backend.name in {"supervised", "landlock"}:
        # They show one that is made later.
        lock.touch()
    sandbox = PlatformSandbox(dict(os.environ), home=home, backends=[backend])
    script = (
        f"cd {elsewhere}; echo ready; read go; cat other;"
        f" cat {home}/auth.json login.json .login.json.part-1 .login.json.part-2;"
        f" (exec 9<{lock}) && echo held; exit 0"
    )
    argv = sandbox.command(["/bin/sh", "-c", script], workspace(work), work)
    command = subprocess.Popen(
        argv, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert command.stdout is not None
    assert command.stdout.readline() == "ready\n"
    lock.touch()
    part = elsewhere / ".login.json.part-2"
    part.write_text("secret", encoding="ascii")
    part.rename(elsewhere / "login.json")
    part.write_text("secret", encoding="ascii")
    out, _ = command.communicate("go\n", timeout=30)
    sandbox.release()
    assert out == "shown"


def test_a_part_of_a_login_that_is_a_link_is_hidden(
    backend: Backend, tmp_path: Path
) -> None:
    home, work, elsewhere = (tmp_path / name for name in ("home", "work", "elsewhere"))
    for folder in (home, work, elsewhere):
        folder.mkdir()
    for name in ("login.json", ".login.json.part-1"):
        (elsewhere / name).write_text("secret", encoding="ascii")
    (home / "auth.json").symlink_to(elsewhere / "login.json")
    sandbox = PlatformSandbox(dict(os.environ), home=home, backends=[backend])
    words = ["cat", f"{elsewhere}/login.json", f"{elsewhere}/.login.json.part-1"]
    argv = sandbox.command(words, workspace(work), work)
    done = subprocess.run(argv, cwd=work, capture_output=True, check=False)
    sandbox.release()
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_login_may_be_a_link_to_shared_memory(
    backend: Backend, tmp_path: Path
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work):
        folder.mkdir()
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as login:
        login.write(b"secret")
        login.flush()
        (home / "auth.json").symlink_to(login.name)
        sandbox = PlatformSandbox(dict(os.environ), home=home, backends=[backend])
        script = f"echo ready; true >/dev/shm/one; cat {login.name}"
        argv = sandbox.command(["/bin/sh", "-c", script], workspace(work), work)
        done = subprocess.run(argv, cwd=work, capture_output=True, check=False)
        sandbox.release()
    assert (done.returncode, done.stdout) == (1, b"ready\n")


def test_an_entry_of_a_home_with_a_login_may_vanish_before_a_command_starts(
    backend: Backend, tmp_path: Path
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home / "folder", work):
        folder.mkdir(parents=True)
    for name in ("auth.json", "config.toml", "file"):
        (home / name).write_text("text", encoding="ascii")
    (home / "link").symlink_to("file")
    sandbox = PlatformSandbox(dict(os.environ), home=home, backends=[backend])
    words = ["cat", f"{home}/config.toml"]
    argv = sandbox.command(words, workspace(work), work)
    for name in ("file", "link"):
        (home / name).unlink()
    (home / "folder").rmdir()
    done = subprocess.run(argv, cwd=work, capture_output=True, check=False)
    sandbox.release()
    assert (done.stdout, done.stderr) == (b"text", b"")
