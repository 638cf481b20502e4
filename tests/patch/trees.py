"""Trees of files, and git to compare with."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "HOME": "/nonexistent",
}


def git(cwd: Path, *arguments: str, stdin: bytes = b"", codes: tuple[int, ...] = (0,)) -> bytes:
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


def commit_tree(root: Path) -> str:
    """Put the files of a repository, made where there is none, in its index; the name of that tree."""
    if not (root / ".git").exists():
        git(root, "init", "-q")
    git(root, "add", "-A", "-f")
    return git(root, "write-tree").decode().strip()


def git_diff(root: Path, old: str, new: str) -> bytes:
    """The diff between two trees, with renames and copies."""
    return git(root, "diff", "--text", "--full-index", "-M", "-C", old, new)
