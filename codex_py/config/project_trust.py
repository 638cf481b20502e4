"""Finds out if the user trusts a project, with `[projects."<path>"]` of `config.toml`.

The settings, rules and hooks of a trusted project are used only in the form that was trusted: they
name programs to run and decide which actions are allowed, and anyone who can change the repository
can change them. So `$CODEX_HOME/codex-py/trust.json` keeps a digest of each file. An entry in
`config.toml`, which Codex and people write too, has no digests: they are taken when we first see
the entry.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.config.check import problems
from codex_py.config.edit import set_in_config
from codex_py.config.files import (
    LOCK_TIMEOUT_S,
    as_config_error,
    read_text,
    replace_text,
)
from codex_py.errors import ConfigError
from codex_py.filesystem.git import main_work_tree
from codex_py.filesystem.private import locked, make_private
from codex_py.protocol.frozen import frozen

Trust: TypeAlias = Literal["trusted", "untrusted"]

_Digests: TypeAlias = dict[str, str]
"""The digest of each file, by its path relative to the root of the project."""


@frozen
class Trusted:
    """The user trusts the project, and its files are those that were trusted."""

    files: Mapping[Path, str]
    """The checked texts, by path. Folders nearest to the root come first."""


@frozen
class Changed:
    """The project is trusted, but its files have changed since. None of them is used."""

    files: tuple[Path, ...]
    """The files that are new, changed or removed."""


@frozen
class Untrusted:
    """The user does not trust the project, or has not decided yet."""

    files: tuple[Path, ...]
    """The files that are not used."""


ProjectTrust: TypeAlias = Trusted | Changed | Untrusted


def trust_level(
    projects: Mapping[str, Any],
    cwd: Path,
    root: Path | None,
) -> Trust | None:
    """The trust level of a folder in the `projects` table; None if it has no entry.

    An entry for `cwd` itself counts first, then one for the root of its project, and then, in a
    linked git worktree, one for the main work tree. Entries may name a folder by any path to it.
    """
    if not projects:
        return None
    levels: dict[str, Trust] = {}
    for name, entry in projects.items():
        level = entry.get("trust_level")
        if level:
            # An entry for this very path wins over one for a link to it.
            levels[str(Path(name))] = level
            levels.setdefault(_real(name), level)
    folders = [cwd]
    if root is not None:
        folders.append(root)
        main = main_work_tree(root)
        if main is not None:
            folders.append(main)
    for folder in folders:
        for name in (str(folder), _real(folder)):
            if name in levels:
                return levels[name]
    return None


def project_trust(
    level: Trust | None,
    home: Path,
    folders: Sequence[Path],
) -> ProjectTrust:
    """Decide if the files of a project are used. Records the digests of a newly trusted project.

    Args:
        level: from the user's configuration.
        home: `$CODEX_HOME`.
        folders: from the root of the project down to the working directory; absolute.

    Raises:
        ConfigError: a file of a trusted project, or the record, cannot be read.
    """
    paths = _paths(home, folders)
    root = folders[0]
    if level != "trusted":
        return Untrusted(paths)
    texts = _texts(paths, root)
    records = _recorded(home)
    # A branch checked out in a worktree of its own counts as a change of the project.
    recorded = records.get(str(root))
    if recorded is None:
        main = main_work_tree(root) or root
        recorded = records.get(str(main))
    if recorded is None:
        # If the home is not writable, every run counts as the first one.
        with suppress(ConfigError):
            _record(home, root, _digests(root, texts))
        return Trusted(texts)
    if not texts:
        return Trusted({})
    # Files in other folders of the project do not belong to this run.
    here = {
        name: digest
        for name, digest in recorded.items()
        if _folder(root, name) in folders
    }
    found = _digests(root, texts)
    changed = {name for name, _ in here.items() ^ found.items()}
    if changed:
        return Changed(tuple(root / name for name in sorted(changed)))
    return Trusted(texts)


def trust_project(home: Path, folders: Sequence[Path]) -> None:
    """Trust a project with the present files in these folders.

    Args:
        home: `$CODEX_HOME`.
        folders: see `project_trust`.

    Raises:
        ConfigError: a file cannot be read, or the trust cannot be recorded.
    """
    root = folders[0]
    texts = _texts(_paths(home, folders), root)
    set_in_config(home, ("projects", str(root), "trust_level"), "trusted")
    elsewhere = {
        name: digest
        for name, digest in _recorded(home).get(str(root), {}).items()
        if _folder(root, name) not in folders
    }
    _record(home, root, elsewhere | _digests(root, texts))


def _paths(home: Path, folders: Sequence[Path]) -> tuple[Path, ...]:
    """The existing files in these folders that need trust."""
    # In the user's home folder, `.codex` is the user's own.
    real_home = os.path.realpath(home)
    found: list[Path] = []
    for folder in folders:
        own = folder / ".codex"
        if os.path.lexists(own) and os.path.realpath(own) != real_home:
            named = [own / "config.toml", own / "hooks.json"]
            found += [path for path in named if os.path.lexists(path)]
            found += sorted(own.glob("rules/*.rules"))
    return tuple(found)


def _texts(paths: Sequence[Path], root: Path) -> dict[Path, str]:
    texts: dict[Path, str] = {}
    for path in paths:
        text = read_text(path, root=root)
        # A file may have been removed just now.
        if text is not None:
            texts[path] = text
    return texts


def _digests(root: Path, texts: Mapping[Path, str]) -> _Digests:
    return {
        path.relative_to(root).as_posix(): sha256(text.encode()).hexdigest()
        for path, text in texts.items()
    }


def _folder(root: Path, name: str) -> Path:
    """The folder of the project whose `.codex` holds the file."""
    path = root / name
    return next(parent.parent for parent in path.parents if parent.name == ".codex")


def _recorded(home: Path) -> dict[str, _Digests]:
    """Read the digests of all projects, by the root of the project.

    Raises:
        ConfigError: the file is damaged, or cannot be read.
    """
    path = _record_file(home)
    with suppress(ValueError):
        projects = json.loads(read_text(path) or "{}")
        if not problems(projects, Mapping[str, Mapping[str, str]]):
            return projects
    raise ConfigError(
        f"{path} is damaged; without it, each project is trusted as it is then"
    )


def _record(
    home: Path,
    root: Path,
    digests: _Digests,
) -> None:
    """Write the digests of a project, in place of earlier ones."""
    path = _record_file(home)
    with as_config_error(path, "written"):
        make_private(path.parent)
        with locked(path.parent, LOCK_TIMEOUT_S):
            projects = _recorded(home) | {str(root): digests}
            replace_text(path, json.dumps(projects, indent=1, sort_keys=True) + "\n")


def _record_file(home: Path) -> Path:
    return home / "codex-py" / "trust.json"


def _real(path: str | Path) -> str:
    """The path without links; the path itself if it cannot be resolved."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return str(path)
