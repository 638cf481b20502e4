"""Judges the changes of a turn."""

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from codex_py.api.patches import changed_lines
from codex_py.api.streams import some_of
from codex_py.api.turn_changes import TreeChanges
from codex_py.extensions.gates.settings import GateSettings


def judge_changes(
    settings: GateSettings, changes: TreeChanges, cwd: Path
) -> Iterator[tuple[str, str | None]]:
    """Pair each gate that looks at changes with the reason why it fails, or None if it passes.

    Args:
        cwd: the folder of the session, absolute.
    """
    # Folders that became ignored in this turn end with a slash. Only `forbid-path` looks at them:
    # they may hide something, but nobody would call them a change.
    unseen = [path for path in changes.unseen if not path.endswith("/")]
    if settings.require_change:
        is_changed = changes.files or unseen
        yield "require-change", None if is_changed else "nothing was changed"
    if settings.forbid_path:
        names = _changed_names(changes, cwd)
        for pattern in settings.forbid_path:
            forbidden = list(changed_in(pattern, names, cwd))
            reason = None
            if forbidden:
                reason = f"{some_of(forbidden, 5)} must stay as it was"
            yield f"forbid-path: {pattern}", reason
    limit = settings.max_diff_lines
    if limit is not None:
        lines = None if unseen else changed_lines(changes.diff)
        reason = None
        if lines is None:
            reason = "the changed lines of a file cannot be counted"
        elif lines > limit:
            reason = f"{lines} lines; at most {limit}"
        yield "max-diff-lines", reason


def _changed_names(changes: TreeChanges, cwd: Path) -> list[str]:
    """Return the paths of all changed and unseen files, relative to `cwd`."""
    paths: list[str | Path] = []
    for file in changes.files:
        paths += {file.path, file.destination}
    paths += changes.unseen
    top = os.path.realpath(cwd)
    return [os.path.relpath(path, top) for path in paths]


def changed_in(
    pattern: str,
    names: Iterable[str],
    cwd: Path,
) -> Iterator[str]:
    """Yield the names that a pattern matches, as in `.gitignore`.

    A pattern without a slash matches a name at any depth, and a folder matches with everything in
    it. `*` matches slashes too: a pattern that forbids should rather forbid too much.
    """
    relative = os.path.normpath(pattern).removeprefix(f"{cwd}/").strip("/")
    if relative in {"", "."}:
        # An empty pattern, as of a variable that was not set, forbids everything.
        relative = "*"
    # A slash at the beginning ties a pattern to the folder of the session.
    is_deep = relative.startswith("**/") or "/" not in pattern.rstrip("/")
    relative = relative.removeprefix("**/")
    globs = [relative, f"{relative}/*"]
    if is_deep:
        globs += [f"*/{each}" for each in globs]
    for name in names:
        if any(fnmatchcase(name, each) for each in globs):
            yield name
