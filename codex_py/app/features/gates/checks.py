"""Judges the changes of a turn."""

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from codex_py.config.limits import GateSettings
from codex_py.protocol.patched_file import TreeChanges
from codex_py.streams.terminal import some_of


def judge_changes(
    settings: GateSettings, changes: TreeChanges, cwd: Path
) -> Iterator[tuple[str, str | None]]:
    """Pair each gate that looks at changes with the reason why it fails, or None if it passes.

    Args:
        cwd: absolute.
    """
    # An unseen folder that became ignored may hide something, but it is not work.
    unseen = [path for path in changes.unseen if not path.endswith("/")]
    if settings.require_change:
        yield (
            "require-change",
            None if changes.files or unseen else "nothing was changed",
        )
    if settings.forbid_path:
        paths = [
            path for file in changes.files for path in {file.path, file.destination}
        ]
        top = os.path.realpath(cwd)
        names = [os.path.relpath(path, top) for path in paths]
        names += [os.path.relpath(path, top) for path in changes.unseen]
        for pattern in settings.forbid_path:
            forbidden = list(changed_in(pattern, names, cwd))
            if forbidden:
                reason = f"{some_of(forbidden, 5)} must stay as it was"
            else:
                reason = None
            yield f"forbid-path: {pattern}", reason
    most = settings.max_diff_lines
    if most is not None:
        lines = None if unseen else changed_lines(changes.diff)
        if lines is None:
            yield "max-diff-lines", "the changed lines of a file cannot be counted"
        else:
            yield (
                "max-diff-lines",
                None if lines <= most else f"{lines} lines; at most {most}",
            )


def changed_in(
    pattern: str,
    names: Iterable[str],
    cwd: Path,
) -> Iterator[str]:
    """Return the names that a pattern matches, as in `.gitignore`.

    A pattern without a slash matches a name at any depth, and a folder matches with everything in
    it. `*` matches slashes too: a pattern that forbids should rather forbid too much.
    """
    wanted = os.path.normpath(pattern).removeprefix(f"{cwd}/").strip("/")
    # An empty pattern, as of a variable that was not set, forbids everything.
    wanted = "*" if wanted in {"", "."} else wanted
    is_deep = wanted.startswith("**/") or "/" not in pattern.rstrip("/")
    wanted = wanted.removeprefix("**/")
    patterns = [wanted, f"{wanted}/*"]
    if is_deep:
        patterns += [f"*/{each}" for each in patterns]
    for name in names:
        if any(fnmatchcase(name, each) for each in patterns):
            yield name


def changed_lines(diff: str) -> int | None:
    """Count the added and removed lines of a diff that we wrote.

    Returns None if the diff leaves a text out. A binary file counts as one line.
    """
    if re.search("^Not shown: ", diff, re.MULTILINE):
        return None
    # The lines of a hunk never begin with these characters.
    files = re.split("^diff --git ", diff, flags=re.MULTILINE)[1:]
    count = 0
    for file in files:
        count += len(re.findall("^[-+]", file, re.MULTILINE))
        if "\n@@ " in file:
            # The names of the old file and of the new one begin with these characters too.
            count -= 2
        if "\nBinary files " in file or "\nGIT binary patch\n" in file:
            count += 1
    return count
