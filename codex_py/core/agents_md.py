"""AGENTS.md: the instructions of the user and of the project for any agent.

Format: https://agents.md; files are searched and joined as in Codex.
"""

import codecs
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from codex_py.filesystem.ordinary import read_start
from codex_py.protocol.frozen import frozen

_NAMES: Final = ("AGENTS.override.md", "AGENTS.md")
_MAX_GLOBAL_BYTES: Final = 262_144
"""A bound for the user's own file, which no setting limits: some 65,000 tokens."""


Importer: TypeAlias = Callable[[Path, bytes, Path, int], tuple[bytes, int, Sequence[str]]]
"""Adds the files that a document names as `@PATH`: see `config.doc_imports.with_imports`."""


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
    """Of the whole file and of what it imports, bytes."""


def _no_imports(_path: Path, content: bytes, _root: Path, _max_bytes: int):
    return content, len(content), ()


def agents_md(
    *,
    home: Path | None,
    folders: Sequence[Path],
    max_bytes: int,
    root: Path | None = None,
    fallback_filenames: Sequence[str] = (),
    imports: Importer = _no_imports,
) -> AgentsMd:
    """Collect the instructions that apply in the working directory.

    The user has one file, in `home`. The project may have one in each of the `folders`, which lead from its
    `root` (by default the first of them) down to the working directory. `max_bytes` bounds all project files together, and 0 turns them off.
    The nearest file is the most specific, so it is the last to be cut; a warning and a note in the text say
    what is missing. A project file that is a link out of the project is left out: it could send the model
    any file of the user. What a file imports must be inside the project, or inside `home`.
    """
    warnings: list[str] = []
    root = root or folders[0]
    general = "" if home is None else _general(home, imports, warnings)
    documents: list[_Document] = []
    if max_bytes > 0:
        names = (*_NAMES, *fallback_filenames)
        for folder in folders:
            files = (_read(folder / name, max_bytes, root, warnings) for name in names)
            # A blank one counts, so that an empty override silences the others.
            document = next(filter(None, files), None)
            if document is not None and _decoded(document.content).strip():
                documents.append(_complete(document, root, max_bytes, imports, warnings))
    project = _joined(documents, max_bytes, warnings)
    if not general and not project:
        return AgentsMd(None, tuple(warnings))
    heading = "# AGENTS.md instructions" + (f" for {folders[-1]}" if project else "")
    body = "\n\n--- project-doc ---\n\n".join(filter(None, (general, project)))
    text = f"{heading}\n\n<INSTRUCTIONS>\n{body}\n</INSTRUCTIONS>"
    return AgentsMd(text, tuple(warnings))


def _general(home: Path, imports: Importer, warnings: list[str]) -> str:
    for name in _NAMES:
        document = _read(home / name, _MAX_GLOBAL_BYTES, None, warnings)
        if document is not None:
            document = _complete(document, home, _MAX_GLOBAL_BYTES, imports, warnings)
            if text := _text(document, document.content, warnings).strip():
                return text
    return ""


def _complete(
    document: _Document, root: Path, max_bytes: int, imports: Importer, warnings: list[str]
) -> _Document:
    """The document with what it imports."""
    if b"@" not in document.content or len(document.content) < document.size:
        return document
    content, size, told = imports(document.path, document.content, root, max_bytes)
    warnings += told
    return _Document(document.path, content, size)


def _joined(documents: Sequence[_Document], max_bytes: int, warnings: list[str]) -> str:
    remaining = max_bytes
    texts: list[str] = []
    for document in reversed(documents):
        kept = document.content[:remaining]
        remaining -= len(kept)
        texts.append(_text(document, kept, warnings, ": project_doc_max_bytes is used up"))
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
