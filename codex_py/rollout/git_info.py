"""Reads the commit, branch and remote of a working directory from git's files.

Starting `git` three times would cost more than everything else before the first request.
"""

import re
from pathlib import Path

from codex_py.filesystem.git import find_dot_git
from codex_py.filesystem.reading import read_start
from codex_py.filesystem.repository import own_repository

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")

_MAX_BYTES = 64 * 1024
"""Limit on a file that is read at every start: a repository may contain a file of any size."""
_MAX_PACKED_BYTES = 16 * 1024 * 1024
"""Limit on the file with all references."""


def git_info(cwd: Path) -> dict[str, str]:
    """Read `commit_hash`, `branch` and `repository_url`, as far as they are known.

    Outside of a repository, none is. The branch is missing if HEAD is detached. A user name and a
    password in the URL of the remote are left out.
    """
    try:
        dot_git = find_dot_git(cwd)
        if dot_git is None:
            return {}
        return _read(dot_git.parent)
    except (OSError, ValueError):
        return {}


def _read(top: Path) -> dict[str, str]:
    repository = own_repository(top)
    git_dir = repository.folder
    common_dir = repository.common
    info: dict[str, str] = {}
    head = _text("HEAD", git_dir).strip()
    if not head.startswith("ref:"):
        # HEAD is detached.
        commit = head
    else:
        reference = head.removeprefix("ref:").strip()
        commit = _text(reference, common_dir).strip()
        if not commit:
            commit = _packed_commit(common_dir, reference)
        # In the reftable format, HEAD names this invalid branch.
        if reference != "refs/heads/.invalid":
            info["branch"] = reference.removeprefix("refs/heads/")
    if _COMMIT.fullmatch(commit):
        info["commit_hash"] = commit
    url = _origin(_text("config", common_dir))
    if url:
        info["repository_url"] = without_user(url)
    return info


def without_user(url: str) -> str:
    """The URL of a remote without a user name and a password."""
    return _USER_INFO.sub("", url)


def _packed_commit(common_dir: Path, reference: str) -> str:
    """Return the commit of a reference in `packed-refs`, whose lines are `COMMIT REFERENCE`."""
    packed = _bytes("packed-refs", common_dir, _MAX_PACKED_BYTES)
    before, found, _ = packed.partition(f" {reference}\n".encode())
    if not found:
        return ""
    _, _, commit = before.rpartition(b"\n")
    return commit.decode("utf-8", "replace")


def _origin(config: str) -> str:
    """Return the URL of the remote `origin` in a configuration of git; empty without one."""
    in_origin = False
    for line in config.splitlines():
        section = _SECTION.match(line)
        if section:
            in_origin = section.groups() == ("remote", "origin")
        key, equals, value = line.partition("=")
        if in_origin and equals and key.strip().lower() == "url":
            return value.strip().strip('"')
    return ""


def _text(name: str, folder: Path) -> str:
    return _bytes(name, folder, _MAX_BYTES).decode("utf-8", "replace")


def _bytes(
    name: str,
    folder: Path,
    max_bytes: int,
) -> bytes:
    """Return up to `max_bytes` of a regular file in a folder, cut after a whole line.

    The result is empty if the file cannot be read.
    """
    if name.startswith("/") or ".." in name.split("/"):
        return b""
    try:
        # A link may lead to the files of another repository.
        data, size = read_start(folder / name, max_bytes, root=folder)
    except (OSError, ValueError):
        return b""
    if size <= max_bytes:
        return data
    return data[: data.rfind(b"\n") + 1]
