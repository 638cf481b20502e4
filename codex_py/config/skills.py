"""Finds skills: folders with a `SKILL.md` that explains how to do something. LIGHT.

The folders that are searched, and the message to the model, are those of Codex 0.169.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.config.front_matter import front_matter
from codex_py.config.layers import SYSTEM_FOLDER
from codex_py.config.paths import folders_between, user_home
from codex_py.filesystem.ordinary import read_whole

_FILE: Final = "SKILL.md"
_MAX_DEPTH: Final = 6
_MAX_FOLDERS: Final = 2_000
"""Below one root, so that a link to `/` does not search the whole disk."""
_MAX_BYTES: Final = 256 * 1024
_NAME: Final = re.compile(r"[\w:.-]{1,64}")
_MENTION: Final = re.compile(r"(?<![\w$])\$([\w:.-]+)")


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    """Letters, digits, `_`, `-`, `.` and `:`."""
    description: str
    path: Path
    """Of its `SKILL.md`, absolute."""
    text: str
    """The whole file."""


@dataclass(frozen=True, slots=True)
class Skills:
    found: tuple[Skill, ...] = ()
    """By name. Of several with one name, the one nearest to the working directory."""
    warnings: tuple[str, ...] = ()
    """One sentence for each file that cannot be used."""

    def mentioned(self, prompt: str) -> list[Skill]:
        """The skills that the prompt names as `$name`, in its order."""
        by_name = {skill.name: skill for skill in self.found}
        # A name may end where a sentence does.
        found = (match[1] for match in _MENTION.finditer(prompt))
        names = (name for text in found for name in (text, text.rstrip(":.-")))
        return list(dict.fromkeys(by_name[name] for name in names if name in by_name))


def skill_message(skill: Skill) -> str:
    """The user message with the text of a skill that a prompt mentions."""
    return f"<skill>\n<name>{skill.name}</name>\n<path>{skill.path}</path>\n{skill.text}\n</skill>"


def find_skills(config: Config, environment: Mapping[str, str]) -> Skills:
    """All skills that can be used here; those of a project only if it is trusted."""
    found: dict[str, Skill] = {}
    warnings: list[str] = []
    entries = config.values.get("skills", {}).get("config", [])
    off = [entry for entry in entries if entry.get("enabled") is False]
    disabled = {str(entry[key]) for entry in off for key in ("path", "name") if key in entry}
    for folder, root in _folders(config, environment):
        for path in _files(folder, root):
            try:
                skill = _read(path, root)
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                warnings.append(f"The skill {path} cannot be used: {reason}.")
                continue
            if not {skill.name, str(path)} & disabled:
                found.setdefault(skill.name, skill)
    return Skills(tuple(found[name] for name in sorted(found)), tuple(warnings))


def _folders(config: Config, environment: Mapping[str, str]) -> Iterator[tuple[Path, Path | None]]:
    """Folders with skills, each with the project's root if their files must stay inside it."""
    if config.trust == "trusted":
        root, *_ = folders = folders_between(config.project_root, config.cwd)
        for folder in reversed(folders):
            yield folder / ".codex" / "skills", root
            yield folder / ".agents" / "skills", root
    yield config.home / "skills", None
    yield user_home(environment) / ".agents" / "skills", None
    yield config.home / "skills" / ".system", None
    yield SYSTEM_FOLDER / "skills", None


def _files(top: Path, root: Path | None) -> list[Path]:
    """Every `SKILL.md` below the top, sorted. The folders of a skill are not searched."""
    files: list[Path] = []
    level, seen, count = [str(top)], set[str](), 0
    within = None if root is None else f"{os.path.realpath(root)}/"
    for _ in range(_MAX_DEPTH):
        below: list[str] = []
        for folder in level:
            real = os.path.realpath(folder)
            count += 1
            leads_out = within is not None and not real.startswith(within)
            if leads_out or real in seen or count > _MAX_FOLDERS:
                continue
            seen.add(real)
            try:
                with os.scandir(folder) as entries:
                    names = sorted(
                        entry.name for entry in entries if entry.is_dir() or entry.name == _FILE
                    )
            except OSError:
                continue
            if _FILE in names:
                files.append(Path(folder, _FILE))
            else:
                below += [f"{folder}/{name}" for name in names if not name.startswith(".")]
        level = below
    return sorted(files)


def _read(path: Path, root: Path | None) -> Skill:
    """Raises an `OSError` or a `ValueError` if it is not a valid skill."""
    text = read_whole(path, _MAX_BYTES, root=root).decode()
    fields, _ = front_matter(text)
    name = fields.get("name") or path.parent.name
    description = " ".join(fields.get("description", "").split())
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is no name for a skill")
    if not description:
        raise ValueError("it has no description")
    return Skill(name, description, path, text)
