"""`codex-py skills list` and `check`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from os.path import lexists
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from codex_py.app.markdown import without_code
from codex_py.command_line.subcommand import command_config, command_parser
from codex_py.config.definition_folders import Folder
from codex_py.config.skills import (
    MAX_DESCRIPTION,
    find_skills,
    read_skill,
    skill_fields,
    skill_files,
)
from codex_py.errors import ConfigError, UsageError
from codex_py.streams.standard import print_json, print_out, tell
from codex_py.streams.terminal import on_one_line

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MOST: Final = {"name": 64, "description": MAX_DESCRIPTION, "compatibility": 500}
"""Maximum lengths in characters."""
_LINK: Final = re.compile(r"\]\(\s*(?:<([^>]*)>|([^)\s]*))")
"""Matches the address of a link in Markdown."""
_NO_FILE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|#|//|$")
"""Matches the beginning of an address that is not that of a file beside the skill."""


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the skills that are found in the working directory. Returns the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    config = command_config(options, environment, warns=False)
    skills = find_skills(config, environment)
    for warning in skills.warnings:
        tell(f"Warning: {warning}")
    # A prompt that names a skill means the first one of this name.
    winners = {same[0].path for same in skills.by_name().values()}
    rows: list[dict[str, Any]] = [
        {
            "name": skill.name,
            "description": skill.description,
            "path": str(skill.path),
            "origin": skill.folder.origin,
            "listed": skill.is_listed,
            "wins": skill.path in winners,
        }
        for skill in sorted(skills.found, key=lambda skill: skill.name)
    ]
    if options.json:
        return print_json(rows, indent=2, ensure_ascii=False)
    if not rows:
        return print_out(
            "There are no skills here. Each is a folder with a SKILL.md.\n"
        )
    return print_out("".join(map(_text, rows)))


def run_check(argv: Sequence[str], environment: Mapping[str, str]) -> int:  # noqa: ARG001 - every command gets it
    """Print the problems of the skills in some folders or files. Returns 1 if there are any."""
    parser = command_parser()
    parser.add_argument("folders", nargs="*")
    folders = [Path(folder) for folder in parser.parse_args(list(argv)).folders]
    if not folders:
        raise UsageError("say which folder: codex-py skills check PATH")
    problems: list[str] = []
    for folder in folders:
        found = skill_files([Folder(folder, "user")], problems)
        files = [path for path, _ in found]
        if folder.name == "SKILL.md" and folder.is_file():
            files = [folder]  # pre-commit hooks name the file
        for path in files:
            problems += skill_problems(path)
        if not files and folder.is_dir():
            problems.append(f"{folder}: there is no SKILL.md in it.")
        elif not files:
            problems.append(f"{folder}: there is no such folder.")
    print_out("".join(f"{on_one_line(problem)}\n" for problem in problems))
    if problems:
        return 1
    return 0


def _text(row: dict[str, Any]) -> str:
    """Describe a skill in three lines: name and notes, description, path."""
    notes = [row["origin"]]
    if not row["listed"]:
        notes.append("used only if a prompt names it")
    if not row["wins"]:
        notes.append(f"${row['name']} means another one")
    head = on_one_line(f"{row['name']}  ({', '.join(notes)})")
    description = on_one_line(row["description"])
    path = on_one_line(row["path"])
    return f"{head}\n  {description}\n  {path}\n"


def skill_problems(path: Path) -> list[str]:
    """Describe each problem of a `SKILL.md` in a sentence, such as `skills/a/SKILL.md:2: …`.

    The rules come from https://agentskills.io/specification. They are stricter than this program,
    which accepts other skills too.
    """
    try:
        text = read_skill(path, Folder(path.parent, "user"))
        fields = skill_fields(text, path)
    except ConfigError as error:
        return [f"{error}."]
    problems = list(_link_problems(text, path.parent))
    for field, sentence in _field_problems(fields, path.absolute().parent.name):
        found = re.search(rf"^[ \t]*{field}:", text, re.MULTILINE)
        line = 1
        if found:
            line += text.count("\n", 0, found.start())
        problems.append((line, sentence))
    return [f"{path}:{line}: {sentence}" for line, sentence in sorted(problems)]


def _field_problems(
    fields: Mapping[str, str], folder: str
) -> Iterator[tuple[str, str]]:
    """Yield the problems of the fields, each as a field and a sentence.

    Args:
        folder: the name of the folder of the skill.
    """
    for field, most in _MOST.items():
        length = len(fields.get(field, "").strip())
        if length > most:
            sentence = f"`{field}` has {length} characters: at most {most} are allowed."
            yield field, sentence
        if not length and field != "compatibility":
            yield field, f"`{field}` is missing."
    name = fields.get("name", "")
    if not name or len(name) > _MOST["name"]:
        # That is one of the problems above.
        return
    if not _NAME.fullmatch(name):
        allowed = "lower-case letters, digits and single hyphens between them"
        yield "name", f"`name` is {name!r}: use {allowed}."
    elif name != folder:
        sentence = (
            f"`name` is {name!r}, but the folder is {folder!r}: they must be the same."
        )
        yield "name", sentence


def _link_problems(text: str, folder: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of the line and a sentence for each link to a file that does not exist."""
    for number, line in enumerate(without_code(text).splitlines(), 1):
        for link in _LINK.finditer(line):
            address = link[1] or link[2] or ""
            target = unquote(address.partition("#")[0])
            if not _NO_FILE.match(target) and not lexists(folder / target):
                yield number, f"the link to {target!r} leads to no file."
