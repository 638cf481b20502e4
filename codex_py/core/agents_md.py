"""AGENTS.md: the instructions of the user and of the project for any agent.

Format: https://agents.md; files are searched and joined as in Codex.
"""

import codecs
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from codex_py.filesystem.ordinary import read_start
from codex_py.protocol.frozen import frozen

_NAMES: Final = ("AGENTS.override.md", "AGENTS.md")
_MAX_GLOBAL_BYTES: Final = 262_144
"""A bound for the user's own file, which no setting limits: some 65,000 tokens."""


@frozen
class AgentsMd:
    text: str | None
    """A part of the first user message; None if there are no instructions."""
    warnings: tuple[str, ...] = ()
    """One sentence for each file that was cut, left out or cannot be read."""


@frozen
class _Document:
    path: Path
    content: bytes
    size: int
    """Of the whole file, bytes."""


def agents_md(
    *,
    home: Path,
    folders: Sequence[Path],
    max_bytes: int,
    fallback_filenames: Sequence[str] = (),
) -> AgentsMd:
    """Collect the instructions that apply in the working directory.

    The user has one file, in `home`. The project may have one in each of the `folders`, which lead from its
    root down to the working directory. `max_bytes` bounds all project files together, and 0 turns them off.
    The nearest file is the most specific, so it is the last to be cut; a warning and a note in the text say
    what is missing. A project file that is a link out of the project is left out: it could send the model
    any file of the user.
    """
    warnings: list[str] = []
    general = _general(home, warnings)
    documents: list[_Document] = []
    if max_bytes > 0:
        names = (*_NAMES, *fallback_filenames)
        for folder in folders:
            files = (_read(folder / name, max_bytes, folders[0], warnings) for name in names)
            # A blank one counts, so that an empty override silences the others.
            document = next(filter(None, files), None)
            if document is not None and _decoded(document.content).strip():
                documents.append(document)
    project = _joined(documents, max_bytes, warnings)
    if not general and not project:
        return AgentsMd(None, tuple(warnings))
    heading = "# AGENTS.md instructions" + (f" for {folders[-1]}" if project else "")
    body = "\n\n--- project-doc ---\n\n".join(filter(None, (general, project)))
    text = f"{heading}\n\n<INSTRUCTIONS>\n{body}\n</INSTRUCTIONS>"
    return AgentsMd(text, tuple(warnings))


def _general(home: Path, warnings: list[str]) -> str:
    for name in _NAMES:
        document = _read(home / name, _MAX_GLOBAL_BYTES, None, warnings)
        if document and (text := _text(document, document.content, warnings).strip()):
            return text
    return ""


def _joined(documents: Sequence[_Document], max_bytes: int, warnings: list[str]) -> str:
    remaining = max_bytes
    texts: list[str] = []
    for document in reversed(documents):
        kept = document.content[:remaining]
        remaining -= len(kept)
        limit = f" (project_doc_max_bytes is {max_bytes})"
        texts.append(_text(document, kept, warnings, limit))
    return "\n\n".join(reversed(texts))


def _text(document: _Document, kept: bytes, warnings: list[str], limit: str = "") -> str:
    """The kept text, and a note if that is not all of it. `limit`: the setting behind that, for the note."""
    if len(kept) == document.size:
        return _decoded(kept)
    note = f"Only the first {len(kept)} of {document.size} bytes of {document.path} were loaded"
    if not kept:
        note = f"{document.path} was left out for its size of {document.size} bytes"
    note += limit
    warnings.append(f"{note}.")
    text = _decoded(kept, is_cut=True)
    return f"{text}\n[{note}]\n" if text else f"[{note}]\n"


def _read(path: Path, max_bytes: int, root: Path | None, warnings: list[str]) -> _Document | None:
    """The first bytes of a file; None if there is none. Adds a warning if it cannot be read."""
    try:
        return _Document(path, *read_start(path, max_bytes, root=root))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        warnings.append(f"{path} cannot be read: {reason}.")
        return None


def _decoded(content: bytes, *, is_cut: bool = False) -> str:
    """The text, without a character that the cut went through."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(content, final=not is_cut).removeprefix("\ufeff")
