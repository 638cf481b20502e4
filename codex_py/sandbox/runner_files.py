"""Files that a CI system obeys once a step has ended: what a command wrote there would run without a sandbox.

On some runners they lie in a folder for temporary files, which commands may write to.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.sandbox.layout import is_inside

_FILES: Final = (
    # GitHub Actions, and the runners of Gitea and Forgejo: variables, PATH, outputs and state of later steps.
    *("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
    # CircleCI hands variables on through it, and every bash that starts runs it.
    "BASH_ENV",
    "BUILDKITE_ENV_FILE",
    "CIRRUS_ENV",
    # Drone and Woodpecker, and Harness.
    "DRONE_OUTPUT",
)
"""Variables that name such a file."""
_COMMAND_FILES: Final = "_runner_file_commands"
"""The folder of these files in `RUNNER_TEMP`, for a process that was not given the variables."""


def runner_files(environment: Mapping[str, str], roots: Sequence[Path]) -> tuple[Path, ...]:
    """The files and folders of the runner that commands must not change; absolute, and not all of them exist.

    Args:
        roots: the writable folders. One that is a folder of the runner, or lies in it, stays writable; what the runner
            has in it does not.
    """
    files = [Path(name) for name in _absolute(environment.get(each) for each in _FILES)]
    folders = [path.parent for path in files]
    for temporary in map(Path, _absolute([environment.get("RUNNER_TEMP")])):
        folders += [temporary, temporary / _COMMAND_FILES]
        # Bash reads the script of the running step while it runs.
        files += temporary.glob("*.sh")
    kept = [folder for folder in folders if not _is_shared(folder, roots)]
    return tuple(dict.fromkeys([*files, *kept]))


def _absolute(names: Iterable[str | None]) -> list[str]:
    return [name for name in names if name and name.startswith("/")]


def _is_shared(folder: Path, roots: Sequence[Path]) -> bool:
    """True if a writable folder is this one, or lies in it."""
    real = Path(os.path.realpath(folder))
    return any(is_inside(root, [real]) for root in roots)
