"""AGENTS.md: the instructions of the user and of the project for any agent.

Format: https://agents.md. Files are searched and joined as in Codex. `@PATH` adds files as in
Claude Code.
"""

import os
import re
from collections.abc import Iterator, Sequence
from os.path import normpath
from pathlib import Path
from typing import Final

from codex_py.app.markdown import without_code
from codex_py.filesystem.denials import denials_of
from codex_py.filesystem.reading import Refusal, read_start, real_path
from codex_py.filesystem.texts import decode_readable
from codex_py.protocol.file_rules import NO_RULES, FileRules
from codex_py.protocol.frozen import frozen
from codex_py.protocol.prompts import AGENTS_MD

_NAMES: Final = ("AGENTS.override.md", "AGENTS.md")
_MAX_GLOBAL_BYTES: Final = 262_144
"""The limit for the user's own file, which no setting limits: some 65,000 tokens."""
_MAX_DEPTH: Final = 5
"""The number of imports that may lead from one to the next."""
_MAX_MENTIONS: Final = 200
"""The number of mentions in one file; each costs a look at the disk."""
_MENTION: Final = r"(?:^|(?<=[\s(]))@((?:\\ |[^\s\\])+)"
_PUNCTUATION: Final = ".,;:!?)]}'\"*_"
"""The characters that end a sentence after a mention, rather than belong to the name."""


@frozen
class AgentsMd:
    """The instructions that apply in a folder."""

    text: str | None
    """A part of the first user message; None without instructions."""
    warnings: tuple[str, ...] = ()
    """One sentence for each file that was cut or left out, or that cannot be read."""


@frozen
class _Document:
    """The beginning of an instruction file with its imports."""

    path: Path
    content: bytes
    """The text in UTF-8, without a byte order mark."""
    size: int
    """The size in bytes of the whole file and its imports."""


def agents_md(
    *,
    home: Path | None,
    folders: Sequence[Path],
    max_bytes: int,
    root: Path | None = None,
    fallback_filenames: Sequence[str] = (),
    rules: FileRules = NO_RULES,
) -> AgentsMd:
    """Collect the instructions that apply in the working directory.

    The user has one file, in `home`. The project may have one in each of the `folders`. The nearest
    file is the most specific, so it is the last to be cut; a warning and a note in the text say
    what is missing. A project file that is a link out of the project is left out: it could send the
    model any file of the user. An imported file must be inside the project, or inside `home`.

    Args:
        home: the folder with the user's file; None for no such file.
        folders: the folders from the root of the project down to the working directory.
        max_bytes: the limit for all project files together; 0 turns them off.
        root: the root of the project; None: the first of the folders.
        fallback_filenames: further names for a project file.
    """
    warnings: list[str] = []
    root = root or folders[0]
    refuses = denials_of(rules).refuses if rules.denies else None
    general = ""
    if home is not None:
        general = _general(home, warnings, refuses)
    documents: list[_Document] = []
    if max_bytes > 0:
        names = (*_NAMES, *fallback_filenames)
        for folder in folders:
            for name in names:
                document = _read(folder / name, max_bytes, root, warnings, refuses)
                if document is None:
                    continue
                # A blank file counts, so that an empty override silences the others.
                if document.content.strip():
                    documents.append(document)
                break
    project = _joined(documents, max_bytes, warnings)
    if not general and not project:
        return AgentsMd(None, tuple(warnings))
    heading = AGENTS_MD
    if project:
        heading += f" for {folders[-1]}"
    body = "\n\n--- project-doc ---\n\n".join(filter(None, (general, project)))
    text = f"{heading}\n\n<INSTRUCTIONS>\n{body}\n</INSTRUCTIONS>"
    return AgentsMd(text, tuple(warnings))


def _general(
    home: Path,
    warnings: list[str],
    refuses: Refusal | None,
) -> str:
    """The instructions of the user: the first file that is not blank."""
    for name in _NAMES:
        document = _read(home / name, _MAX_GLOBAL_BYTES, None, warnings, refuses)
        if document is None:
            continue
        text = _text(document, document.content, warnings).strip()
        if text:
            return text
    return ""


def _joined(
    documents: Sequence[_Document],
    max_bytes: int,
    warnings: list[str],
) -> str:
    """The texts of the project's files, cut to `max_bytes` from the first one on."""
    remaining = max_bytes
    reason = "project_doc_max_bytes is used up"
    texts: list[str] = []
    for document in reversed(documents):
        kept = document.content[:remaining]
        remaining -= len(kept)
        texts.append(_text(document, kept, warnings, reason))
    return "\n\n".join(reversed(texts))


def _text(
    document: _Document,
    kept: bytes,
    warnings: list[str],
    reason: str = "",
) -> str:
    """Return the kept text, with a note if it is not the whole text.

    Args:
        reason: the reason of the cut, for the note.
    """
    if len(kept) == document.size:
        return kept.decode()
    if kept:
        note = f"Only the first {len(kept)} of {document.size} bytes of {document.path} were loaded"
    else:
        note = f"{document.path} was left out for its size of {document.size} bytes"
    if reason:
        note += f": {reason}"
    warnings.append(f"{note}.")
    # The cut may go through a character.
    text = kept.decode(errors="ignore")
    if text:
        return f"{text}\n[{note}]\n"
    return f"[{note}]\n"


def _read(
    path: Path,
    max_bytes: int,
    root: Path | None,
    warnings: list[str],
    refuses: Refusal | None,
) -> _Document | None:
    """Read the first bytes of a file and its imports; None if it is missing or cannot be read."""
    try:
        content, size = _read_text(path, max_bytes, root, warnings, refuses)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        warnings.append(f"{path} cannot be read: {_reason(error)}.")
        return None
    if b"@" in content and len(content) == size:
        top = root or path.parent
        content, size, told = with_imports(path, content, top, max_bytes, refuses)
        warnings += told
    return _Document(path, content, size)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return str(error.strerror)
    return str(error)


def _read_text(
    path: Path,
    max_bytes: int,
    root: Path | None,
    warnings: list[str],
    refuses: Refusal | None,
) -> tuple[bytes, int]:
    """Read the first bytes of a text in UTF-8, and the size of the whole text.

    Faults in the text are added to the warnings.

    Raises:
        OSError, ValueError: the file cannot be read, or is not text.
    """
    read, size = read_start(path, max_bytes, root=root, refuses=refuses)
    is_cut = len(read) < size
    text, fault = decode_readable(read, is_cut=is_cut)
    if fault is not None:
        warnings.append(f"A part of {path} cannot be read: {fault}; save it as UTF-8.")
    content = text.encode()
    if is_cut:
        return content, size
    return content, len(content)


def with_imports(
    path: Path,
    content: bytes,
    root: Path,
    max_bytes: int,
    refuses: Refusal | None = None,
) -> tuple[bytes, int, list[str]]:
    """Append the files that a document imports, each under its path.

    The text of the document itself stays as it is, and an `@name` that is no file is only text.

    Args:
        path: the absolute path of the document.
        content: the whole document, in UTF-8.
        root: a folder that no import may lead out of.
        max_bytes: the limit for the document and its imports together.

    Returns:
        The first `max_bytes`, the whole size in bytes, and one sentence for each file that is left
        out.
    """
    parts = [content]
    size = len(content)
    warnings: list[str] = []
    seen = {real_path(path, None)}
    # The documents that were not searched for mentions yet, with the depth of their imports.
    documents = [(path, content, 1)]
    while documents:
        document, text, depth = documents.pop(0)
        for name, named in _mentioned(document, text):
            room = max(0, max_bytes - size)
            try:
                real = real_path(named, None)
                if real in seen:
                    continue
                _refuse(named, Path(real), root, depth)
                imported, its_size = _read_text(named, room, root, warnings, refuses)
            except (OSError, ValueError) as error:
                warnings.append(f"{document} cannot import @{name}: {_reason(error)}.")
                continue
            seen.add(real)
            head = f"\n\n--- {named} ---\n\n".encode()
            parts.append((head + imported)[:room])
            size += len(head) + its_size
            documents.append((named, imported, depth + 1))
    return b"".join(parts), size, warnings


def _mentioned(document: Path, content: bytes) -> Iterator[tuple[str, Path]]:
    """Yield each name after an `@` in a document that means a file, with its absolute path."""
    text = without_code(content.decode(errors="ignore"))
    mentions = re.finditer(_MENTION, text, re.MULTILINE)
    names = dict.fromkeys(mention[1] for mention in mentions)
    for name in list(names)[:_MAX_MENTIONS]:
        path = _file(document.parent, name.replace("\\ ", " "))
        if path is not None:
            yield name, path


def _refuse(
    path: Path,
    real: Path,
    root: Path,
    depth: int,
) -> None:
    """Raise a `ValueError` if the file must not be imported. `real`: its path without links."""
    if root not in path.parents:
        raise ValueError(f"it is outside of {root}")
    for each in (path, real):
        if each.name.startswith(".") or ".git" in each.parts:
            raise ValueError("it is a hidden file")
    if depth > _MAX_DEPTH:
        raise ValueError(f"imports are at most {_MAX_DEPTH} deep")


def _file(folder: Path, name: str) -> Path | None:
    """Return the file that a mention means. The name may be followed by the end of a sentence."""
    for each in dict.fromkeys((name, name.rstrip(_PUNCTUATION))):
        # Any word may be a mention, and `Path.expanduser` and `is_file` raise for words that cannot
        # be paths.
        path = normpath(folder / os.path.expanduser(each))  # noqa: PTH111
        if os.path.isfile(path):
            return Path(path)
    return None
