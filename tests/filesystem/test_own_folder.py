import ast
import os
import time
from pathlib import Path

import pytest

from codex_py.errors import CodexError
from codex_py.filesystem import own_folder as own_folder_module
from codex_py.filesystem.own_folder import own_folder
from codex_py.filesystem.private import locked


def test_a_folder_is_private_below_the_home_and_goes_at_the_end(tmp_path: Path) -> None:
    with own_folder(tmp_path, "images") as folder:
        assert folder.parent == tmp_path / "codex-py/tmp"
        assert folder.name.startswith("images.")
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "1.png").write_bytes(b"x")
    assert not folder.exists()


def test_another_place_is_used_if_the_home_cannot_be_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("", encoding="utf-8")
    other = tmp_path / "other"
    other.mkdir()
    with own_folder(home, "git", tmp_path / "missing", other) as folder:
        assert folder.parent == other
    assert not list(other.iterdir())


def test_it_is_told_if_there_is_no_place(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("", encoding="utf-8")
    with (
        pytest.raises(
            CodexError, match=r"home/codex-py/tmp cannot be written: .*missing"
        ),
        own_folder(home, "git", tmp_path / "missing"),
    ):
        pass


def test_the_folders_of_killed_programs_are_removed_and_no_others(
    tmp_path: Path,
) -> None:
    place = tmp_path / "codex-py/tmp"
    for name in ("git.old", "git.used", "git.new"):
        (place / name).mkdir(parents=True)
        (place / name / "index").write_bytes(b"x")
    days_ago = time.time() - 2 * 24 * 3600
    for name in ("git.old", "git.used"):
        os.utime(place / name, (days_ago, days_ago))
    with locked(place / "git.used", 0), own_folder(tmp_path, "git") as folder:
        left = {path.name for path in place.iterdir()}
    assert left == {"git.used", "git.new", folder.name}


ELSEWHERE = {
    "app/agent/agent_session.py": "a home of its own, which commands cannot write",
    "app/exec_process.py": "a file without a name",
    "extensions/batch/batch_command.py": "a file without a name",
    "frontends/demo/demo_session.py": "the project of the demo, with a home of its own",
    "frontends/tui/compose/attachments.py": "an image of the clipboard, made and written at once",
    "sandbox/probes.py": "what the probes of the sandbox try to reach",
}
MAKERS = {
    "TemporaryDirectory",
    "TemporaryFile",
    "NamedTemporaryFile",
    "mkdtemp",
    "mkstemp",
}


def makers_without_a_folder(source: str) -> list[str]:
    """The calls that make something in the folder for temporary files."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            options = {keyword.arg for keyword in node.keywords}
            if name in MAKERS and "dir" not in options:
                found.append(name)
    return found


def test_nothing_of_the_program_lies_where_commands_write() -> None:
    product = Path(own_folder_module.__file__).parents[1]
    found = {
        str(path.relative_to(product)): makers_without_a_folder(path.read_text("utf-8"))
        for path in product.rglob("*.py")
    }
    assert {name for name, calls in found.items() if calls} == set(ELSEWHERE)


def test_such_a_call_is_found() -> None:
    assert makers_without_a_folder("tempfile.mkdtemp(prefix='a')") == ["mkdtemp"]
    assert makers_without_a_folder("with TemporaryDirectory() as f: pass") == [
        "TemporaryDirectory"
    ]
    assert makers_without_a_folder("TemporaryDirectory(dir=place)") == []
