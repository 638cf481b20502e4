"""Finds the programs that we start ourselves, outside of folders that the model or the repository can write to."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path


def safe_search_path(search_path: str, outside_of: Sequence[Path]) -> str:
    """A `$PATH` without relative folders and without those inside the given ones, which are absolute."""
    barred = [folder.resolve() for folder in outside_of]
    return os.pathsep.join(
        folder
        for folder in search_path.split(os.pathsep)
        if folder.startswith("/")
        and not any(Path(folder).resolve().is_relative_to(root) for root in barred)
    )


def find_program(name: str, search_path: str, outside_of: Sequence[Path]) -> str | None:
    """The absolute path of a program on a `$PATH`; neither it nor the target of its links is in the folders."""
    found = shutil.which(name, path=safe_search_path(search_path, outside_of))
    if found is None:
        return None
    real = Path(found).resolve()
    return None if any(real.is_relative_to(folder.resolve()) for folder in outside_of) else found
