"""The forms in which a conversation can be written."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from codex_py.app.loading import load
from codex_py.frontends.command_parser import UsageError
from codex_py.frontends.export.document import Document, Shortener

FORMS = {
    "md": "codex_py.frontends.export.markdown:markdown",
    "json": "codex_py.frontends.export.data:json_document",
    "html": "codex_py.frontends.export.page:page",
}
"""The writer of each form."""

Writer: TypeAlias = Callable[[Document, Shortener], Iterator[str]]


def writer_for(path: Path | None, form: str | None = None) -> Writer:
    """The writer of a form; of that which the suffix of the file names, or else of Markdown.

    Raises:
        UsageError: the suffix is that of another kind of file.
    """
    suffix = path.suffix.lower().removeprefix(".") if path is not None else ""
    form = form or {"": "md", "markdown": "md", "htm": "html"}.get(suffix, suffix)
    if form not in FORMS:
        raise UsageError(f"say in which form: --format {', '.join(FORMS)}")
    # The page needs a reader of Markdown, which takes 40 ms.
    return load(FORMS[form])
