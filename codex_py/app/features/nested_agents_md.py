"""Sends the AGENTS.md of a folder when a call first leads there. LIGHT.

The session did not start in these folders, so the model has not been told of them.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from codex_py.app.agents_md import agents_md
from codex_py.app.options import SessionSetup
from codex_py.config.paths import folders_between
from codex_py.protocol.dispatch import Dispatch, ToolUse, changed_paths
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import Note, context_texts
from codex_py.protocol.tools import ToolOutput

_OPENING: Final = "<note>\n# AGENTS.md instructions for "
_FULL: Final = "The model is not told the AGENTS.md of further folders: `project_doc_max_bytes` is used up."
_WORD: Final = r"[^\s'\"`|&;<>()=:,*?{}\[\]$\\]+"
_MAX_CHARACTERS: Final = 8_192
_MAX_WORDS: Final = 100
"""The number of words of a command that are tried as paths; each costs a look at the disk."""
_NAMING: Final = ("cmd", "command", "path")
"""The arguments in which a path may be: of commands, and of `view_image`."""


class NestedAgentsMd:
    def __init__(self, setup: SessionSetup) -> None:
        self._config = config = setup.config
        self._warn = setup.warn
        self._folders = folders_between(config.project_root, config.cwd)
        self._top = f"{self._folders[0]}/".replace("//", "/")
        self._looked_at: set[str] = set()
        self._room = 0
        """The number of bytes that the model may still be told."""
        self._seen: tuple[int, EncodedItem] | None = None
        """The length of the history at the last look, and its last item then."""

    def __call__(self, thread: Thread) -> Extension:
        self._thread = thread
        return Extension(
            wrap_dispatch=self._wrap_dispatch,
            context=lambda occasion: (
                nested_notes(thread.items) if occasion == "compact" else ()
            ),
        )

    def _wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        """Tell the model of the `AGENTS.md` files of folders that a call has touched."""

        async def dispatch(use: ToolUse) -> ToolOutput:
            output = await inner(use)
            self._follow_history()
            notes: list[Note] = []
            for path in _touched(use):
                notes += self._visit(path)
            if notes:
                return replace(output, notes=(*output.notes, *notes))
            return output

        return dispatch

    def _follow_history(self) -> None:
        """Find out what the model was told, also after a part of the history was taken back."""
        items = self._thread.items
        if not self._has_only_grown(items):
            self._read_history(items)
        self._seen = len(items), items[-1]

    def _has_only_grown(self, items: Sequence[EncodedItem]) -> bool:
        """True if the history still begins with the items of the last look."""
        if self._seen is None:
            return False
        length, last = self._seen
        return length <= len(items) and items[length - 1] is last

    def _read_history(self, items: Sequence[EncodedItem]) -> None:
        told = [note.text for note in nested_notes(items)]
        folders: list[str] = []
        for text in told:
            folder, _, _ = text.removeprefix(_OPENING).partition("\n\n<INSTR")
            folders.append(folder)
        self._looked_at = {*map(str, self._folders), *folders}
        used = sum(len(text.encode()) for text in told)
        self._room = self._config.project_doc_max_bytes - used

    def _visit(self, path: str) -> Iterator[Note]:
        """Yield the instructions of the folders from the root of the project down to a file or a
        folder.
        """
        if not path.startswith(self._top):
            return
        folder = self._top.rstrip("/")
        for part in path.removeprefix(self._top).split("/"):
            # These folders belong to git, to editors or to installed packages.
            if part.startswith(".") or part == "node_modules":
                return
            folder = f"{folder}/{part}"
            # Any word may be looked up here, and `Path.is_dir` raises for words that cannot be
            # paths.
            if not os.path.isdir(folder):
                return
            if folder not in self._looked_at:
                self._looked_at.add(folder)
                yield from self._instructions(Path(folder))

    def _instructions(self, folder: Path) -> Iterator[Note]:
        """Yield the instructions of one folder, if it has any and there is room for them."""
        found = agents_md(
            home=None,
            root=self._folders[0],
            folders=[folder],
            # With 0, `agents_md` would not say whether there are instructions.
            max_bytes=max(1, self._room),
            fallback_filenames=self._config.settings.project_doc_fallback_filenames,
            rules=self._config.files,
        )
        text = found.text
        if text is not None and self._room <= 0:
            self._warn(_FULL)
            return
        for warning in found.warnings:
            self._warn(warning)
        if text is not None:
            self._room -= len(text.encode())
            self._warn(f"The model is told the instructions for {folder}.")
            yield Note(f"<note>\n{text}\n</note>", "user")


def nested_notes(items: Sequence[EncodedItem]) -> list[Note]:
    """Return the instructions of folders that are in a history, each once."""
    latest_first = dict.fromkeys(context_texts(_OPENING, items))
    return [Note(text, "user") for text in reversed(latest_first)]


def _touched(use: ToolUse) -> Iterator[str]:
    """Yield the paths that a call names, absolute and normalised. They need not exist."""
    changed = changed_paths(use)
    if changed:
        yield from map(os.path.normpath, changed)
        return
    # Tools from elsewhere may have arguments with these names too, of any type.
    workdir = getattr(use.params, "workdir", None)
    base = use.context.cwd
    if isinstance(workdir, str):
        base /= workdir
    yield os.path.normpath(base)
    for name in _NAMING:
        value: object = getattr(use.params, name, "")
        text = value if isinstance(value, str) else str(value)
        for word in re.findall(_WORD, text[:_MAX_CHARACTERS])[:_MAX_WORDS]:
            if not word.startswith(("-", "~")):
                # The result is the word itself if it is absolute.
                yield os.path.normpath(base / word)
