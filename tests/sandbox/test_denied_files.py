"""What is denied, on every backend that can hide a file, in every form of denial."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from codex_py.errors import ToolError
from codex_py.filesystem.private import make_record_folder
from codex_py.protocol.approval import SandboxMode, SandboxPolicy
from codex_py.protocol.file_rules import FileRules
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.sandbox.layout import PACKAGE
from tests.sandbox.local_backends import BACKENDS, run_in, workspace

HIDING = [each for each in BACKENDS if each.name not in {"landlock", "supervised"}]
SECRET = "s3cret-5e1f"


@dataclass(frozen=True)
class Form:
    """One way to deny `dir/secret.key` of the workspace."""

    name: str
    rules: Callable[[Path], FileRules]
    prepare: Callable[[Path], None] = lambda _: None
    also: tuple[str, ...] = ()
    """Other names of the same file."""
    has_link: bool = False
    """A symbolic link is denied, or leads to what is."""


def _denied(*names: str) -> Callable[[Path], FileRules]:
    return lambda cwd: FileRules(tuple((cwd / name, "deny") for name in names))


def _globs(*globs: str) -> Callable[[Path], FileRules]:
    return lambda cwd: FileRules(globs=tuple((cwd, glob) for glob in globs))


def _hard_link(cwd: Path) -> None:
    os.link(cwd / "dir/secret.key", cwd / "other")


def _link(cwd: Path) -> None:
    (cwd / "name").symlink_to("dir/secret.key")


def _linked_folder(cwd: Path) -> None:
    (cwd / "linked").symlink_to("dir")


def _odd_name(cwd: Path) -> None:
    (cwd / "a\n[b] 'c").mkdir()
    os.link(cwd / "dir/secret.key", cwd / "a\n[b] 'c/x.key")


FORMS = (
    Form("path", _denied("dir/secret.key")),
    Form("folder", _denied("dir")),
    Form("pattern", _globs("**/*.key")),
    Form("pattern of a folder", _globs("d?r")),
    Form("contents", _globs("dir/**")),
    Form("class", _globs("dir/[!a-r]*.k[e]y")),
    Form("hard link", _denied("dir/secret.key"), _hard_link, ("other",)),
    Form("hard link in a denied folder", _denied("dir"), _hard_link, ("other",)),
    Form("link", _denied("name"), _link, ("name",), True),
    Form("link whose name matches", _globs("nam*"), _link, ("name",), True),
    Form(
        "path through a link",
        _denied("linked/secret.key"),
        _linked_folder,
        ("linked/secret.key",),
        has_link=True,
    ),
    Form("odd name", _globs("**/*.key"), _odd_name, ("a\n[b] 'c/x.key",)),
)
READERS = (
    *(
        'cat "$f"',
        'head -c 9 < "$f"',
        "grep -r . .",
        "tar cf - .",
        'cp "$f" new; cat new',
    ),
    *('ln "$f" new; cat new', 'ln -s "$f" new; cat new', 'mv "$f" new; cat new'),
    *(
        'cat "/proc/self/root$PWD/$f"',
        'cat "/proc/1/root$PWD/$f"',
        'cat "/proc/$PPID/root$PWD/$f"',
    ),
    *('chmod 777 "$f" .; cat "$f"', 'umount "$f"; umount -l .; cat "$f"', 'dd if="$f"'),
    *("mv dir moved; cat moved/*", 'python3 -c "print(open(\\"$f\\").read())"'),
    *(
        'unshare -Urm sh -c \'umount "$f"; cat "$f"\'',
        "git grep --no-index s3",
        "find . -exec cat {} ;",
    ),
    *(
        'rm -f "$f"; cat "$f"',
        'exec 3< "$f"; cat <&3',
        "cp -r . ../copy; cat ../copy/dir/*",
    ),
)


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    cwd = (tmp_path / "work").resolve()
    (cwd / "dir").mkdir(parents=True)
    (cwd / "dir/secret.key").write_text(SECRET, encoding="ascii")
    (cwd / "plain").write_text("plain\n", encoding="ascii")
    return cwd


def denying(rules: FileRules, *roots: Path) -> SandboxPolicy:
    return replace(workspace(*roots), files=rules)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("backend", HIDING, ids=lambda backend: backend.name)
def test_no_command_reads_what_is_denied(
    backend: Backend, form: Form, cwd: Path
) -> None:
    form.prepare(cwd)
    for mode in ("workspace-write", "read-only", "danger-full-access"):
        policy = replace(denying(form.rules(cwd), cwd), mode=mode)
        if form.has_link and backend.name == "bwrap" and mode == "workspace-write":
            with pytest.raises(ToolError, match="is denied and a symbolic link"):
                run_in(backend, ["true"], policy, cwd)
            continue
        for name in ("dir/secret.key", *form.also):
            # Each on its own, so that one which moves something does not help the next.
            script = "\n".join(f"({reader}) 2>&1" for reader in READERS)
            done = run_in(
                backend,
                ["sh", "-c", f"f=$1; cat plain\n{script}", "sh", name],
                policy,
                cwd,
            )
            assert "plain" in done.stdout
            assert SECRET not in done.stdout, (mode, name)
            # And what the first command has moved or copied, in the next one.
            done = run_in(
                backend,
                ["sh", "-c", "find . ../copy -type f -exec cat {} +"],
                policy,
                cwd,
            )
            assert SECRET not in done.stdout, (mode, name)


@pytest.mark.parametrize("backend", HIDING, ids=lambda backend: backend.name)
def test_a_moved_folder_shows_nothing_in_the_next_command(
    backend: Backend, cwd: Path
) -> None:
    (cwd / "a/b").mkdir(parents=True)
    shutil.move(cwd / "dir/secret.key", cwd / "a/b/secret.key")
    policy = denying(FileRules(globs=((cwd, "a/*/*.key"),)), cwd)
    sandbox = PlatformSandbox(os.environ, backends=[backend])
    try:
        for script in ("mv a/b moved; mv a moved", "mv moved again; cat again/*"):
            argv = sandbox.command(["sh", "-c", f"({script}) 2>&1"], policy, cwd)
            done = subprocess.run(
                argv, cwd=cwd, capture_output=True, check=False
            ).stdout.decode()
            assert SECRET not in done
    finally:
        sandbox.release()


@pytest.mark.parametrize("mode", ["read-only", "danger-full-access"])
@pytest.mark.parametrize("backend", HIDING, ids=lambda backend: backend.name)
def test_the_copies_that_earlier_sessions_kept_are_hidden_too(
    backend: Backend, mode: SandboxMode, cwd: Path
) -> None:
    home = cwd.parent / "home"
    make_record_folder(home, "patches")
    make_record_folder(home, "imports")
    for name in (
        "sessions",
        "codex-py/undo",
        "codex-py/patches/run",
        "codex-py/imports",
    ):
        (home / name).mkdir(parents=True, exist_ok=True)
        (home / name / "x").write_text(SECRET, encoding="ascii")
    policy = replace(denying(_denied("dir")(cwd), cwd), mode=mode)
    sandbox = PlatformSandbox(os.environ, home=home, backends=[backend])
    argv = sandbox.command(["grep", "-r", "s3c", str(home), str(cwd)], policy, cwd)
    done = subprocess.run(argv, cwd=cwd, capture_output=True, check=False)
    sandbox.release()
    assert SECRET.encode() not in done.stdout


@pytest.mark.parametrize("backend", HIDING, ids=lambda backend: backend.name)
def test_no_command_renames_a_folder_around_what_is_denied(
    backend: Backend, cwd: Path
) -> None:
    # Otherwise one in the background would hide the folder from those who look for it.
    (cwd / "a").mkdir()
    (cwd / "dir").rename(cwd / "a/dir")
    policy = denying(_globs("**/*.key")(cwd), cwd)
    done = run_in(
        backend, ["sh", "-c", "mv a/dir a/moved || mv a moved || echo no"], policy, cwd
    )
    assert "no\n" in done.stdout
    assert (cwd / "a/dir/secret.key").exists()


@pytest.mark.parametrize(
    "backend",
    [b for b in HIDING if b.name != "bwrap"],
    ids=lambda backend: backend.name,
)
def test_a_link_on_the_way_stays(backend: Backend, cwd: Path) -> None:
    _linked_folder(cwd)
    policy = denying(_denied("linked/secret.key")(cwd), cwd)
    run_in(backend, ["sh", "-c", "rm linked; mkdir linked; mv dir moved"], policy, cwd)
    assert (cwd / "linked").is_symlink()
    assert (cwd / "dir/secret.key").exists()


@pytest.mark.parametrize("mode", ["workspace-write", "danger-full-access"])
@pytest.mark.parametrize(
    "form", [_denied("name"), _globs("nam*")], ids=["path", "pattern"]
)
@pytest.mark.parametrize(
    "backend",
    [b for b in HIDING if b.name != "bwrap"],
    ids=lambda backend: backend.name,
)
def test_a_link_that_is_denied_stays(
    backend: Backend, form: Callable[[Path], FileRules], mode: SandboxMode, cwd: Path
) -> None:
    # Otherwise, nothing would lead the next session to the file that it has to deny.
    (cwd / "target").write_text(SECRET, encoding="ascii")
    (cwd / "name").symlink_to("target")
    policy = replace(denying(form(cwd), cwd), mode=mode)
    run_in(
        backend, ["sh", "-c", "mv name x; rm -f name; ln -sfn plain name"], policy, cwd
    )
    assert (cwd / "name").readlink() == Path("target")
    assert SECRET not in run_in(backend, ["cat", "target"], policy, cwd).stdout


@pytest.mark.parametrize("backend", HIDING, ids=lambda backend: backend.name)
def test_a_command_in_full_access_does_not_change_what_confines_the_next(
    backend: Backend, cwd: Path
) -> None:
    policy = replace(denying(_denied("plain")(cwd), cwd), mode="danger-full-access")
    launcher = PACKAGE / "sandbox/child/launcher.py"
    script = (
        f"[ -w {launcher} ] || echo held; [ -w {cwd}/dir/secret.key ] && echo free; "
    )
    # A mount point cannot be renamed.
    script += f"mountpoint -q {PACKAGE} && mountpoint -q {PACKAGE.parent} && echo stays"
    assert (
        run_in(backend, ["sh", "-c", script], policy, cwd).stdout
        == "held\nfree\nstays\n"
    )


def test_a_link_whose_name_matches_hides_no_folder_of_the_system(cwd: Path) -> None:
    (cwd / "x.env").symlink_to("/usr")
    (cwd / "y.env").symlink_to("..")
    policy = denying(_globs("**/*.env")(cwd), cwd)
    for backend in HIDING:
        assert run_in(backend, ["cat", "plain"], policy, cwd).stdout == "plain\n"


@pytest.mark.parametrize("backend", HIDING, ids=lambda backend: backend.name)
def test_the_deeper_entry_decides(backend: Backend, cwd: Path) -> None:
    (cwd / "dir/open/shut").mkdir(parents=True)
    (cwd / "dir/open/x").write_text("visible", encoding="ascii")
    (cwd / "dir/open/shut/y").write_text(SECRET, encoding="ascii")
    entries = {"dir": "deny", "dir/open": "read", "dir/open/shut": "deny"}
    rules = FileRules(tuple((cwd / name, access) for name, access in entries.items()))  # type: ignore[misc]
    script = "cat dir/open/x; cat dir/secret.key dir/open/shut/y; echo n > dir/open/x; ls dir/open"
    done = run_in(backend, ["sh", "-c", script], denying(rules, cwd), cwd)
    assert "visible" in done.stdout
    assert SECRET not in done.stdout
    assert (cwd / "dir/open/x").read_text(encoding="ascii") == "visible"
    rules = rules.plus(FileRules(((cwd / "dir/open", "read"),)))
    opened = replace(
        rules,
        entries=tuple((p, "write" if a == "read" else a) for p, a in rules.entries),
    )
    run_in(backend, ["sh", "-c", script], denying(opened, cwd), cwd)
    assert (cwd / "dir/open/x").read_text(encoding="ascii") == "n\n"


@pytest.mark.parametrize("backend", HIDING, ids=lambda backend: backend.name)
def test_a_missing_denied_file_cannot_be_made_and_leaves_nothing_behind(
    backend: Backend, cwd: Path
) -> None:
    before = sorted(cwd.rglob("*"))
    done = run_in(
        backend,
        ["sh", "-c", "echo x > later.txt; mkdir -p laterdir/x; ls -a"],
        denying(_denied("later.txt", "laterdir")(cwd), cwd),
        cwd,
    )
    assert "plain" in done.stdout
    assert sorted(cwd.rglob("*")) == before


@pytest.mark.parametrize("backend", HIDING, ids=lambda backend: backend.name)
def test_a_file_made_later_is_denied_from_the_next_command_on(
    backend: Backend, cwd: Path
) -> None:
    policy = denying(_globs("**/*.env")(cwd), cwd)
    run_in(
        backend,
        ["sh", "-c", f"mkdir -p new/deep; echo {SECRET} > new/deep/x.env"],
        policy,
        cwd,
    )
    assert (cwd / "new/deep/x.env").exists()
    done = run_in(backend, ["cat", "new/deep/x.env"], policy, cwd)
    assert done.returncode
    assert SECRET not in done.stdout


@pytest.mark.parametrize(
    "backend",
    [b for b in HIDING if b.name != "bwrap"],
    ids=lambda backend: backend.name,
)
def test_any_number_of_matches(backend: Backend, cwd: Path) -> None:
    for number in range(50):
        (cwd / f"f{number}").mkdir()
        for each in range(60):
            (cwd / f"f{number}/{each}.key").write_text(SECRET, encoding="ascii")
    policy = denying(_globs("**/*.key")(cwd), cwd)
    done = run_in(backend, ["sh", "-c", "cat plain; cat */*.key"], policy, cwd)
    assert "plain" in done.stdout
    assert SECRET not in done.stdout


def test_another_name_outside_of_the_workspace_refuses_the_command(cwd: Path) -> None:
    os.link(cwd / "dir/secret.key", cwd.parent / "outside")
    policy = denying(_denied("dir/secret.key")(cwd), cwd)
    with pytest.raises(
        ToolError, match=r"dir/secret.key is denied, and has another name"
    ):
        PlatformSandbox(os.environ, backends=HIDING).command(["true"], policy, cwd)


_WITHOUT_LANDLOCK = """
import os, struct
from pathlib import Path
from codex_py.errors import ToolError
from codex_py.protocol.approval import DEFAULT_LIMITS, SandboxPolicy
from codex_py.protocol.file_rules import FileRules
from codex_py.sandbox.backends.linux import LauncherBackend
from codex_py.sandbox.child import kernel
from codex_py.sandbox.choice import PlatformSandbox
steps = (0x20, 0, 0, 0), (0x15, 0, 1, 444), (6, 0, 0, 0x50026), (6, 0, 0, 0x7FFF0000)
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
kernel.set_filter(b"".join(struct.pack("=HBBI", *step) for step in steps))
sandbox = PlatformSandbox(os.environ, backends=[LauncherBackend("views", DEFAULT_LIMITS)])
try:
    sandbox.command(["true"], SandboxPolicy(files=FileRules(((Path("/x"), "deny"),))), Path("/"))
except ToolError as error:
    print(error)
"""


@pytest.mark.skipif(not any(b.name == "views" for b in BACKENDS), reason="needs views")
def test_a_view_hides_nothing_where_other_processes_show_the_machine() -> None:
    argv = [sys.executable, "-c", _WITHOUT_LANDLOCK]
    done = subprocess.run(argv, capture_output=True, encoding="utf-8", check=True)
    assert "'views' cannot keep commands from reading what is denied" in done.stdout


@pytest.mark.parametrize(
    "backend",
    [b for b in BACKENDS if b not in HIDING],
    ids=lambda backend: backend.name,
)
def test_a_backend_that_cannot_hide_refuses_unless_that_is_accepted(
    backend: Backend, cwd: Path
) -> None:
    policy = denying(_denied("dir")(cwd), cwd)
    with pytest.raises(ToolError, match=r"permissions\.filesystem"):
        run_in(backend, ["true"], policy, cwd)
    accepted = replace(policy, files=replace(policy.files, may_be_unenforced=True))
    for mode in ("workspace-write", "danger-full-access"):
        assert (
            run_in(backend, ["true"], replace(accepted, mode=mode), cwd).returncode == 0
        )
