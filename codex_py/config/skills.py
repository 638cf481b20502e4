"""Finds skills: folders with a `SKILL.md` that explains how to do something. LIGHT.

The format is that of https://agentskills.io, read as leniently as Codex 0.169 does.
"""

import codecs
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.config.front_matter import FrontMatterError, front_matter
from codex_py.config.skill_folders import SkillFolder, skill_folders
from codex_py.filesystem.ordinary import read_start, read_whole
from codex_py.protocol.frozen import frozen

SKILL_FILE: Final = "SKILL.md"
MAX_DESCRIPTION: Final = 1_024
"""Characters; the rest is not told to the model."""
_MAX_NAME: Final = 64
_MAX_DEPTH: Final = 6
_MAX_FOLDERS: Final = 2_000
"""Below one root, so that a link to `/` does not search the whole disk."""
_MAX_BYTES: Final = 256 * 1024
_MAX_HEAD_BYTES: Final = 8 * 1024
"""The fields must end within the first bytes of a `SKILL.md`: reading all of 200 files would take twice as long."""
_NOT_IMPLICIT: Final = re.compile(rb"\ballow_implicit_invocation[\"']?[ \t]*:[ \t]*[Ff](?i:alse)\b")


@frozen
class Skill:
    name: str
    """One line of printable text."""
    description: str
    """One line."""
    path: Path
    """Of its `SKILL.md`, absolute."""
    folder: SkillFolder
    """Where it was found."""
    is_listed: bool = True
    """False: the model is not told of it, but a prompt can name it."""


@frozen
class Skills:
    found: tuple[Skill, ...] = ()
    """Of several with one name, the first wins."""
    warnings: tuple[str, ...] = ()
    """One sentence for each file that cannot be used, and for each folder that was not searched to its end."""

    def by_name(self) -> dict[str, list[Skill]]:
        """All skills of each name, the one that wins first."""
        named: dict[str, list[Skill]] = {}
        for skill in self.found:
            named.setdefault(skill.name, []).append(skill)
        return named


def find_skills(config: Config, environment: Mapping[str, str]) -> Skills:
    """All skills that can be used here. A copy of a skill, or a link to it, is left out."""
    found: dict[tuple[str, bytes, int], Skill] = {}
    warnings: list[str] = []
    entries = config.values.get("skills", {}).get("config", [])
    off = [entry for entry in entries if entry.get("enabled") is False]
    disabled = {str(entry[key]) for entry in off for key in ("path", "name") if key in entry}
    seen: set[str] = set()
    for folder in skill_folders(config, environment):
        for path in folder.plugin.skills if folder.plugin else _files(folder, seen, warnings):
            try:
                head, size = _start(path, folder)
                skill = _parsed(head, size, path, folder)
            except (OSError, ValueError) as error:
                warnings.append(f"The skill {_reason(path, error)}.")
                continue
            if not {skill.name, str(path)} & disabled:
                found.setdefault((skill.name, head, size), skill)
    return Skills(tuple(found.values()), tuple(warnings))


def skill_text(skill: Skill) -> str:
    """The whole file. Raises an `OSError` or a `ValueError` if it cannot be read."""
    if (plugin := skill.folder.plugin) is not None:
        return plugin.skills[skill.path]
    return read_skill(skill.path, skill.folder.root).decode()


def _start(path: Path, folder: SkillFolder) -> tuple[bytes, int]:
    if folder.plugin is None:
        return read_start(path, _MAX_HEAD_BYTES, root=folder.root)
    text = folder.plugin.skills[path].encode()
    return text[:_MAX_HEAD_BYTES], len(text)


def read_skill(path: Path, root: Path | None) -> bytes:
    """The whole file. Arguments and errors are those of `read_whole`."""
    return read_whole(path, _MAX_BYTES, root=root)


def skill_fields(text: str) -> Mapping[str, str]:
    """The fields at the head of a `SKILL.md`.

    Raises:
        FrontMatterError: they cannot be read, or there are none.
    """
    if not text.removeprefix("\ufeff").startswith("---"):
        raise FrontMatterError("it does not begin with a line `---`", 1)
    return front_matter(text)[0]


def skill_files(top: Path) -> list[Path]:
    """Every `SKILL.md` in a folder and below it."""
    return _files(SkillFolder(top, "user"), set(), [])


def _files(folder: SkillFolder, seen: set[str], warnings: list[str]) -> list[Path]:
    """Every `SKILL.md` below the folder, sorted. `seen`: the folders that were searched, without links."""
    within = None if folder.root is None else f"{os.path.realpath(folder.root)}/"
    files: list[str] = []
    level = [(str(folder.path), os.path.realpath(folder.path))]
    count = 0
    for _ in range(_MAX_DEPTH + 1):
        below: list[tuple[str, str]] = []
        for path, real in level:
            if real in seen:
                continue
            if within is not None and not real.startswith(within):
                reason = f"it is a link that leads out of {folder.root}"
                warnings.append(f"{path} is not searched for skills: {reason}.")
                continue
            if (count := count + 1) > _MAX_FOLDERS:
                warnings.append(
                    f"Only the first {_MAX_FOLDERS} folders below {folder.path} were searched for skills."
                )
                return sorted(map(Path, files))
            seen.add(real)
            names = list(_entries(path))
            files += [f"{path}/{name}" for name, _ in names if name == SKILL_FILE]
            below += [
                (inner, os.path.realpath(inner) if is_link else f"{real}/{name}")
                for name, is_link in names
                if name != SKILL_FILE
                for inner in [f"{path}/{name}"]
            ]
        level = below
    return sorted(map(Path, files))


def _entries(folder: str) -> Iterator[tuple[str, bool]]:
    """The names of the `SKILL.md` and of the folders to search, sorted; each with whether it is a link."""
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                is_hidden = entry.name.startswith(".") or entry.name == "node_modules"
                if entry.name == SKILL_FILE or (not is_hidden and entry.is_dir()):
                    yield entry.name, entry.is_symlink()
    except OSError:
        # A folder that cannot be listed has no skills.
        return


def _parsed(head: bytes, size: int, path: Path, folder: SkillFolder) -> Skill:
    """Raises an `OSError` or a `ValueError` if it is not a valid skill."""
    if size > _MAX_BYTES:
        raise ValueError(f"it is larger than {_MAX_BYTES >> 10} KiB")
    # The last character may be cut.
    text, _ = codecs.utf_8_decode(head, "strict", len(head) == size)
    fields = skill_fields(text)
    name = " ".join(fields.get("name", "").split()) or path.parent.name
    description = " ".join(fields.get("description", "").split())
    if len(name) > _MAX_NAME or not name.isprintable():
        raise FrontMatterError(f"{name[: _MAX_NAME + 16]!r} is no name for a skill", 1)
    if not description:
        raise FrontMatterError("it has no description", 1)
    is_listed = fields.get("disable-model-invocation", "").lower() != "true"
    is_listed = is_listed and not _is_explicit_only(
        f"{path.parent}/agents/openai.yaml", folder.root
    )
    if folder.plugin is not None:
        name = f"{folder.plugin.name}:{name}"
    return Skill(name, description[:MAX_DESCRIPTION], path, folder, is_listed)


def _is_explicit_only(policy: str, root: Path | None) -> bool:
    """True if the file that Codex reads beside a skill keeps it from the model."""
    try:
        # One key of YAML does not need a parser that takes 20 ms to load.
        return _NOT_IMPLICIT.search(read_whole(policy, _MAX_BYTES, root=root)) is not None
    except OSError:
        return False


def _reason(path: Path, error: OSError | ValueError) -> str:
    match error:
        case FrontMatterError():
            return f"{path}:{error.line} cannot be used: {error}"
        case UnicodeDecodeError():
            return f"{path} cannot be used: it is not UTF-8"
        case OSError():
            return f"{path} cannot be used: {error.strerror}"
        case _:
            return f"{path} cannot be used: {error}"
