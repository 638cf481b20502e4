"""Reads the texts for the model, which are the Markdown files in `instructions/`."""

from functools import cache
from pathlib import Path

# A wheel has the files inside the package, a checkout beside it.
_FOLDERS = (
    Path(__file__).with_suffix(""),
    Path(__file__).parent.parent / "instructions",
)


@cache
def instruction_text(name: str) -> str:
    """Read the file with this path below `instructions/`, such as `tools/apply_patch.md`.

    The newline at the end of the file is not part of the text. Raises an `OSError` if there is no
    such file.
    """
    paths = [folder / name for folder in _FOLDERS]
    existing = [path for path in paths if path.is_file()]
    # If there is no such file, the error names the last path.
    path, *_ = existing or paths[-1:]
    return path.read_text(encoding="utf-8").removesuffix("\n")
