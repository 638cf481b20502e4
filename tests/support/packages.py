"""Packages that tests install: a module, and the metadata that an installer would write.

`docs/extensions.md` shows modules and entry points, which tests install as they stand there.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.program import Workplace, environment

ROOT = Path(__file__).parents[2]
DOC = ROOT / "docs/extensions.md"
EXAMPLE = ROOT / "examples/ledger"
"""The package of the first chapter."""
PROGRAM = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from codex_py.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""The program with another folder on `sys.path`, which is its first argument."""


def run_with(
    folder: Path, place: Workplace, *argv: str
) -> "subprocess.CompletedProcess[bytes]":
    """Run the program with another folder on `sys.path`, in the folder and home of a workplace."""
    return subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(folder), *argv],
        cwd=place.cwd,
        env=environment(place.home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


def shown_block(text: str) -> str:
    """The code block that has this text, in the chapters behind the table of all extension points."""
    (found,) = _shown_blocks(text)
    return found


def _shown_blocks(text: str) -> list[str]:
    _, _, chapters = DOC.read_text(encoding="utf-8").partition(
        "\n## All extension points\n"
    )
    blocks = re.findall(r"^```\w+\n(.*?)^```$", chapters, re.MULTILINE | re.DOTALL)
    return [each for each in blocks if text in each]


def shown_points(group: str) -> dict[str, str]:
    """The entry points of a group that the documentation shows in the first place."""
    found = _shown_blocks(f'[project.entry-points."{group}"]')
    lines = found[0].splitlines()[1:]
    return dict(line.replace('"', "").split(" = ") for line in lines)


def install_package(
    folder: Path, module: str, text: str, groups: Mapping[str, Mapping[str, str]]
) -> None:
    """Install a package of one module in a folder that is on `sys.path`.

    Args:
        module: the name of the module; the package is called so, with hyphens.
        groups: the entry points, by group and name.
    """
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    name = module.replace("_", "-")
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    (about / "METADATA").write_text(metadata, encoding="utf-8")
    lines: list[str] = []
    for group, points in groups.items():
        lines.append(f"[{group}]")
        lines += [f"{point} = {target}" for point, target in points.items()]
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
