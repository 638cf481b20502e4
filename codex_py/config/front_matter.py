"""Reads the fields at the head of a Markdown file, between lines of `---`. LIGHT.

Reads the subset of YAML that such heads use: names with plain, quoted or block text. It is more lenient than
YAML: plain text may contain a colon. Nested values are skipped.
"""

import json
import re
from collections.abc import Mapping

_FIELD = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*?))?[ \t]*")
_BLOCK = re.compile(r"[|>][+-]?\d?")
_COMMENT = re.compile(r"[ \t]+#.*")


def front_matter(text: str) -> tuple[Mapping[str, str], str]:
    """The fields and the text below them; no fields if the text does not begin with `---`.

    Raises:
        ValueError: the fields have no end, or a line is not a field.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return {}, text
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise ValueError("the front matter has no end")
    head = [line.rstrip("\r\n") for line in lines[1:end]]
    fields: dict[str, str] = {}
    place = 0
    while place < len(head):
        line = head[place]
        place += 1
        if not line.strip() or line.startswith("#"):
            continue
        field = _FIELD.fullmatch(line)
        if field is None:
            raise ValueError(f"the front matter has a line that is no field: {line[:80]!r}")
        below: list[str] = []
        while place < len(head) and (not head[place].strip() or head[place][0] in " \t"):
            below.append(head[place].strip())
            place += 1
        fields[field[1]] = _value(field[2] or "", below)
    return fields, "".join(lines[end + 1 :])


def _value(value: str, below: list[str]) -> str:
    if _BLOCK.fullmatch(value):
        return ("\n" if value[0] == "|" else " ").join(below).strip()
    whole = " ".join((value, *below))
    if value[:1] == '"':
        try:
            text, _ = json.JSONDecoder(strict=False).raw_decode(whole)
        except ValueError as error:
            raise ValueError(f"the front matter has a bad quoted text: {value[:80]!r}") from error
        return str(text)
    if value[:1] == "'":
        end = re.match(r"'((?:[^']|'')*)'", whole)
        if end is None:
            raise ValueError(f"the front matter has a quote without an end: {value[:80]!r}")
        return end[1].replace("''", "'")
    plain = _COMMENT.sub("", value)
    # A name without text has a table or a list below it, which is not used.
    return " ".join(filter(None, (plain, *below))) if plain else ""
