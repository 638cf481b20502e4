"""What the product imports is what the project file declares, and what CI installs is what it allows."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from codex_py.version import DISTRIBUTION
from tests.test_layers import trees

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]


OF_EXTRAS = {"PIL", "google", "opentelemetry", "requests"}
"""Packages that the extras `images` and `otel` bring, and that their modules alone import."""


def normalised(name: str) -> str:
    """The name of a distribution as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    return {
        normalised(re.split(r"[^\w.-]", requirement)[0]) for requirement in requirements
    }


def imported_packages() -> set[str]:
    """The top-level packages of others that the product imports, wherever it does."""
    found: set[str] = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=aliases):
                    found |= {alias.name.partition(".")[0] for alias in aliases}
                case ast.ImportFrom(module="typing_extensions"):
                    pass  # For type checkers, which know it: nothing is loaded.
                case ast.ImportFrom(module=str(module), level=0):
                    found.add(module.partition(".")[0])
                case _:
                    pass
    return found - sys.stdlib_module_names - {"codex_py"}


def test_the_imported_packages_are_the_declared_ones() -> None:
    distributions, packages = packages_distributions(), imported_packages()
    assert packages >= OF_EXTRAS
    packages -= OF_EXTRAS
    if absent := packages - distributions.keys():
        pytest.skip(f"not installed: {absent}; install the project again")
    imported = {normalised(distributions[package][0]) for package in packages}
    assert imported == names(PROJECT["dependencies"])


def test_the_constraints_are_exact_versions_of_everything_declared() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []
    # No script installs Ray.
    extras = [PROJECT["optional-dependencies"][name] for name in ("dev", "test")]
    declared = names(
        [*PROJECT["dependencies"], *(each for extra in extras for each in extra)]
    )
    assert declared - names(pins) == {DISTRIBUTION}


def test_httpx_loads_without_its_command_line() -> None:
    """`codex_py.model` hides the private module `httpx._main`; hence the upper bound of httpx."""
    code = "import sys; sys.modules['httpx._main'] = None; import httpx; print(callable(httpx.main))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.stdout == "True\n", done.stderr
