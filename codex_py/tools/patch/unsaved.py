"""Finds the unsaved text of the files that a patch names, and shows an editor what was written."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from codex_py.filesystem.open_text import (
    BYTE_ORDER_MARK,
    MAX_BYTES,
    as_on_disk,
    is_text,
)
from codex_py.filesystem.reading import read_whole
from codex_py.patch.plan import UnsavedText
from codex_py.protocol.patched_file import OpenTexts, PatchedFile
from codex_py.tools.patch.scope import ReadScope


async def unsaved_texts(
    editor: OpenTexts, paths: Iterable[Path], scope: ReadScope
) -> Mapping[str, UnsavedText]:
    """Return the texts that differ from the files on disk, by the real paths of the files.

    The editor is asked only about text files in UTF-8 that the patch may read.

    Args:
        paths: absolute paths of the files, which may not exist.

    Raises:
        ToolError: the editor failed, or did not answer in time.
    """
    on_disk = await asyncio.to_thread(_on_disk, paths, scope)
    reading = [editor.read(path) for path, _ in on_disk.values()]
    # Every read has a deadline, so all are waited for.
    texts = await asyncio.gather(*reading, return_exceptions=True)
    unsaved: dict[str, UnsavedText] = {}
    for (location, (_, disk)), text in zip(on_disk.items(), texts, strict=True):
        if isinstance(text, BaseException):
            raise text
        if text is None:
            continue
        data = as_on_disk(text, disk)
        if data != disk:
            unsaved[location] = UnsavedText(disk, data)
    return unsaved


async def show_written(
    editor: OpenTexts, changes: Sequence[PatchedFile]
) -> Sequence[str]:
    """Give the editor the texts that a patch has written. Returns notes about it for the model."""
    texts: dict[Path, str] = {}
    for change in changes:
        data = change.new
        if data is None or change.link is not None:
            continue
        if (
            len(data) > MAX_BYTES
            or not is_text(data)
            or data.startswith(BYTE_ORDER_MARK)
        ):
            continue
        texts[change.destination] = data.decode()
    notes = list(await editor.show(texts))
    notes += await asyncio.to_thread(_saved_otherwise, texts)
    return notes


def _on_disk(paths: Iterable[Path], scope: ReadScope) -> dict[str, tuple[Path, bytes]]:
    """Read the text files. Returns path and contents by real path."""
    found: dict[str, tuple[Path, bytes]] = {}
    for path in paths:
        try:
            location = os.path.realpath(path)
            if not scope.readable(location):
                continue
            data = read_whole(location, MAX_BYTES)
        except (OSError, ValueError):
            # The patch itself says what is wrong with the file.
            continue
        if is_text(data):
            found[location] = (path, data)
    return found


def _saved_otherwise(texts: Mapping[Path, str]) -> list[str]:
    """Name the files that the editor saved with other contents, as one that formats does."""
    notes: list[str] = []
    for path, text in texts.items():
        try:
            data = read_whole(path, 2 * MAX_BYTES)
        except OSError:
            continue
        if data != text.encode():
            notes.append(f"the editor saved {path} with other contents; read it again")
    return notes
