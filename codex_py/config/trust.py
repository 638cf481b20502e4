"""Whether the user trusts a project: read from `[projects."<path>"]`, and written there."""

import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.config.check import dotted
from codex_py.config.files import parse_toml, read_text
from codex_py.config.lines import key_lines
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
        with _locked(home):
            path = Path(os.path.realpath(home / "config.toml"))
            text = read_text(path) or ""
            changed = _with_trust(text, path, root)
            if changed != text:
                _replace(path, changed)
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the path is not UTF-8"
        raise ConfigError(f"{home / 'config.toml'} can not be written: {reason}") from error


def _with_trust(text: str, path: Path, root: Path) -> str:
    before = parse_toml(text, path)
    entry = ("projects", str(root))
    old = before.get("projects", {}).get(str(root), {})
    if old == {"trust_level": "trusted"}:
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    setting = 'trust_level = "trusted"'
    lines = re.split(r"(?<=\n)", text)
    places = key_lines(text)
    if (number := places.get((*entry, "trust_level"))) is not None:
        lines[number - 1] = re.sub(
            r"trust_level(\s*=\s*)([\"'])\w*\2", r'trust_level\1"trusted"', lines[number - 1]
        )
    elif (number := places.get(entry)) is not None:
        lines[number - 1] = lines[number - 1].rstrip("\r\n") + newline + setting + newline
    else:
        if text and not text.endswith("\n"):
            lines.append(newline)
        if text:
            lines.append(newline)
        lines.append(f"[{dotted(entry)}]{newline}{setting}{newline}")
    changed = "".join(lines)

    # Not every spelling of TOML survives an edit by lines, so the result is held against the aim.
    projects = {**before.get("projects", {}), str(root): {**old, "trust_level": "trusted"}}
    with suppress(ConfigError):
        if parse_toml(changed, path) == {**before, "projects": projects}:
            return changed
    raise ConfigError(
        f"{path} can not be changed automatically; set `{dotted(entry)}.trust_level` in it by hand"
    )


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, text: str) -> None:
    """Write a file anew, atomically; the caller holds the lock, so the temporary name is its own."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            mode = path.stat().st_mode & 0o7777 if path.exists() else 0o600
            os.fchmod(file.fileno(), mode)
            # A byte order mark was taken off in reading and is not missed.
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


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
