"""Tables of the configuration that installed packages claim, as `docs/extensions.md` shows one.

Tests `api/tables.py` and `config/declared/claimed.py`.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.packages import (
    install_package,
    run_with,
    shown_block,
    shown_points,
)
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

GROUP = "codex_py.tables"
EXEC = ("exec", "--json", "--skip-git-repo-check")

Run: TypeAlias = Callable[..., "subprocess.CompletedProcess[bytes]"]


def install(packages: Path, module: str) -> None:
    points = shown_points(GROUP)
    install_package(packages, "codex_py_quiet", module, {GROUP: points})


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    return tmp_path / "packages"


@pytest.fixture
def run(place: Workplace, packages: Path) -> Run:
    def run(setting: str, *options: str) -> "subprocess.CompletedProcess[bytes]":
        answer = [*ev_message("done"), ev_completed()]
        with ScriptedServer([answer]) as server:
            place.configure(server)
            config = place.home / "config.toml"
            text = config.read_text(encoding="utf-8")
            config.write_text(f"{text}\n{setting}\n", encoding="utf-8")
            words = [*EXEC, *options, "go"]
            return run_with(packages, place, *words)

    return run


def test_a_table_of_a_package_makes_its_feature(packages: Path, run: Run) -> None:
    install(packages, shown_block("class QuietHours"))
    done = run('[quiet-hours]\nbegin = "22:00"')
    assert done.returncode == 0, done.stderr
    assert b"It is quiet from 22:00." in done.stdout


def test_without_the_table_the_package_is_not_imported(
    packages: Path, run: Run
) -> None:
    install(packages, "raise SystemError('it was imported')\n")
    done = run("")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("begin = 22", "`quiet-hours.begin` must be a string, not `22`"),
        ("begun = '22:00'", "did you mean `quiet-hours.begin`?"),
    ],
)
def test_a_mistake_in_the_table_is_one_sentence(
    packages: Path, run: Run, setting: str, message: str
) -> None:
    install(packages, shown_block("class QuietHours"))
    done = run(f"[quiet-hours]\n{setting}", "--strict-config")
    assert done.returncode == 78
    text = done.stderr.decode()
    assert message in text
    assert "config.toml" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("import no_such_module\n", "ModuleNotFoundError"),
        ("QuietHours = 3\n", "is no subclass of `ClaimedTable`"),
        (
            shown_block("class QuietHours").replace("return quiet_hours", "return 3"),
            "`feature` returned int, which is not callable",
        ),
        (
            shown_block("class QuietHours").replace("return quiet_hours", "1 / 0"),
            "ZeroDivisionError",
        ),
    ],
)
def test_a_package_that_cannot_be_used_is_named(
    packages: Path, run: Run, module: str, reason: str
) -> None:
    install(packages, module)
    done = run("[quiet-hours]\nbegin = '22:00'")
    text = done.stderr.decode()
    assert done.returncode == 78, text
    assert reason in text
    assert "QuietHours" in text
    assert "Traceback" not in text


def test_a_protecting_table_refuses_unknown_keys_and_misspelt_names(
    packages: Path, run: Run
) -> None:
    module = shown_block("class QuietHours").replace(
        "    begin:", "    protects = True\n    begin:"
    )
    install(packages, module)
    done = run("[quiet-hours]\nbegun = '22:00'")
    assert done.returncode == 78
    assert "quiet-hours.begun" in done.stderr.decode()


@pytest.mark.parametrize(
    ("kind", "default", "said"),
    [
        ("str", "3", "must be a string, not 3"),
        ("Limit", "0", "must be "),
        ("int | None", "'x'", "not 'x'"),
    ],
)
def test_a_default_of_another_type_is_named(
    packages: Path, run: Run, kind: str, default: str, said: str
) -> None:
    install(
        packages,
        f"""
from codex_py.api.tables import ClaimedTable, Limit, key

class QuietHours(ClaimedTable):
    begin: {kind} = key("The begin.", default={default})
""",
    )
    done = run("[quiet-hours]")
    text = done.stderr.decode()
    assert (done.returncode, text.count("\n")) == (78, 1), text
    named = "the table 'quiet-hours' (codex_py_quiet:QuietHours) cannot be used: "
    assert f"{named}the default of `begin` " in text
    assert said in text
