"""Trees of files, and git to compare with."""

import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "HOME": "/nonexistent",
}


def git(
    cwd: Path, *arguments: str, stdin: bytes = b"", codes: tuple[int, ...] = (0,)
) -> bytes:
    """What git prints; it finds no repository above `cwd`."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env=_ENVIRONMENT | {"GIT_CEILING_DIRECTORIES": str(cwd.parent)},
        check=False,
    )
    assert done.returncode in codes, done.stderr.decode(errors="replace")
    return done.stdout


def write(root: Path, files: Mapping[str, bytes]) -> None:
    root.mkdir(exist_ok=True)
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def tree(root: Path) -> dict[str, bytes]:
    """Contents by relative path; an executable file has a `*` behind its name."""
    return {
        f"{path.relative_to(root)}{'*' * os.access(path, os.X_OK)}": path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.relative_to(root).parts[0].startswith(".git")
    }


@dataclass(frozen=True)
class Node:
    data: bytes
    """Of a link, where it leads."""
    is_link: bool = False
    is_executable: bool = False


Tree: TypeAlias = dict[str, Node]
DIRECTORY = None


def write_nodes(root: Path, tree: Mapping[str, Node]) -> None:
    root.mkdir(exist_ok=True)
    for name, node in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if node.is_link:
            path.symlink_to(os.fsdecode(node.data))
        else:
            path.write_bytes(node.data)
            path.chmod(0o755 if node.is_executable else 0o644)


def entries(root: Path) -> dict[str, Node | None]:
    """All entries by relative path; directories are None."""
    there: dict[str, Node | None] = {}
    for path in sorted(root.rglob("*")):
        name, mode = str(path.relative_to(root)), path.lstat().st_mode
        if name.partition("/")[0] == ".git":
            continue
        if stat.S_ISLNK(mode):
            there[name] = Node(os.fsencode(path.readlink()), is_link=True)
        elif stat.S_ISDIR(mode):
            there[name] = DIRECTORY
        else:
            there[name] = Node(path.read_bytes(), is_executable=bool(mode & 0o111))
    return there


def commit_tree(root: Path) -> str:
    """Put the files of a repository, made where there is none, in its index; the name of that tree."""
    if not (root / ".git").exists():
        git(root, "init", "-q")
    git(root, "add", "-A", "-f")
    return git(root, "write-tree").decode().strip()


def git_diff(root: Path, old: str, new: str) -> bytes:
    """The diff between two trees, with renames and copies."""
    return git(root, "diff", "--text", "--full-index", "-M", "-C", old, new)
