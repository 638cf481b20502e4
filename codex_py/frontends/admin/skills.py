"""`codex-py skills list` and `check`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codex_py.config.definition_folders import Folder
from codex_py.config.skill_check import skill_problems
from codex_py.config.skills import Skills, find_skills, skill_files
from codex_py.frontends.admin.command import command_config, command_parser
from codex_py.frontends.command_parser import UsageError
from codex_py.frontends.streams import print_json, print_out, tell
from codex_py.frontends.terminal import on_one_line


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the skills that are found in the working directory; the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    skills = find_skills(command_config(options, environment, warns=False), environment)
    for warning in skills.warnings:
        tell(f"Warning: {warning}")
    rows = _rows(skills)
    if options.json:
        return print_json(rows, indent=2, ensure_ascii=False)
    if not rows:
        return print_out("There are no skills here. Each is a folder with a SKILL.md.\n")
    return print_out("".join(map(_text, rows)))


def run_check(argv: Sequence[str], environment: Mapping[str, str]) -> int:  # noqa: ARG001 - every command gets it
    """Print the problems of the skills in some folders or files; exit code 1 if there are any."""
    parser = command_parser()
    parser.add_argument("folders", nargs="*")
    folders = [Path(folder) for folder in parser.parse_args(list(argv)).folders]
    if not folders:
        raise UsageError("say which folder: codex-py skills check PATH")
    problems: list[str] = []
    for folder in folders:
        files = [path for path, _ in skill_files([Folder(folder, "user")], [])]
        if folder.name == "SKILL.md" and folder.is_file():
            files = [folder]  # as a pre-commit hook names it
        problems += [problem for path in files for problem in skill_problems(path)]
        if not files:
            problems.append(f"{folder}: there is no SKILL.md in it.")
    print_out("".join(f"{on_one_line(problem)}\n" for problem in problems))
    return 1 if problems else 0


def _rows(skills: Skills) -> list[dict[str, Any]]:
    winners = {same[0].path for same in skills.by_name().values()}
    return [
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


def _text(row: dict[str, Any]) -> str:
    notes = [row["origin"]]
    if not row["listed"]:
        notes.append("used only if a prompt names it")
    if not row["wins"]:
        notes.append(f"${row['name']} means another one")
    head = f"{row['name']}  ({', '.join(notes)})"
    return "".join(
        f"{indent}{on_one_line(text)}\n"
        for indent, text in (("", head), ("  ", row["description"]), ("  ", row["path"]))
    )
