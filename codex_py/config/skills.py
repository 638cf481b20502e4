"""Finds skills: folders with a `SKILL.md` that explains how to do something. LIGHT.

The format is that of https://agentskills.io, read as leniently as Codex 0.171 does.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.config.definition_folders import Folder, skill_folders
from codex_py.config.definitions import definitions, front_matter, read_definition
from codex_py.errors import ConfigError
from codex_py.filesystem.denials import denials_of
from codex_py.filesystem.reading import Refusal, read_start
from codex_py.protocol.frozen import frozen

MAX_DESCRIPTION: Final = 1_024
"""The number of characters of a description that the model is shown."""
_MAX_NAME: Final = 64
_MAX_BYTES: Final = 256 * 1024
_NOT_IMPLICIT: Final = re.compile(
    rb"\ballow_implicit_invocation[\"']?[ \t]*:[ \t]*[Ff](?i:alse)\b"
)


@frozen
class Skill:
    name: str
    """One line of printable text."""
    description: str
    """One line."""
    path: Path
    """The absolute path of its `SKILL.md`."""
    folder: Folder
    """The folder that the skill was found in."""
    is_listed: bool = True
    """False: the skill is not listed for the model, but a prompt can name it."""
    is_enabled: bool = True
    """False: the configuration disables the skill."""


@frozen
class Skills:
    found: tuple[Skill, ...] = ()
    """Skills; of several with one name, the first wins."""
    warnings: tuple[str, ...] = ()
    """One sentence for each unusable file, and for each folder that was not searched completely."""
    faults: tuple[tuple[Path, str], ...] = ()
    """The unusable files, with what is wrong with each."""

    def by_name(self) -> dict[str, list[Skill]]:
        """The skills by name; for each name, the one that wins comes first."""
        named: dict[str, list[Skill]] = {}
        for skill in self.found:
            named.setdefault(skill.name, []).append(skill)
        return named


def find_skills(
    config: Config,
    environment: Mapping[str, str],
    *,
    with_disabled: bool = False,
) -> Skills:
    """Find all usable skills, without copies of skills and links to them.

    Args:
        with_disabled: find the skills too that the configuration disables.
    """
    found: dict[tuple[str, str], Skill] = {}
    warnings: list[str] = []
    faults: list[tuple[Path, str]] = []
    disabled = _disabled(config)
    refuses = denials_of(config.files).refuses
    for path, folder in skill_files(skill_folders(config, environment), warnings):
        if refuses(path):
            continue
        try:
            text = read_skill(path, folder, refuses)
            skill = _skill(skill_fields(text, path), path, folder)
        except ConfigError as error:
            warnings.append(f"A skill cannot be used: {error}.")
            faults.append((path, str(error)))
            continue
        is_disabled = skill.name in disabled
        if disabled and os.path.realpath(path) in disabled:
            is_disabled = True
        if is_disabled and not with_disabled:
            continue
        if is_disabled:
            skill = replace(skill, is_enabled=False)
        # A copy has the same name and the same text.
        found.setdefault((skill.name, text), skill)
    return Skills(tuple(found.values()), tuple(warnings), tuple(faults))


def _disabled(config: Config) -> set[str]:
    """The names, and the paths without links, of the skills that the configuration disables."""
    found: set[str] = set()
    for entry in config.settings.skills.config or ():
        if entry.get("enabled") is not False:
            continue
        if "name" in entry:
            found.add(str(entry["name"]))
        path = str(entry.get("path", ""))
        # `realpath` raises for a NUL.
        if path and path.isprintable():
            found.add(os.path.realpath(path))
    return found


def skill_files(
    folders: Iterable[Folder], warnings: list[str]
) -> Iterator[tuple[Path, Folder]]:
    """Find every `SKILL.md`; see `definitions`."""
    return definitions(
        folders,
        r"SKILL\.md",
        "skills",
        warnings,
        max_depth=6,
    )


def read_skill(
    path: Path,
    folder: Folder,
    refuses: Refusal | None = None,
) -> str:
    """Read the whole file; raises the errors of `read_text`."""
    return read_definition(path, folder, _MAX_BYTES, refuses)


def skill_fields(text: str, path: Path) -> Mapping[str, str]:
    """The fields at the head of a `SKILL.md`.

    Raises a `ConfigError` if they are missing or cannot be read.
    """
    if not text.startswith("---"):
        raise ConfigError(f"{path}:1: it does not begin with a line `---`")
    return front_matter(text, path)[0]


def _skill(
    fields: Mapping[str, str],
    path: Path,
    folder: Folder,
) -> Skill:
    own_name = " ".join(fields.get("name", "").split())
    name = folder.prefix + (own_name or path.parent.name)
    description = " ".join(fields.get("description", "").split())
    if len(name) > _MAX_NAME or not name.isprintable():
        raise ConfigError(
            f"{path}:1: {name[: _MAX_NAME + 16]!r} is no name for a skill"
        )
    if not description:
        raise ConfigError(f"{path}:1: it has no description")
    # The path is shown to the model, too.
    if not str(path.relative_to(folder.path)).isprintable():
        reason = "the name of a folder has characters that are not printable"
        raise ConfigError(f"{path}:1: {reason}")
    if fields.get("disable-model-invocation", "").lower() == "true":
        is_listed = False
    else:
        policy = path.parent / "agents/openai.yaml"
        is_listed = not _is_explicit_only(policy, folder.root)
    return Skill(
        name,
        description[:MAX_DESCRIPTION],
        path,
        folder,
        is_listed,
    )


def _is_explicit_only(policy: Path, root: Path | None) -> bool:
    """True if the file that Codex reads beside a skill hides the skill from the model."""
    try:
        text, _ = read_start(policy, _MAX_BYTES, root=root)
    except OSError:
        return False
    # A parser takes 20 ms to load, which a single key of YAML is not worth.
    return _NOT_IMPLICIT.search(text) is not None
