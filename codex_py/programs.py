"""Programs that we start ourselves: found where the model, or whoever wrote the repository, cannot put one."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path


def safe_search_path(search_path: str, outside_of: Sequence[Path]) -> str:
    """A `$PATH` without its relative folders and those in the given ones, which are absolute."""
    barred = [folder.resolve() for folder in outside_of]
    return os.pathsep.join(
        folder
        for folder in search_path.split(os.pathsep)
        if folder.startswith("/")
        and not any(Path(folder).resolve().is_relative_to(root) for root in barred)
    )


def find_program(name: str, search_path: str, outside_of: Sequence[Path]) -> str | None:
    """The program, absolute, that a `$PATH` leads to; neither it nor what it links to is in the folders."""
    found = shutil.which(name, path=safe_search_path(search_path, outside_of))
    if found is None:
        return None
    real = Path(found).resolve()
    return None if any(real.is_relative_to(folder.resolve()) for folder in outside_of) else found
