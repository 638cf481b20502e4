"""The texts that the model is told: Markdown files in `instructions/`."""

from functools import cache
from pathlib import Path

# A wheel carries the files inside the package, a checkout beside it.
_FOLDERS = (
    Path(__file__).with_suffix(""),
    Path(__file__).parent.parent / "instructions",
)


@cache
def instruction_text(name: str) -> str:
    """The text of one file, named by its path below `instructions/`: `tools/apply_patch.md`.

    The line end at the very end of the file is not part of the text.
    """
    folder = next(
        (folder for folder in _FOLDERS if (folder / name).is_file()), _FOLDERS[-1]
    )
    return (folder / name).read_text(encoding="utf-8").removesuffix("\n")
