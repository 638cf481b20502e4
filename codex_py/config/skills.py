"""Finds skills: folders with a `SKILL.md` that explains how to do something. LIGHT.

The format is that of https://agentskills.io, read as leniently as Codex 0.169 does.
"""

import codecs
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.config.front_matter import FrontMatterError, front_matter
from codex_py.config.skill_folders import SkillFolder, skill_folders
from codex_py.filesystem.ordinary import read_start
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
    disabled = {str(entry["name"]) for entry in off if "name" in entry}
    paths = (str(entry["path"]) for entry in off if "path" in entry)
    disabled |= {os.path.realpath(path) for path in paths if path.isprintable()}
    seen: set[str] = set()
    for folder in skill_folders(config, environment):
        for path in folder.plugin.skills if folder.plugin else skill_files(folder, seen, warnings):
            try:
                head, size = _read(path, folder, _MAX_HEAD_BYTES)
                skill = _skill(skill_fields(head, is_whole=len(head) == size), path, folder)
            except FrontMatterError as error:
                warnings.append(f"The skill {path}:{error.line} cannot be used: {error}.")
                continue
            if not (disabled and {skill.name, os.path.realpath(path)} & disabled):
                found.setdefault((skill.name, head, size), skill)
    return Skills(tuple(found.values()), tuple(warnings))


def read_skill(path: Path, folder: SkillFolder) -> bytes:
    """The whole file.

    Raises:
        FrontMatterError: it cannot be read.
    """
    return _read(path, folder, _MAX_BYTES)[0]


def _read(path: Path, folder: SkillFolder, max_bytes: int) -> tuple[bytes, int]:
    """The first bytes of the file, and its size."""
    if folder.plugin is not None:
        text = folder.plugin.skills[path].encode()
        return text[:max_bytes], len(text)
    try:
        head, size = read_start(path, max_bytes, root=folder.root)
    except OSError as error:
        raise FrontMatterError(error.strerror or str(error), 1) from error
    if size > _MAX_BYTES:
        raise FrontMatterError(f"it is larger than {_MAX_BYTES >> 10} KiB", 1)
    return head, size


def skill_fields(data: bytes, *, is_whole: bool = True) -> Mapping[str, str]:
    """The fields at the head of a `SKILL.md`.

    Raises:
        FrontMatterError: they cannot be read, or there are none.
    """
    try:
        # If the rest is missing, the last character may be cut.
        text, _ = codecs.utf_8_decode(data, "strict", is_whole)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FrontMatterError("it is not UTF-8", line) from error
    if not text.removeprefix("\ufeff").startswith("---"):
        raise FrontMatterError("it does not begin with a line `---`", 1)
    return front_matter(text)[0]


def skill_files(folder: SkillFolder, seen: set[str], warnings: list[str]) -> list[Path]:
    """Every `SKILL.md` below a folder, sorted. `seen`: the folders that were searched, without links."""
    files: list[Path] = []
    within = "/" if folder.root is None else f"{os.path.realpath(folder.root)}/"
    reals: dict[str, str] = {}
    for path, folders, names in os.walk(folder.path, followlinks=True):
        above, _, name = path.rpartition("/")
        # To resolve each path from the root takes half of the time.
        is_plain = above in reals and not Path(path).is_symlink()
        reals[path] = real = f"{reals[above]}/{name}" if is_plain else os.path.realpath(path)
        is_deep = path.count("/") - str(folder.path).count("/") == _MAX_DEPTH
        if real in seen or not real.startswith(within):
            if real not in seen:
                reason = f"it is a link that leads out of {folder.root}"
                warnings.append(f"{path} is not searched for skills: {reason}.")
            folders.clear()
            continue
        if len(reals) > _MAX_FOLDERS:
            warnings.append(
                f"Only the first {_MAX_FOLDERS} folders below {folder.path} were searched for skills."
            )
            break
        seen.add(real)
        if SKILL_FILE in (*names, *folders):
            files.append(Path(path, SKILL_FILE))
        is_of_others = {name for name in folders if name.startswith(".") or name == "node_modules"}
        folders[:] = [] if is_deep else sorted({*folders} - is_of_others)
    return sorted(files)


def _skill(fields: Mapping[str, str], path: Path, folder: SkillFolder) -> Skill:
    """Raises a `FrontMatterError`."""
    name = " ".join(fields.get("name", "").split()) or path.parent.name
    description = " ".join(fields.get("description", "").split())
    if folder.plugin is not None:
        name = f"{folder.plugin.name}:{name}"
    if len(name) > _MAX_NAME or not name.isprintable():
        raise FrontMatterError(f"{name[: _MAX_NAME + 16]!r} is no name for a skill", 1)
    if not description:
        raise FrontMatterError("it has no description", 1)
    is_listed = fields.get("disable-model-invocation", "").lower() != "true"
    is_listed = is_listed and not _is_explicit_only(path.parent / "agents/openai.yaml", folder.root)
    return Skill(name, description[:MAX_DESCRIPTION], path, folder, is_listed)


def _is_explicit_only(policy: Path, root: Path | None) -> bool:
    """True if the file that Codex reads beside a skill keeps it from the model."""
    try:
        # One key of YAML does not need a parser that takes 20 ms to load.
        return _NOT_IMPLICIT.search(read_start(policy, _MAX_BYTES, root=root)[0]) is not None
    except OSError:
        return False
