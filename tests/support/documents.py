"""The pages of the documentation, and the commands and files that they show."""

import os
import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent.parent
DOCS: Final = ROOT / "docs"
PAGES: Final = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """The name that a test has for the page, as in `how-to/undo`."""
    folder = DOCS if page.is_relative_to(DOCS) else ROOT
    return page.relative_to(folder).with_suffix("").as_posix()


def blocks(language: str, text: str) -> list[str]:
    """The contents of the code blocks of a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class ShownFile(NamedTuple):
    """A file that the reader is told to save."""

    path: str
    """Relative to the working directory, or below `~`."""
    content: str


def shown_files(text: str) -> list[ShownFile]:
    """The code blocks behind a paragraph that says where to save them: as, or into, a path."""
    paragraph = r"(?:as|into)\s`(~?[\w./-]+)`(?:.|\n(?!\n))*:\n\n"
    pattern = rf"{paragraph}```\w+\n((?:.*\n)*?)```$"
    found = re.findall(pattern, text, re.MULTILINE)
    return [ShownFile(path, content) for path, content in found]


def write_program(folder: Path) -> None:
    """Put `codex-py`, as this checkout has it, into a folder for the PATH."""
    folder.mkdir(exist_ok=True)
    program = folder / "codex-py"
    program.write_text(
        f'#!/bin/sh\nexec {sys.executable} -m codex_py "$@"\n', encoding="utf-8"
    )
    program.chmod(0o755)


def reader_environment(folder: Path) -> dict[str, str]:
    """The environment of a reader whose home is `folder/home`, with the program of this checkout."""
    programs = folder / "bin"
    write_program(programs)
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder / "home"),
        "SHELL": "/bin/bash",
        "MOCK_KEY": "none",
    }
