"""Connects the patch commands with sessions and with git.

Part of the composition root, for frontends that have no session.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from codex_py.config.config import load_config
from codex_py.config.paths import codex_home, project_root
from codex_py.errors import CodexError
from codex_py.filesystem.denials import denials_of
from codex_py.filesystem.own_folder import own_folder
from codex_py.patch.bundle import Bundle, bundle_key, read_bundle
from codex_py.patch.diff.work_tree import work_tree_changes, work_tree_diff
from codex_py.patch.diff.writer import exact_diff
from codex_py.patch.envelope.shell import find_patch
from codex_py.patch.git import Git, find_git, for_tree, repository_git
from codex_py.patch.unified.content import ThreeWay
from codex_py.programs import Programs, programs_outside
from codex_py.protocol.file_rules import NO_RULES, FileRules
from codex_py.protocol.json_fields import json_object, text_field
from codex_py.protocol.messages import decode_json
from codex_py.rollout.index import latest_session
from codex_py.rollout.reader import read_session

_OPENING = "*** Begin Patch"


@dataclass(frozen=True, slots=True)
class SessionPatch:
    """A patch that a model wrote."""

    text: str
    cwd: Path
    """The absolute folder in which relative paths of the patch start."""
    thread_id: str


def opened_bundle(
    data: bytes | str,
    environment: Mapping[str, str],
) -> Bundle:
    """Read a bundle; see `read_bundle`."""
    return read_bundle(data, bundle_key(environment))


def last_patch(home: Path, cwd: Path) -> SessionPatch:
    """Return the last patch in the newest session of a directory.

    It may not have been applied, for instance if the sandbox refused it.

    Args:
        home: `$CODEX_HOME`.
        cwd: the absolute path of the directory.

    Raises:
        SessionError: the session cannot be read.
        CodexError: there is no session, or no patch in it.
    """
    path = latest_session(home, cwd=cwd)
    if path is None:
        raise CodexError(
            f"no session was held in {cwd}; name a file with a patch", code="no_patch"
        )
    session = read_session(path)
    base = Path(session.meta.cwd or cwd)
    for encoded in reversed(session.items):
        if _OPENING.encode() not in encoded:
            # Decoding every item of a long session would take a while.
            continue
        found = _patch_of(cast("dict[str, Any]", decode_json(encoded)))
        if found is not None:
            text, workdir = found
            folder = Path(os.path.normpath(base / workdir))
            return SessionPatch(text, folder, session.thread_id)
    raise CodexError(f"the session {session.thread_id} made no patch", code="no_patch")


def _patch_of(item: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the patch that a call of any tool applies, and the folder of that call.

    Returns None for any other item.
    """
    match item:
        case {"type": "custom_tool_call", "input": str(text)}:
            fields: dict[str, Any] = {"input": text}
        case {"type": "function_call", "arguments": str(arguments)}:
            fields = json_object(arguments)
        case {"type": "local_shell_call", "action": {**action}}:
            fields = {**action, "workdir": action.get("working_directory")}
        case _:
            return None
    # Either the whole text is a patch, or it is within a command.
    text = fields.get("input", fields.get("patch"))
    if isinstance(text, str):
        if _OPENING not in text:
            return None
        return text, ""
    command = fields.get("cmd", fields.get("command"))
    found = find_patch(_words_of(command))
    if found is None:
        return None
    workdir = text_field(fields, "workdir")
    return found.patch, str(Path(workdir) / (found.workdir or ""))


def _words_of(command: object) -> list[str]:
    """The words of a command, which is a text for bash or a list of words."""
    if isinstance(command, str):
        return ["bash", "-lc", command]
    if isinstance(command, list):
        return [str(word) for word in cast("list[Any]", command)]
    return []


def git_three_way(
    cwd: Path,
    environment: Mapping[str, str],
) -> ThreeWay:
    """Make a three-way merge with blobs from the repository around `cwd`.

    Raises a `CodexError` if git is not installed, or the repository belongs to something else.
    """
    programs = programs_outside(codex_home(environment), environment, cwd)
    git = find_git(programs, environment)
    top = project_root(cwd, (".git",))
    of_repository = None if top is None else for_tree(git, top)

    def read_blob(name: str) -> bytes | None:
        if of_repository is None:
            return None
        done = of_repository.run(cwd, "cat-file", "blob", name)
        if done.returncode == 0:
            return done.stdout
        return None

    def merge(
        ours: bytes,
        base: bytes,
        theirs: bytes,
    ) -> tuple[bytes, bool]:
        # The folder is outside of the repository, so that the repository's configuration has no
        # effect.
        with own_folder(git.home, "merge") as folder:
            files = {"ours": ours, "base": base, "patch": theirs}
            labels: list[str] = []
            for name, data in files.items():
                (folder / name).write_bytes(data)
                labels += ("-L", name)
            names = list(files)
            done = git.run(folder, "merge-file", "-p", *labels, *names)
        # The exit code is the number of conflicts, at most 127.
        if not 0 <= done.returncode <= 127:
            reason = done.stderr.decode(errors="replace").strip()
            raise CodexError(f"git could not merge: {reason}", code="git")
        return done.stdout, done.returncode > 0

    return ThreeWay(read_blob, merge)


def changes_since_commit(
    cwd: Path,
    programs: Programs,
    environment: Mapping[str, str],
    rules: FileRules = NO_RULES,
) -> str:
    """Return the diff between the last commit and the work tree around `cwd`, for people.

    Raises the errors of `repository_of`.
    """
    git, top = repository_of(cwd, programs, environment)
    return work_tree_diff(git, top, denials_of(rules).refuses)


def uncommitted_changes(
    cwd: Path, environment: Mapping[str, str]
) -> tuple[str, list[str]]:
    """Return the changes of the work tree around a folder since its last commit, as an exact diff.

    `codex-py apply` and `git apply` take it.

    Returns:
        The diff, and the names of the changed files that it lacks: they are too large, denied,
        unreadable, or not UTF-8.

    Raises:
        ConfigError: the configuration of the folder has a mistake.
        CodexError: there is no repository or no git, or too many files have changed.
    """
    programs = programs_outside(codex_home(environment), environment, cwd)
    git, root = repository_of(cwd, programs, environment)
    rules = load_config(cwd=cwd, environment=environment).files
    changes, left_out = work_tree_changes(git, root, denials_of(rules).refuses)
    diff = ""
    for change in changes:
        try:
            diff += exact_diff([change], root).decode()
        except UnicodeDecodeError:
            left_out.append(str(change.path.relative_to(root)))
    return diff, left_out


def repository_of(
    cwd: Path, programs: Programs, environment: Mapping[str, str]
) -> tuple[Git, Path]:
    """Return the git for the work tree around `cwd`, and the top of that tree.

    Raises:
        CodexError: there is no repository, or git is not installed.
    """
    root = project_root(cwd, (".git",))
    if root is None:
        raise CodexError(f"{cwd} is not in a git repository", code="git")
    return repository_git(programs, environment, root), root
