"""A conversation as one HTML page without other files: no script, no font, no image.

Its text comes from models, tools and files, so all of it is escaped. A policy forbids the page to
load or run anything except its own style sheet, https://www.w3.org/TR/CSP3/.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from codex_py.api.conversations import (
    Conversation,
    Diff,
    DiffLine,
    Entry,
    Part,
    ShownFile,
    entries,
)
from codex_py.api.program import __version__
from codex_py.api.streams import on_one_line

_STYLE_SHEET: Final = Path(__file__).with_suffix(".css")
_TEMPLATE: Final = Path(__file__).with_suffix(".html")
"""The page around a conversation."""
_SCHEMES: Final = ("https://", "http://", "mailto:")
_FIRST_HEADING: Final = 4
"""The level of the largest heading of an answer; the levels above belong to the page."""
_SMALLEST_HEADING: Final = 6
_CLASSES: Final = {"+": "added", "-": "removed", "@": "gap", "\\": "gap"}
"""The CSS classes of a diff's lines, by their signs."""
_SHOWN_SIGNS: Final = {"@": "⋯", "\\": ""}
"""The signs of a diff that the page shows as another text."""
_COLUMN_HEADS: Final = (
    '<thead class="hidden"><tr><th>Old line</th><th>New line</th><th>Text</th></tr>'
    "</thead>"
)
_LISTED_CHARACTERS: Final = 80


def page(document: Conversation) -> Iterator[str]:
    """Yield the parts of the page, in order."""
    style = _STYLE_SHEET.read_text(encoding="utf-8")
    around = _TEMPLATE.read_text(encoding="utf-8")
    before, _, after = around.partition("{conversation}")
    found = list(entries(document.items))
    facts = ""
    for name, value in document.facts:
        facts += f"<dt>{name}</dt><dd>{escape(on_one_line(value))}</dd>"
    digest = hashlib.sha256(style.encode()).digest()
    yield before.format(
        digest=base64.b64encode(digest).decode(),
        title=escape(on_one_line(document.title) or "Conversation"),
        style=style,
        facts=facts,
        contents=_contents(found),
    )
    yield from _conversation(found)
    yield after.format(version=__version__)


def _contents(found: Sequence[Entry]) -> str:
    prompts = [entry.parts for entry in found if entry.kind == "user"]
    if len(prompts) < 2:
        return ""
    items = ""
    for number, parts in enumerate(prompts, 1):
        items += f'<li><a href="#prompt-{number}">{_first_words(parts)}</a></li>'
    listed = f"<summary>{len(prompts)} prompts</summary><ol>{items}</ol>"
    return f'<nav aria-label="Prompts"><details>{listed}</details></nav>\n'


def _first_words(prompt: Sequence[Part]) -> str:
    """Return the start of a prompt on one line, as HTML."""
    if not prompt:
        return ""
    line = " ".join(prompt[0].text.split())
    shown = escape(line[:_LISTED_CHARACTERS])
    if len(line) > _LISTED_CHARACTERS:
        return f"{shown}…"
    return shown


def _conversation(found: Sequence[Entry]) -> Iterator[str]:
    number = 0
    for entry in found:
        if entry.kind == "user":
            if number:
                yield "</section>\n"
            number += 1
            yield f'<section class="turn" aria-labelledby="prompt-{number}">\n<div class="user">'
            yield f'<h2 id="prompt-{number}">Prompt {number}</h2>{_parts(entry)}</div>\n'
        elif entry.kind == "agent":
            yield f'<div class="agent"><h3>Answer</h3>{_parts(entry)}</div>\n'
        elif entry.kind == "note":
            yield f'<p class="quiet">{escape(entry.title)}</p>\n'
        else:
            yield _step(entry)
    if number:
        yield "</section>\n"


def _step(entry: Entry) -> str:
    classes = f"step {entry.kind}"
    if entry.failed:
        classes += " failed"
    title = escape(entry.title)
    if entry.kind == "command":
        title = f'<code><span aria-hidden="true">$ </span>{title}</code>'
    if entry.note:
        title += f' <span class="note">{escape(entry.note)}</span>'
    title += "".join(
        _counts(part.files) for part in entry.parts if isinstance(part, Diff)
    )
    if not entry.parts:
        return f'<p class="{classes}">{title}</p>\n'
    attributes = f'class="{classes}"'
    if entry.failed or entry.kind in {"change", "plan"}:
        attributes += " open"
    inner = f"<summary>{title}</summary>{_parts(entry)}"
    return f"<details {attributes}>{inner}</details>\n"


def _parts(entry: Entry) -> str:
    return "".join(map(_part, entry.parts))


def _part(part: Part) -> str:
    if isinstance(part, Diff):
        is_one_of_several = len(part.files) > 1
        files = [_file(file, is_named=is_one_of_several) for file in part.files]
        return "".join(files)
    match part.form:
        case "markdown":
            return f'<div class="markdown body">{_MARKDOWN.render(part.text)}</div>'
        case "plain":
            return f'<div class="plain">{escape(part.text)}</div>'
        case "code":
            return f'<pre tabindex="0" role="group" aria-label="Output">{escape(part.text)}</pre>'


def _counts(files: Sequence[ShownFile]) -> str:
    count = Counter(line.sign for file in files for line in file.lines)
    return f' <span class="counts">+{count["+"]} -{count["-"]}</span>'


def _file(file: ShownFile, *, is_named: bool) -> str:
    name = escape(on_one_line(f"{file.verb} {file.path}"))
    head = f'<p class="path">{name}</p>' if is_named else ""
    if not file.lines:
        return head
    rows = "".join(map(_row, file.lines))
    body = f"{_COLUMN_HEADS}<tbody>{rows}</tbody>"
    return f'{head}<table class="diff" aria-label="{name}">{body}</table>'


def _row(line: DiffLine) -> str:
    # `line.number` is a number in the old file only for a removed line.
    old_number = line.old
    new_number = line.number
    if line.sign == "-":
        old_number = line.number
        new_number = None
    numbers = _number(old_number) + _number(new_number)
    sign = _SHOWN_SIGNS.get(line.sign, line.sign)
    if line.sign in _CLASSES:
        kind = f' class="{_CLASSES[line.sign]}"'
    else:
        kind = ""
    return f'<tr{kind}>{numbers}<td class="t">{sign} {escape(line.text)}</td></tr>'


def _number(number: int | None) -> str:
    if number is None:
        number_text = ""
    else:
        number_text = str(number)
    return f'<td class="n">{number_text}</td>'


class _Renderer(RendererHTML):
    """Renders an answer for the page.

    Its headings rank below those of the page, only web and mail addresses become links, and an
    image is replaced by its description.
    """

    def heading_open(
        self,
        tokens: Sequence[Token],
        index: int,
        *_: Any,
    ) -> str:
        return f"<{_heading(tokens[index])}>"

    def heading_close(
        self,
        tokens: Sequence[Token],
        index: int,
        *_: Any,
    ) -> str:
        return f"</{_heading(tokens[index])}>\n"

    def link_open(
        self,
        tokens: Sequence[Token],
        index: int,
        *_: Any,
    ) -> str:
        target = str(tokens[index].attrGet("href") or "")
        if target.lower().startswith(_SCHEMES):
            return f'<a href="{escape(target)}" rel="noopener noreferrer nofollow">'
        # The link usually leads to a file of the project, which is not part of this page.
        return f'<a title="{escape(target)}">'

    def image(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: Any,  # noqa: ARG002 - the base class has it
        env: Any,  # noqa: ARG002 - the base class has it
    ) -> str:
        return f"[image: {escape(tokens[idx].content)}]"

    def th_open(
        self,
        tokens: Sequence[Token],
        index: int,
        *_: Any,
    ) -> str:
        # The policy forbids the attribute `style`.
        token = tokens[index]
        style = str(token.attrGet("style"))
        if "right" in style:
            return f"<{token.tag} class=right>"
        return f"<{token.tag}>"

    td_open = th_open


def _heading(token: Token) -> str:
    level = int(token.tag.removeprefix("h"))
    level_on_page = level + _FIRST_HEADING - 1
    return f"h{min(level_on_page, _SMALLEST_HEADING)}"


_MARKDOWN: Final = MarkdownIt(
    "commonmark", {"html": False}, renderer_cls=_Renderer
).enable(["strikethrough", "table"])
