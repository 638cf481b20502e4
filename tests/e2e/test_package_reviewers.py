"""A package decides approvals in place of the user, as `docs/extensions.md` shows it.

Tests `config/reviewers.py` and `app/installed.py`.
"""

import json
from pathlib import Path

import pytest

from tests.support.hooks import DONE, asks
from tests.support.packages import (
    install_package,
    run_with,
    shown_block,
    shown_points,
)
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

REVIEWERS = "codex_py.reviewers"
BROKEN = """
def reviewer(setup):
    {body}
"""
RAISING = """
from codex_py.api.approvals import Extension


class Raising:
    async def review(self, request):
        raise RuntimeError("the service is away")


def reviewer(setup):
    return lambda thread: Extension(wrap_approver=lambda user: Raising())
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    return tmp_path / "packages"


def install(packages: Path, text: str, name: str = "scratch") -> None:
    """Install a reviewer, under the name that the documentation shows or another, and the option."""
    (value,) = shown_points(REVIEWERS).values()
    module, _, _ = value.partition(":")
    options = {"scratch": f"{module}:ScratchOptions"}
    groups = {REVIEWERS: {name: value}, "codex_py.options": options}
    option = shown_block("class ScratchOptions")
    install_package(packages, module, f"{text}\n{option}", groups)


def run(place: Workplace, packages: Path, *argv: str) -> tuple[int, str, str]:
    """Have the model ask for a file outside of the sandbox.

    Returns:
        The exit code, the errors, and the outputs that the model read; `"[]"` if it was not asked.
    """
    outside = place.home / "outside"
    command = ("exec", "--skip-git-repo-check", "--scratch", *argv, "go")
    with ScriptedServer([asks(f"touch {outside}"), DONE]) as server:
        place.configure(server)
        done = run_with(packages, place, *command)
        requests = server.requests
    items = requests[-1].input if requests else []
    outputs = [item["output"] for item in items if "output" in item]
    return done.returncode, done.stderr.decode(), json.dumps(outputs)


def test_the_reviewer_of_the_documentation_decides(
    place: Workplace, packages: Path
) -> None:
    text = shown_block("class ScratchApprover")
    install(packages, text.replace("/srv/scratch", str(place.cwd)))
    code, errors, _ = run(place, packages)
    assert code == 0, errors
    assert (place.home / "outside").exists()


def test_it_hands_what_it_does_not_decide_to_the_user(
    place: Workplace, packages: Path
) -> None:
    install(packages, shown_block("class ScratchApprover"))
    code, errors, output = run(place, packages)
    assert code == 0, errors
    assert "there is nobody to ask" in output
    assert not (place.home / "outside").exists()


def test_a_reviewer_that_fails_allows_nothing(place: Workplace, packages: Path) -> None:
    install(packages, RAISING)
    code, errors, _ = run(place, packages)
    assert code == 1
    text = (
        "failed in the approver of `wrap_approver`: RuntimeError('the service is away')"
    )
    named = "the reviewer 'scratch' (codex_py_scratch:reviewer)"
    assert f"internal error: {named} {text}\n" in errors
    assert not (place.home / "outside").exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return None", "returned NoneType, not a feature"),
        ("raise KeyError('TEAM')", "KeyError('TEAM')"),
    ],
)
def test_a_reviewer_that_cannot_be_made_ends_the_start(
    place: Workplace, packages: Path, body: str, said: str
) -> None:
    install(packages, BROKEN.format(body=body))
    code, errors, output = run(place, packages)
    assert (code, output) == (2, "[]")
    assert said in errors
    assert "the reviewer 'scratch' (codex_py_scratch:reviewer)" in errors
    assert errors.count("\n") == 1


def test_a_reviewer_that_nobody_has_is_told_with_its_line_and_the_nearest_name(
    place: Workplace, packages: Path
) -> None:
    install(packages, shown_block("class ScratchApprover"), "scratches")
    setting = 'approvals_reviewer = "scratch"\n'
    (place.home / "config.toml").write_text(setting, encoding="utf-8")
    done = run_with(packages, place, "exec", "--skip-git-repo-check", "go")
    text = "no extension has a reviewer 'scratch'; did you mean 'scratches'?"
    assert done.returncode == 78
    assert "config.toml:1" in done.stderr.decode()
    assert text in done.stderr.decode()
