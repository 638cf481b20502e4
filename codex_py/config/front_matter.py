"""Reads the fields at the head of a Markdown file, between lines of `---`. LIGHT.

Reads the subset of YAML that such heads use: names with plain, quoted or block text. It is more lenient than
YAML: plain text may contain a colon. The entries of a list are joined by commas; other nested values are
skipped.
"""

import json
import re
from collections.abc import Mapping

_FIELD = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*?))?[ \t]*")
_BLOCK = re.compile(r"[|>][+-]?\d?")
_COMMENT = re.compile(r"[ \t]+#.*")


class FrontMatterError(ValueError):
    """Its text says what is wrong, and `line` where, counted from 1."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def front_matter(text: str) -> tuple[Mapping[str, str], str]:
    """The fields and the text below them; no fields if the text does not begin with `---`.

    Raises:
        FrontMatterError: the fields have no end, a line is not a field, or a quote is not closed.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return {}, text
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise FrontMatterError("the front matter has no end", 1)
    head = [line.rstrip("\r\n") for line in lines[1:end]]
    margin = min((len(line) - len(line.lstrip(" ")) for line in head if line.strip()), default=0)
    head = [line[margin:] for line in head]
    fields: dict[str, str] = {}
    place = 0
    while place < len(head):
        line = head[place]
        place += 1
        if not line.strip() or line.startswith("#") or line == "...":
            continue
        field = _FIELD.fullmatch(line)
        # The first line is that of the `---`.
        number = place + 1
        if field is None:
            reason = f"the front matter has a line that is no field: {line[:80]!r}"
            raise FrontMatterError(reason, number)
        below: list[str] = []
        while place < len(head) and _continues(head[place]):
            below.append(head[place].strip())
            place += 1
        try:
            fields[field[1]] = _value(field[2] or "", below)
        except ValueError as error:
            raise FrontMatterError(f"the front matter has {error}", number) from error
    return fields, "".join(lines[end + 1 :])


def _continues(line: str) -> bool:
    """True if the line belongs to the field above it, as the items of a list do even without indentation."""
    return not line.strip() or line[0] in " \t" or line == "-" or line.startswith("- ")


def _value(value: str, below: list[str]) -> str:
    if _BLOCK.fullmatch(value):
        return ("\n" if value[0] == "|" else " ").join(below).strip()
    whole = " ".join((value, *below))
    if value[:1] == '"':
        try:
            text, _ = json.JSONDecoder(strict=False).raw_decode(whole)
        except ValueError as error:
            raise ValueError(f"a bad quoted text: {value[:80]!r}") from error
        return str(text)
    if value[:1] == "'":
        end = re.match(r"'((?:[^']|'')*)'", whole)
        if end is None:
            raise ValueError(f"a quote without an end: {value[:80]!r}")
        return end[1].replace("''", "'")
    plain = _COMMENT.sub("", value)
    if not plain:
        # A name without text has a list below it, or a table, which is not used.
        return ", ".join(line[2:].strip() for line in below if line.startswith("- "))
    return " ".join(filter(None, (plain, *below)))
