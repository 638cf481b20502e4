"""The texts for the model: Markdown files in `instructions/`."""

from functools import cache
from pathlib import Path

# A wheel has the files inside the package, a checkout beside it.
_FOLDERS = (
    Path(__file__).with_suffix(""),
    Path(__file__).parent.parent / "instructions",
)


@cache
def instruction_text(name: str) -> str:
    """The text of the file with this path below `instructions/`, such as `tools/apply_patch.md`.

    A newline at the very end of the file is not part of the text.
    """
    folder = next(
        (folder for folder in _FOLDERS if (folder / name).is_file()), _FOLDERS[-1]
    )
    return (folder / name).read_text(encoding="utf-8").removesuffix("\n")
