"""Where programs are found that run outside of the sandbox."""

import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from codex_py import programs
from codex_py.programs import Programs, programs_outside, record_writable_roots
from codex_py.protocol.approval import SandboxPolicy


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with `.codex`; folders beside it are folders of a machine, though they are in one for temporary files."""
    (tmp_path / "user/.codex").mkdir(parents=True)
    return tmp_path / "user/.codex"


def plant(folder: Path, name: str = "tool") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n", encoding="ascii")
    program.chmod(0o755)
    return program


def variables(home: Path, *folders: Path) -> dict[str, str]:
    return {"HOME": str(home.parent), "PATH": os.pathsep.join(map(str, folders))}


def writable(*roots: Path) -> SandboxPolicy:
    return SandboxPolicy("workspace-write", roots)


def found(programs: Programs, environment: Mapping[str, str]) -> str | None:
    try:
        return programs.find("tool", environment)
    except FileNotFoundError:
        return None


def test_no_program_of_the_project_and_of_temporary_folders_is_found(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = home.parent
    monkeypatch.chdir(user)
    project, scratch = user / "work/project", user / "scratch"
    (project / ".git").mkdir(parents=True)
    own = plant(user / "bin")
    barred = [
        plant(p / "bin")
        for p in (project, project / "sub", scratch, home / "worktrees")
    ]
    barred.append(plant(Path(user.parent, "elsewhere")))
    linked = user / "linked"
    linked.symlink_to(project / "bin")
    (user / "links").mkdir()
    (user / "links/tool").symlink_to(barred[0])
    for path in [
        *(p.parent for p in barred),
        linked,
        user / "links",
        Path("work/project/bin"),
    ]:
        environment = variables(home, path) | {"TMPDIR": str(scratch)}
        outside = programs_outside(home, environment, project / "sub")
        assert found(outside, environment) is None, path
        environment["PATH"] += f":{user}/bin"
        assert found(outside, environment) == str(own)
        kept = outside.environment(environment)["PATH"].split(":")
        assert kept == [str(user / "links")] * (path.name == "links") + [f"{user}/bin"]


def test_no_program_of_the_tree_that_a_worktree_was_made_from_is_found(
    home: Path,
) -> None:
    main, linked = home.parent / "main", home.parent / "linked"
    plant(main / ".venv/bin")
    for words in (
        ["init"],
        ["commit", "--allow-empty", "-m", "one"],
        ["worktree", "add", str(linked)],
    ):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(
            ["git", "-C", main, *identity, *words], check=True, capture_output=True
        )
    (linked / "sub").mkdir()
    environment = variables(home, main / ".venv/bin")
    assert (
        found(programs_outside(home, environment, linked / "sub"), environment) is None
    )
    assert found(
        programs_outside(home, environment, home.parent / "other"), environment
    )


def test_a_folder_without_git_is_part_of_what_has_its_virtual_environment(
    home: Path,
) -> None:
    project = home.parent / "project"
    plant(project / ".venv/bin")
    environment = variables(home, project / ".venv/bin")
    assert (
        found(programs_outside(home, environment, project / "data/raw"), environment)
        is None
    )


@pytest.mark.parametrize("project", ["/", "HOME"])
def test_the_users_own_programs_are_found_in_a_project_that_is_the_home_or_everything(
    home: Path, project: str
) -> None:
    own = plant(home.parent / "bin")
    environment = variables(home, own.parent)
    folder = Path(project.replace("HOME", str(home.parent)))
    assert found(
        programs_outside(home, environment, folder, folder), environment
    ) == str(own)
    record_writable_roots(home, environment, writable(folder))
    assert found(programs_outside(home, environment), environment) == str(own)


def test_a_folder_that_commands_could_write_to_is_barred_in_later_sessions(
    home: Path,
) -> None:
    planted = plant(home.parent / "tools/new\nline/bin")
    environment = variables(home, planted.parent)
    running = programs_outside(home, environment)
    assert found(running, environment) == str(planted)
    policy = writable(planted.parent.parent, Path("/tmp"), home.parent)
    record_writable_roots(home, environment, policy)
    with pytest.raises(FileNotFoundError) as caught:
        running.find("tool", environment)
    assert str(caught.value.strerror).startswith(
        "it was found only inside the project or a wri"
    )
    assert caught.value.filename2 == str(planted)
    record = home / "codex-py/writable-roots"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    before = record.stat()
    record_writable_roots(home, environment, writable(planted.parent))
    assert record.stat() == before
    assert record.read_bytes().count(b"/tools/") == 1


def test_a_folder_around_the_home_is_barred_later_and_the_home_is_not(
    home: Path,
) -> None:
    # They need not be there, and are in no folder for temporary files.
    around = Path("/nowhere/users")
    environment = {"HOME": f"{around}/me"}
    record_writable_roots(home, environment, writable(around))
    may_use = programs_outside(home, environment).test()
    assert not may_use(around / "tools/bin")
    assert may_use(around / "me/bin")


def test_the_record_is_bounded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_MAX_ROOTS", 3)
    environment = variables(home)
    for number in range(5):
        record_writable_roots(home, environment, writable(home.parent / f"p{number}"))
    lines = (home / "codex-py/writable-roots").read_text(encoding="utf-8").split()
    assert [Path(line).name for line in lines] == ["p2", "p3", "p4"]
    assert stat.S_IMODE((home / "codex-py/writable-roots").stat().st_mode) == 0o600


def test_a_record_that_cannot_be_read_or_written_bars_nothing(home: Path) -> None:
    planted = plant(home.parent / "bin")
    environment = variables(home, planted.parent)
    (home / "codex-py").write_bytes(b"")
    record_writable_roots(home, environment, writable(planted.parent))
    assert found(programs_outside(home, environment), environment) == str(planted)
    (home / "codex-py").unlink()
    (home / "codex-py").mkdir()
    (home / "codex-py/writable-roots").write_bytes(b"\xff\n\n\0garbage\n/cut of")
    assert found(programs_outside(home, environment), environment) == str(planted)
    record_writable_roots(home, environment, writable(planted.parent))
    assert found(programs_outside(home, environment), environment) is None


def test_a_temporary_folder_of_one_session_is_barred_in_those_without_it(
    home: Path,
) -> None:
    planted = plant(home.parent / "scratch/bin")
    environment = variables(home, planted.parent)
    scratch = {**environment, "TMPDIR": str(home.parent / "scratch")}
    excluded = SandboxPolicy("workspace-write", exclude_tmpdir_env_var=True)
    for policy in (
        excluded,
        SandboxPolicy("read-only"),
        SandboxPolicy("danger-full-access"),
    ):
        record_writable_roots(home, scratch, policy)
        assert found(programs_outside(home, environment), environment) == str(planted)
    record_writable_roots(home, scratch, writable())
    assert found(programs_outside(home, environment), environment) is None


def test_a_path_of_which_nothing_is_left_does_not_become_the_working_directory(
    home: Path,
) -> None:
    assert programs_outside(home, {}).environment({"PATH": "/tmp:bin"}) == {
        "PATH": os.defpath
    }


@pytest.mark.parametrize(
    "name",
    [
        "npx -y server",
        "uv run\tserver",
        "npx -y @scope/server /tmp",
        "/usr/bin/env python3",
        "/bin/sh /bin/true",
        "./server --port 1",
        "../bin/server\n--port 1",
        "docker run -v /a:/b image",
        f"bash -c 'cd /; {'x' * 5000}'",
    ],
)
def test_a_command_line_in_place_of_a_program_is_told_so(home: Path, name: str) -> None:
    outside = Programs(home, home.parent, frozenset())
    with pytest.raises(FileNotFoundError) as caught:
        outside.find(name, variables(home, home), home)
    assert caught.value.filename == name
    assert str(caught.value.strerror).startswith(
        "No such file or directory; arguments "
    )


@pytest.mark.parametrize("name", ["nosuchprogram", "a"])
def test_a_single_word_is_not_taken_for_a_command_line(home: Path, name: str) -> None:
    outside = Programs(home, home.parent, frozenset())
    with pytest.raises(FileNotFoundError) as caught:
        outside.find(name, variables(home, home), home)
    assert caught.value.strerror == "No such file or directory"
    for path in (f"/bin/{name}", f"bin/{name}"):
        assert outside.find(path, variables(home, home), home) == path


@pytest.mark.parametrize("folder", ["", "My Tools", "npx -y @scope"])
def test_a_path_with_blanks_is_found_from_the_folder_in_which_the_program_starts(
    home: Path, folder: str
) -> None:
    planted = plant(home / folder, "my server")
    relative = f"./{planted.relative_to(home)}"
    outside = Programs(home, home.parent, frozenset())
    for name in (str(planted), relative):
        assert outside.find(name, {}, home) == name
    with pytest.raises(FileNotFoundError, match="arguments "):
        outside.find(relative, {}, home / "elsewhere")


def test_a_link_that_leads_nowhere_is_no_command_line(home: Path) -> None:
    (home / "my link").symlink_to("nowhere")
    outside = Programs(home, home.parent, frozenset())
    assert outside.find("./my link", {}, home) == "./my link"
