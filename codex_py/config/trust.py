"""Whether the user trusts a project: read from `[projects."<path>"]`, and written there."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from codex_py.config.check import dotted
from codex_py.config.files import locked, parse_toml, read_text, replace_text
from codex_py.errors import ConfigError

Trust: TypeAlias = Literal["trusted", "untrusted"]

_MAX_GIT_FILE = 4096
"""Bytes; a `.git` file holds one path."""


def trust_level(projects: Mapping[str, Any], cwd: Path, root: Path | None) -> Trust | None:
    """What the `projects` table says of a folder; None if it says nothing.

    An entry for `cwd` itself comes first, then one for the root of its project, then, in a linked git
    worktree, one for the main work tree. Entries may name a folder by any path that leads to it.
    """
    if not projects:
        return None
    levels: dict[str, Trust] = {}
    for name, entry in projects.items():
        if level := entry.get("trust_level"):
            levels[str(Path(name))] = level
            levels.setdefault(_real(name), level)
    folders = [cwd]
    if root is not None:
        folders.append(root)
        if (main := _main_work_tree(root)) is not None:
            folders.append(main)
    for folder in folders:
        for name in (str(folder), _real(folder)):
            if name in levels:
                return levels[name]
    return None


def write_trust(home: Path, root: Path) -> None:
    """Mark a project as trusted in the user's `config.toml` and leave all else in it as it is.

    The file is replaced as a whole or not at all, keeps its mode, and stays a link if it is one;
    programs that do this at the same time take turns.

    Raises:
        ConfigError: the file does not parse, can not be written, or spells the entry in a way that
            can not be changed safely; it is then unchanged.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        with locked(home):
            path = Path(os.path.realpath(home / "config.toml"))
            text = read_text(path) or ""
            changed = _with_trust(text, path, root)
            if changed != text:
                # A byte order mark was taken off in reading and is not missed.
                replace_text(path, changed)
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the path is not UTF-8"
        raise ConfigError(f"{home / 'config.toml'} can not be written: {reason}") from error


def _with_trust(text: str, path: Path, root: Path) -> str:
    before = parse_toml(text, path)
    aim: dict[str, Any] | None = None
    match before.get("projects", {}):
        case {**projects} if isinstance(old := projects.get(str(root), {}), dict):
            trusted = {**cast("dict[str, Any]", old), "trust_level": "trusted"}
            aim = {**before, "projects": {**projects, str(root): trusted}}
        case _:
            pass
    if aim == before:
        return text
    # A table at the end is what a person would add, and what fits nearly every file.
    for with_trust in (_appended, _edited) if aim else ():
        # Not every spelling of TOML survives a change, so the result is held against the aim.
        with suppress(ConfigError):
            changed = with_trust(text, root)
            if parse_toml(changed, path) == aim:
                return changed
    entry = dotted(("projects", str(root)))
    raise ConfigError(
        f"{path} can not be changed automatically; set `{entry}.trust_level` in it by hand"
    )


def _appended(text: str, root: Path) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = ("" if text.endswith("\n") else newline) + newline if text else ""
    return (
        f'{text}{gap}[{dotted(("projects", str(root)))}]{newline}trust_level = "trusted"{newline}'
    )


def _edited(text: str, root: Path) -> str:
    # 75 ms, for the rare file that has an entry already, or one that no table can be added to.
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document: Any = tomlkit.parse(text)
        entry = document["projects"].setdefault(str(root), {})
        entry["trust_level"] = "trusted"
        changed = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigError(str(error)) from error
    if text.count("\r\n") == text.count("\n"):
        changed = changed.replace("\r\n", "\n").replace("\n", "\r\n")
    return changed


def _main_work_tree(root: Path) -> Path | None:
    """The work tree whose repository a linked worktree shares; None if `root` is no such worktree.

    A checkout can claim to be anybody's worktree, so the repository must name it in return.
    """
    pointer = root / ".git"
    try:
        if not pointer.is_file():
            return None
        git_dir = root / _first_line(pointer).removeprefix("gitdir:").strip()
        if git_dir.parent.name != "worktrees" or git_dir.parent.parent.name != ".git":
            return None
        if _real(_first_line(git_dir / "gitdir").strip()) != _real(pointer):
            return None
    except (OSError, ValueError):
        return None
    return git_dir.parent.parent.parent


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        return file.readline(_MAX_GIT_FILE)


def _real(path: str | Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return str(path)
