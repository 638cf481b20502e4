import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.sandbox.placeholders import Placeholders
from tests.support.privileges import heed_permissions, needs_permissions


@pytest.fixture
def held(tmp_path: Path) -> Path:
    return tmp_path / ".codex"


def test_a_name_is_taken_and_given_back(held: Path) -> None:
    placeholders = Placeholders()
    placeholders.hold([held])
    placeholders.hold([held])
    assert list(held.iterdir()) == []
    placeholders.release()
    placeholders.release()
    assert not held.exists()


def test_the_last_agent_gives_it_back(held: Path) -> None:
    first, second = Placeholders(), Placeholders()
    first.hold([held])
    second.hold([held])
    first.release()
    assert held.is_dir()
    second.release()
    assert not held.exists()


def test_placeholders_of_a_killed_agent_are_removed_by_the_next(held: Path) -> None:
    script = (
        "import os, sys\nfrom pathlib import Path\n"
        "from codex_py.sandbox.placeholders import Placeholders\n"
        "Placeholders().hold([Path(sys.argv[1])])\nos.kill(os.getpid(), 9)"
    )
    subprocess.run(
        [sys.executable, "-c", script, held],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert held.is_dir()
    placeholders = Placeholders()
    placeholders.hold([held])
    placeholders.release()
    assert not held.exists()


def test_files_that_were_put_into_a_placeholder_meanwhile_stay(held: Path) -> None:
    placeholders = Placeholders()
    placeholders.hold([held])
    (held / "config.toml").touch()
    placeholders.release()
    assert [path.name for path in held.iterdir()] == ["config.toml"]


def test_an_empty_folder_of_the_user_stays(held: Path) -> None:
    held.mkdir()
    placeholders = Placeholders()
    placeholders.hold([held])
    placeholders.release()
    assert held.is_dir()


def test_nothing_is_touched_that_is_no_empty_folder(held: Path) -> None:
    held.write_text("a file", encoding="ascii")
    link = held.with_name(".agents")
    link.symlink_to("nowhere")
    placeholders = Placeholders()
    placeholders.hold([held, link, held / "below"])
    placeholders.release()
    assert held.read_text(encoding="ascii") == "a file"
    assert link.is_symlink()


@pytest.mark.parametrize("is_moved", [False, True], ids=["removed", "moved"])
def test_a_placeholder_that_is_gone_is_made_again(held: Path, is_moved: bool) -> None:
    placeholders = Placeholders()
    placeholders.hold([held])
    if is_moved:
        held.rename(held.with_name("old"))
    else:
        held.rmdir()
    assert placeholders.hold([held]) == [held]
    assert held.is_dir()
    placeholders.release()
    assert not held.exists()


_FULL_DISK = """
import subprocess, sys
from pathlib import Path
from codex_py.errors import ToolError
from codex_py.sandbox.placeholders import Placeholders
folder = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=2", "none", str(folder)], check=True)
(folder / "last").touch()
placeholders = Placeholders()
print(placeholders.hold([folder / "missing/.codex"]))
try:
    placeholders.hold([folder / ".codex"])
except ToolError as error:
    print(str(error).replace(str(folder), ""))
subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
print(placeholders.hold([folder / ".codex"]))
"""


def test_a_name_that_only_a_command_might_make_later_is_an_error(
    tmp_path: Path,
) -> None:
    own = ["unshare", "--mount", "--map-root-user"]
    if (
        shutil.which(own[0]) is None
        or subprocess.run([*own, "true"], check=False).returncode
    ):
        pytest.skip("needs a user namespace")
    done = subprocess.run(
        [*own, sys.executable, "-c", _FULL_DISK, tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout.decode().splitlines() == [
        "[]",
        " cannot be written to (No space left on device), so no command can run with"
        " `-s workspace-write`, which protects .codex in it: use `-s read-only`, or make the folder"
        " writable",
        "[]",
    ]


_READ_ONLY_FOLDER = """
import sys
from pathlib import Path
from codex_py.errors import ToolError
from codex_py.sandbox.placeholders import Placeholders
folder = sys.argv[1]
try:
    print(Placeholders().hold([Path(folder, ".codex")]))
except ToolError as error:
    print(str(error).replace(folder, ""))
"""


@needs_permissions
def test_a_command_might_make_a_name_in_a_folder_of_its_user_that_is_read_only(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", _READ_ONLY_FOLDER, tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        check=True,
        preexec_fn=heed_permissions,
    )
    tmp_path.chmod(0o755)
    assert done.stdout.decode() == (
        " cannot be written to (Permission denied), so no command can run with"
        " `-s workspace-write`, which protects .codex in it: use `-s read-only`, or make the folder"
        " writable\n"
    )


def _hold_and_die(listed: Path, *paths: Path) -> None:
    script = (
        "import os, sys\nfrom pathlib import Path\n"
        "from codex_py.sandbox.placeholders import Placeholders\n"
        "listed, *paths = map(Path, sys.argv[1:])\n"
        "Placeholders(listed).hold(paths)\nos.kill(os.getpid(), 9)"
    )
    subprocess.run(
        [sys.executable, "-c", script, listed, *paths],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )


def test_placeholders_of_a_killed_agent_are_removed_from_elsewhere(
    tmp_path: Path,
) -> None:
    listed, names = (
        tmp_path / "home/listed",
        (".codex", ".agents\nodd", ".claude", ".aws", ".git"),
    )
    held = [tmp_path / name for name in names]
    _hold_and_die(listed, *held)
    living = Placeholders(listed)
    living.hold(held[:1])
    held[1].rmdir()
    held[1].symlink_to(held[2])
    (held[3] / "theirs").touch()
    held[4].rmdir()
    held[4].mkdir()
    Placeholders(listed).remove_leftovers()
    # What another agent holds, and what a user made.
    assert [path.name for path in held if os.path.lexists(path)] == [
        *(".codex", ".agents\nodd", ".aws", ".git")
    ]
    living.release()
    assert not held[0].exists()
    Placeholders(listed).remove_leftovers()
    assert [name for name in listed.read_bytes().split(b"\0") if b".aws" in name] == []


@pytest.mark.parametrize("is_pipe", [False, True])
def test_a_list_that_cannot_be_kept_hinders_nothing(
    tmp_path: Path, held: Path, is_pipe: bool
) -> None:
    listed = tmp_path / "file/listed"
    if is_pipe:
        listed.parent.mkdir()
        os.mkfifo(listed)
    else:
        listed.parent.touch()
    placeholders = Placeholders(listed)
    placeholders.remove_leftovers()
    assert placeholders.hold([held]) == [held]
    placeholders.release()
    assert not held.exists()
