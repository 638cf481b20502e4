"""Finds the text of linked files that the client's user sees and has not saved."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from codex_py.errors import ToolError
from codex_py.filesystem.open_text import MAX_BYTES, as_on_disk, is_text
from codex_py.filesystem.reading import Refusal, read_whole
from codex_py.patch.diff.writer import git_diff
from codex_py.protocol.calls import shortened
from codex_py.protocol.patched_file import OpenTexts, PatchedFile

_MAX_FILES: Final = 20
"""The number of links of a prompt that are looked at."""
_MAX_CHARACTERS: Final = 50_000
"""The longest text of a file that is sent whole; of a longer one, the changes are sent."""


async def unsaved_texts(
    links: Sequence[str], editor: OpenTexts, refuses: Refusal
) -> Sequence[str]:
    """Return a passage for the model about each linked file with text that is not saved.

    A file that is saved has none: the model reads it from disk. If the editor fails, the passage
    says so.

    Args:
        links: the targets of links, such as `/a/b.py#L10`. Only absolute paths are looked at.
        refuses: tells which files must not be read.
    """
    paths = list(dict.fromkeys([link.partition("#")[0] for link in links]))
    found = await asyncio.to_thread(_texts_on_disk, paths[:_MAX_FILES], refuses)
    reading = [_passage(Path(path), disk, editor) for path, disk in found.items()]
    passages = await asyncio.gather(*reading)
    return [passage for passage in passages if passage]


def _texts_on_disk(paths: Sequence[str], refuses: Refusal) -> dict[str, bytes | None]:
    """Read text files. None for one that does not exist: it may only be in the editor. Blocks."""
    found: dict[str, bytes | None] = {}
    for path in paths:
        if not path.startswith("/"):
            continue
        try:
            # Also a file that is not there yet may be denied.
            if refuses(path, None):
                continue
            data = read_whole(path, MAX_BYTES, refuses=refuses)
        except FileNotFoundError:
            found[path] = None
        except (OSError, ValueError):
            # A folder, a file that is too large or must not be read, or no possible name.
            continue
        else:
            if is_text(data):
                found[path] = data
    return found


async def _passage(path: Path, disk: bytes | None, editor: OpenTexts) -> str:
    """The passage about a file; empty if the disk has its text."""
    try:
        text = await editor.read(path)
    except ToolError as error:
        return f"Note: {path} may have text that is not saved: {error}."
    if text is None:
        return ""
    data = as_on_disk(text, disk or b"")
    if data == disk:
        return ""
    shown = text
    if len(text) > _MAX_CHARACTERS and disk is not None:
        shown = git_diff([PatchedFile.of(path, disk, data)], path.parent)
    shown = shortened(shown, _MAX_CHARACTERS)
    return (
        f"The user has not saved {path}, so commands see older text. The editor has:\n"
        f'<context ref="{path}">\n{shown}\n</context>'
    )
