"""The AGENTS.md of folders that the session did not start in: told when a call first leads there.

Loaded with the tools, behind the first request.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.app.options import SessionSetup
from codex_py.app.thread import imported_docs
from codex_py.config.paths import folders_between
from codex_py.core.agents_md import nested_agents_md
from codex_py.protocol.dispatch import Dispatch, ToolUse, changed_paths
from codex_py.protocol.extension import Thread
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.protocol.prompts import Note, message_texts
from codex_py.protocol.tools import ToolOutput

_OPENING: Final = "# AGENTS.md of a folder: "
_NOTE: Final = f"""\
<note>
{_OPENING}{{path}}

These instructions hold for the files in {{folder}} and below it. They add to earlier ones, and count where they differ from them.

<INSTRUCTIONS>
{{text}}
</INSTRUCTIONS>
</note>"""
_HEAD: Final = re.compile(f"<note>\n{re.escape(_OPENING)}(.*)\n")
_WORD: Final = re.compile(r"[^\s'\"`|&;<>()=:,*?{}$\\]+")
_MAX_CHARACTERS: Final = 8_192
_MAX_WORDS: Final = 100
"""Words of a command that are tried as paths; each costs a look at the disk."""
_NAMING: Final = ("cmd", "command", "path")
"""Arguments of tools in which a path may be: of commands, and of `view_image`."""


class NestedAgentsMd:
    def __init__(self, setup: SessionSetup, thread: Thread) -> None:
        config = setup.config
        folders = folders_between(config.project_root, config.cwd)
        self._config = config
        self._thread = thread
        self._top = folders[0]
        self._looked_at = set(map(str, folders))
        self._told: dict[str, int] = {}
        """The folders whose instructions are in the history, with their size in bytes."""
        self._pending: list[Note] = []
        self._length = 0
        """Of the history, when it was last looked at."""

    def wrap_dispatch(self, inner: Dispatch) -> Dispatch:
        async def dispatch(use: ToolUse) -> ToolOutput:
            self._follow_history()
            for path in _touched(use):
                self._visit(path)
            return await inner(use)

        return dispatch

    def before_request(self) -> Sequence[Note]:
        self._follow_history()
        notes, self._pending = self._pending, []
        return notes

    def _follow_history(self) -> None:
        """Read it if the session was resumed, and if a part of it was taken back."""
        items = self._thread.items
        if self._length == 0 or len(items) < self._length:
            pending = {_parent(match[1]) for match in _heads(self._pending)}
            found = {_parent(path): note for path, note in _notes(items).items()}
            self._looked_at -= self._told.keys() - found.keys() - pending
            self._looked_at |= found.keys()
            self._told = {folder: len(note.text.encode()) for folder, note in found.items()}
        self._length = len(items)

    def _visit(self, path: str) -> None:
        """Look for instructions in the folders from the root of the project down to a file or a folder."""
        folder = path if _is_folder(path) else _parent(path)
        top = f"{self._top}/"
        if not folder.startswith(top) or _is_foreign(folder.removeprefix(top)):
            return
        new: list[str] = []
        while folder.startswith(top) and folder not in self._looked_at:
            new.append(folder)
            folder = _parent(folder)
        for each in reversed(new):
            if _is_folder(each):
                self._looked_at.add(each)
                self._look_into(each)

    def _look_into(self, folder: str) -> None:
        max_bytes = self._config.project_doc_max_bytes
        path, found = nested_agents_md(
            Path(folder),
            root=self._top,
            max_bytes=max_bytes,
            room=max(0, max_bytes - sum(self._told.values())),
            fallback_filenames=self._config.project_doc_fallback_filenames,
            imports=imported_docs,
        )
        for warning in found.warnings:
            self._thread.warn(warning)
        if found.text is not None:
            text = _NOTE.format(path=path, folder=folder, text=found.text)
            self._told[folder] = len(found.text.encode())
            self._pending.append(Note(text, "user"))
            self._thread.warn(f"The model is told the instructions of {path}.")


def nested_notes(items: Sequence[EncodedItem]) -> list[Note]:
    """The instructions of folders that are in a history, each once."""
    return list(_notes(items).values())


def _notes(items: Sequence[EncodedItem]) -> dict[str, Note]:
    """The same, by the path of the file."""
    notes: dict[str, Note] = {}
    for item in items:
        if _OPENING.encode() in item:
            data: Any = decode_json(item)
            texts = message_texts(data.get("content")) if data.get("role") == "user" else ()
            told = [Note(text, "user") for text in texts]
            notes |= {match[1]: note for note in told for match in _heads([note])}
    return notes


def _heads(notes: Sequence[Note]) -> Iterator[re.Match[str]]:
    return (match for note in notes if (match := _HEAD.match(note.text)))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _is_folder(path: str) -> bool:
    # Any word may be looked up: `Path.is_dir` raises for what is no path.
    return os.path.isdir(path)  # noqa: PTH112


def _is_foreign(path: str) -> bool:
    """True in folders that hold what others wrote, or that git and editors keep."""
    return any(part.startswith(".") or part == "node_modules" for part in path.split("/"))


def _touched(use: ToolUse) -> Iterator[str]:
    """Paths that a call names, absolute and normalised; they need not exist."""
    if changed := changed_paths(use):
        yield from map(os.path.normpath, changed)
        return
    base = use.context.cwd / (getattr(use.params, "workdir", None) or "")
    yield os.path.normpath(base)
    for name in _NAMING:
        value = getattr(use.params, name, "")
        text = value if isinstance(value, str) else " ".join(map(str, value))
        for word in _WORD.findall(text[:_MAX_CHARACTERS])[:_MAX_WORDS]:
            if not word.startswith(("-", "~")):
                yield os.path.normpath(f"{base}/{word}" if word[0] != "/" else word)
