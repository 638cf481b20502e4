"""Packages whose import fails: each door says so in one sentence, and no run seems to succeed.

Tests `registry.py`.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.packages import install_package, run_with
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

MODULE = "codex_py_broken"
EXEC = ("exec", "--skip-git-repo-check")
BODIES = {
    "exits with success": "import sys\nsys.exit(0)\n",
    "raises": "raise ValueError('boom')\n",
    "raises what cannot be shown": """
class Broken(BaseException):
    def __repr__(self):
        raise ValueError("no text")

raise Broken
""",
}
DOORS: dict[str, tuple[str, Sequence[str]]] = {
    "codex_py.commands": ("", ("broken",)),
    "codex_py.extensions": ("[extensions.broken]\n", (*EXEC, "go")),
    "codex_py.failures": ("", (*EXEC, "--fail-on", "broken", "go")),
    "codex_py.options": ("", (*EXEC, "--broken", "go")),
    "codex_py.review_formats": (
        "",
        ("review", "--skip-git-repo-check", "--format", "broken", "look"),
    ),
    "codex_py.reviewers": ('approvals_reviewer = "broken"\n', (*EXEC, "go")),
    "codex_py.tables": ("[broken]\n", (*EXEC, "go")),
    "codex_py.wires": (
        '[model_providers.b]\nbase_url = "http://127.0.0.1:9"\nwire_api = "broken"\n',
        (*EXEC, "-c", "model_provider=b", "go"),
    ),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("group", DOORS)
def test_a_package_that_cannot_be_imported_ends_the_start(
    place: Workplace, tmp_path: Path, group: str, body: str
) -> None:
    packages = tmp_path / "packages"
    install_package(packages, MODULE, body, {group: {"broken": f"{MODULE}:it"}})
    config, argv = DOORS[group]
    with ScriptedServer([]) as server:
        place.configure(server)
        path = place.home / "config.toml"
        text = path.read_text(encoding="utf-8")
        # A key of the top level stands above the first table.
        parts = (text, config) if config.startswith("[") else (config, text)
        path.write_text("\n".join(parts), encoding="utf-8")
        done = run_with(packages, place, *argv)
        assert server.requests == []
    errors = done.stderr.decode()
    assert done.returncode == 78, errors
    assert f"'broken' ({MODULE}:it) cannot be used: " in errors
    assert errors.count("\n") == 1


def test_an_unknown_option_is_told_whatever_packages_call_theirs(
    place: Workplace, tmp_path: Path
) -> None:
    packages = tmp_path / "packages"
    points = {f"{name}": f"{MODULE}:it" for name in ("sandbox", "model", "words")}
    install_package(packages, MODULE, "", {"codex_py.options": points})
    done = run_with(packages, place, "exec", "--wordz", "go")
    assert done.returncode == 2
    assert done.stderr == b"Error: unknown option --wordz. Did you mean --words?\n"


def test_names_that_move_the_cursor_are_not_shown(
    place: Workplace, tmp_path: Path
) -> None:
    packages = tmp_path / "packages"
    points = {
        "wide\x1b[2J": f"{MODULE}:it",
        "plain": f"{MODULE}:it",
        "": f"{MODULE}:it",
    }
    install_package(packages, MODULE, "", {"codex_py.options": points})
    install_package(
        packages, "other\x1b", "", {"codex_py.options": {"more": "other:it"}}
    )
    done = run_with(packages, place, "help", "exec")
    assert done.returncode == 0
    assert b"--plain" in done.stdout
    assert b"\x1b" not in done.stdout
    assert b"wide" not in done.stdout
    assert b"--more" not in done.stdout
