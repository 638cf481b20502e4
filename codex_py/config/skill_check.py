"""Checks a skill against the rules of https://agentskills.io/specification, which are stricter than what is accepted."""

import re
from collections.abc import Iterator, Mapping
from os.path import lexists
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from codex_py.config.definition_folders import Folder
from codex_py.config.markdown import without_code
from codex_py.config.skills import MAX_DESCRIPTION, read_skill, skill_fields
from codex_py.errors import ConfigError

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME: Final = 64
_MAX_COMPATIBILITY: Final = 500
_LINK: Final = re.compile(r"\]\(\s*(?:<([^>]*)>|([^)\s]*))")
_NO_FILE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|#|//|$")


def skill_problems(path: Path) -> list[str]:
    """One sentence for each problem of a `SKILL.md`, with the file and the line: `skills/a/SKILL.md:2: …`."""
    try:
        text = read_skill(path, Folder(path.parent, "user"))
        fields = skill_fields(text, path)
    except ConfigError as error:
        return [f"{error}."]
    lines = text.splitlines()
    problems = [
        (_line_of(field, lines), sentence)
        for field, sentence in _field_problems(fields, path.absolute().parent.name)
    ]
    problems += _link_problems(text, path.parent)
    return [f"{path}:{line}: {sentence}" for line, sentence in sorted(problems)]


def _field_problems(fields: Mapping[str, str], folder: str) -> Iterator[tuple[str, str]]:
    """Pairs of a field and a sentence."""
    name = fields.get("name", "")
    if not name:
        yield "name", "`name` is missing."
    elif len(name) > _MAX_NAME:
        yield "name", f"`name` has {len(name)} characters: at most {_MAX_NAME} are allowed."
    elif not _NAME.fullmatch(name):
        yield (
            "name",
            f"`name` is {name!r}: use lower-case letters, digits and single hyphens between them.",
        )
    elif name != folder:
        yield "name", f"`name` is {name!r}, but the folder is {folder!r}: they must be the same."
    for field, most in (("description", MAX_DESCRIPTION), ("compatibility", _MAX_COMPATIBILITY)):
        if (length := len(fields.get(field, ""))) > most:
            yield field, f"`{field}` has {length} characters: at most {most} are allowed."
    if not fields.get("description", "").strip():
        yield "description", "`description` is missing."


def _line_of(field: str, lines: list[str]) -> int:
    found = (n for n, line in enumerate(lines, 1) if line.lstrip().startswith(f"{field}:"))
    return next(found, 1)


def _link_problems(text: str, folder: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(without_code(text).splitlines(), 1):
        for link in _LINK.finditer(line):
            target = unquote((link[1] or link[2] or "").partition("#")[0])
            if not _NO_FILE.match(target) and not lexists(folder / target):
                yield number, f"the link to {target!r} leads to no file."
