"""Extensions are found whatever is wrong with another package, and none takes a name of ours.

Tests `registry.py`.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

import codex_py
from codex_py import registry
from codex_py.cli.main import main
from codex_py.command_line.extension_options import take_extension_options
from codex_py.config.declared.section import key_of
from codex_py.config.declared.settings import Settings
from codex_py.errors import ConfigError
from codex_py.registry import COMMANDS, OPTIONS, TABLES, EntryPoint, find
from tests.support.packages import install_package

ROOMS = Path(codex_py.__file__).parent / "extensions"
IMPORTED = "raise SystemError('it was imported')\n"
GREET = """
from codex_py.api.commands import Command, print_out

def run(words, environment):
    return print_out("hello\\n")

class Commands:
    greet = Command(run, "Greet.\\n")

command = Commands.greet
"""

Break: TypeAlias = Callable[[Path], object]
Run: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    for name in ("codex_py_greet", "codex_py_other"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*argv: str) -> tuple[int, str, str]:
        code = main(argv)
        out, err = capfd.readouterr()
        return code, out, err

    return run


def install_greet(packages: Path, value: str = "codex_py_greet:command") -> None:
    install_package(packages, "codex_py_greet", GREET, {COMMANDS: {"greet": value}})


def install_other(packages: Path, group: str, *names: str) -> Path:
    """Install a package that cannot be imported. Returns its metadata."""
    points = dict.fromkeys(names, "codex_py_other:thing")
    install_package(packages, "codex_py_other", IMPORTED, {group: points})
    return packages / "codex_py_other-1.0.dist-info"


def append(text: bytes) -> Break:
    def break_package(info: Path) -> None:
        points = info / "entry_points.txt"
        points.write_bytes(points.read_bytes() + text)

    return break_package


def without_name(info: Path) -> None:
    (info / "METADATA").write_text("Metadata-Version: 2.1\n", encoding="utf-8")


def folder_of_points(info: Path) -> None:
    (info / "entry_points.txt").unlink()
    (info / "entry_points.txt").mkdir()


def without_metadata(info: Path) -> None:
    (info / "METADATA").unlink()


def binary_metadata(info: Path) -> None:
    (info / "METADATA").write_bytes(b"\xff\xfe\n")


def renamed(name: str) -> Break:
    def break_package(info: Path) -> None:
        info.rename(info.with_name(name))

    return break_package


def twice(info: Path) -> None:
    shutil.copytree(info, info.with_name("codex_py_other.dist-info"))


@pytest.mark.parametrize(
    "break_package",
    [
        append(b"\n\xff\xfe"),
        append(b"\nno value\n= no name\n[\n[]\n"),
        append(b"\nx = a = b\n"),
        without_name,
        folder_of_points,
        without_metadata,
        binary_metadata,
        renamed(".dist-info"),
        renamed("-1.0.dist-info"),
        twice,
    ],
)
def test_a_broken_package_harms_no_other(
    packages: Path, run: Run, break_package: Break
) -> None:
    install_greet(packages)
    break_package(install_other(packages, COMMANDS, "other"))
    assert run("greet") == (0, "hello\n", "")
    code, out, err = run("help")
    assert (code, err) == (0, "")
    assert "  greet" in out
    code, _, err = run("other")
    assert code in {2, 78}
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_package_that_is_there_twice_counts_once(packages: Path, run: Run) -> None:
    install_greet(packages)
    info = packages / "codex_py_greet-1.0.dist-info"
    shutil.copytree(info, packages / "codex_py_greet-2.0.dist-info")
    leftover = packages / "codex_py_greet-0.9.dist-info"
    shutil.copytree(info, leftover)
    (leftover / "METADATA").unlink()
    assert run("greet") == (0, "hello\n", "")


def test_the_package_that_comes_first_hides_an_older_one(
    packages: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = install_other(packages, COMMANDS, "old")
    newer = packages.with_name("newer")
    shutil.copytree(info, newer / "codex_py_other-2.0.dist-info")
    (newer / "codex_py_other-2.0.dist-info/entry_points.txt").unlink()
    monkeypatch.setattr(sys, "path", [str(newer), *sys.path])
    assert find(COMMANDS, "old") is None


@pytest.mark.parametrize(
    "value",
    [
        "codex_py_greet:command [loud]",
        "codex_py_greet : command",
        "  codex_py_greet:Commands.greet[loud,soft]  ",
    ],
)
def test_a_value_may_have_spaces_and_extras(
    packages: Path, run: Run, value: str
) -> None:
    install_greet(packages, value)
    assert run("greet") == (0, "hello\n", "")


@pytest.mark.parametrize(
    "value", ["", "codex-py-greet:command", "a:b:c", ":command", "codex_py_greet:"]
)
def test_a_value_of_another_form_is_named(packages: Path, run: Run, value: str) -> None:
    install_greet(packages, value)
    code, out, err = run("greet")
    assert (code, out) == (78, "")
    assert f"the command 'greet' ({value}) cannot be used: " in err
    assert err.count("\n") == 1


def name_of(point: EntryPoint) -> str:
    return point.name


def rooms() -> list[str]:
    return sorted(path.parent.name for path in ROOMS.glob("*/entry_points.txt"))


def own_points() -> list[EntryPoint]:
    named = vars(registry).values()
    groups = {each for each in named if str(each).startswith("codex_py.")}
    return [point for group in sorted(groups) for point in registry.own_points(group)]


def test_each_folder_has_entry_points_of_known_groups() -> None:
    assert len(rooms()) > 1
    lines = [
        line
        for room in rooms()
        for line in (ROOMS / room / "entry_points.txt").read_text("utf-8").splitlines()
        if " = " in line
    ]
    assert len(lines) == len(own_points())


def test_no_two_folders_have_the_same_name_in_a_group() -> None:
    names = Counter((point.group, point.name) for point in own_points())
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("point", own_points(), ids=name_of)
def test_each_entry_point_of_a_folder_is_there(point: EntryPoint) -> None:
    assert registry.load(point, "value") is not None


def test_a_package_never_takes_the_place_of_a_folder(packages: Path) -> None:
    for group in {point.group for point in own_points()}:
        names = [point.name for point in registry.own_points(group)]
        install_other(packages, group, *names)
        assert registry.installed_names(group) == {}
        found = [find(group, name) for name in names]
        assert all(point is not None and point.is_ours for point in found)
        shutil.rmtree(packages)


def test_a_command_of_a_package_with_a_name_of_ours_is_never_used(
    packages: Path, run: Run
) -> None:
    names = ("exit-codes", "a", "help", "sessions.list", "queue", "Upper", "--json")
    install_other(packages, COMMANDS, *names)
    assert "53" in run("exit-codes")[1]
    assert "is not there yet" in run("queue")[2]
    assert run("a", "--help")[0] == 0
    assert run("sessions", "list", "--help")[0] == 0
    code, out, _ = run("help")
    assert code == 0
    assert "codex-py-other" not in out


def test_an_option_of_a_package_with_a_name_of_ours_is_never_used(
    packages: Path, run: Run
) -> None:
    install_other(packages, OPTIONS, "json", "sandbox", "help")
    assert run("exec", "--json", "--help")[0] == 0
    assert run("exec", "--sandbox", "x", "go")[2].startswith("Error: -s/--sandbox")
    assert "codex-py-other" not in run("help", "exec")[1]


def test_a_package_takes_no_option_of_a_folder(packages: Path) -> None:
    module = """
from typing import Annotated
from codex_py.api.options import Options, flag

class OtherOptions(Options):
    other: Annotated[bool, flag("--other")] = False
    approve_for_me: Annotated[bool, flag("--approve-for-me")] = False
"""
    points = {"other": "codex_py_other:OtherOptions"}
    install_package(packages, "codex_py_other", module, {OPTIONS: points})
    words = ["--other", "--approve-for-me"]
    options, rest = take_extension_options(words)
    assert rest == []
    found = {each.__class__.__name__: vars(each) for each in options}
    assert found == {
        "ReviewerOptions": {"approve_for_me": True},
        "OtherOptions": {"other": True, "approve_for_me": False},
    }


def test_a_table_of_a_package_with_a_name_of_ours_is_never_used(
    packages: Path,
) -> None:
    install_other(packages, TABLES, "model", "otel", "features")
    for name in ("model", "otel", "features"):
        known = key_of(Settings, name)
        assert known is not None
        assert "codex_py_other" not in sys.modules


def test_two_packages_with_one_name_are_told(packages: Path) -> None:
    for module in ("codex_py_greet", "codex_py_other"):
        install_package(packages, module, "", {COMMANDS: {"same": f"{module}:command"}})
    with pytest.raises(ConfigError, match="codex-py-greet, codex-py-other have it"):
        find(COMMANDS, "same")
