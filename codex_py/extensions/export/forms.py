"""The formats of exports, and the writer of JSON, which docs/sessions.md describes."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from codex_py.api.commands import UsageError
from codex_py.api.conversations import Conversation, item_data, plain_data
from codex_py.api.program import __version__
from codex_py.api.redaction import Redactor, map_texts
from codex_py.extensions.export.markdown import markdown

FORMS = ("md", "json", "html")
_OTHER_SUFFIXES = {"": "md", "markdown": "md", "htm": "html"}

Writer: TypeAlias = Callable[[Conversation], Iterator[str]]


def writer_for(path: Path | None, form: str | None = None) -> Writer:
    """Choose the writer by `form`, one of `FORMS`, or else by the suffix of the file.

    Without a form and a suffix, the writer of Markdown is returned.

    Raises:
        UsageError: the suffix belongs to another kind of file.
    """
    if form is None:
        form = "md" if path is None else _form_of(path)
    if form not in FORMS:
        raise UsageError(f"name a file that ends with .{', .'.join(FORMS)}, not {path}")
    if form == "html":
        from codex_py.extensions.export.page import page  # 25 ms

        return page
    if form == "json":
        return json_document
    return markdown


def _form_of(path: Path) -> str:
    suffix = path.suffix.lower().removeprefix(".")
    return _OTHER_SUFFIXES.get(suffix, suffix)


def without_keys(
    document: Conversation, environment: Mapping[str, str], home: Path
) -> tuple[Conversation, list[str]]:
    """Return the document with `[redacted]` in place of keys, and a sentence that counts them.

    `home`: `$CODEX_HOME`.

    Raises:
        ConfigError: `auth.json` cannot be read.
    """
    redact = Redactor(environment, home)
    return map_texts(document, redact), redact.notes


def json_document(document: Conversation) -> Iterator[str]:
    """Yield the whole document as one JSON object."""
    data = {
        "format": "codex-py-conversation",
        "format_version": 1,
        "written_by": f"codex-py {__version__}",
        "thread_id": document.thread_id,
        "name": document.name,
        "cwd": document.cwd,
        "model": document.model,
        "model_provider": document.provider,
        "began": document.began or None,
        "usage": plain_data(document.usage),
        "items": [item_data(item) for item in document.items],
    }
    yield json.dumps(data, indent=2) + "\n"
