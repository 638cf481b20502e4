"""Files that a CI system obeys after a step.

Text that a command writes there would run without a sandbox. On some runners they lie in a folder
for temporary files, which commands may write to.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.sandbox.layout import is_inside

_FILES: Final[Mapping[str, str]] = {
    "GITHUB_ENV": "GitHub Actions, Gitea and Forgejo: the variables of later steps.",
    "GITHUB_PATH": "Folders that later steps look for programs in.",
    "GITHUB_OUTPUT": "The inputs of later steps.",
    "GITHUB_STATE": "The state that this action saves for its end.",
    "GITHUB_STEP_SUMMARY": "The summary of the step that people read.",
    "GITHUB_EVENT_PATH": "The event that started the job, with its author, for later steps.",
    "BUILDKITE_ENV_FILE": "Buildkite: the variables of the job.",
    "CIRRUS_ENV": "Cirrus CI: the variables of later steps.",
    "DRONE_OUTPUT": "Drone, Woodpecker and Harness: the inputs of later steps.",
    "BITBUCKET_PIPELINES_VARIABLES_PATH": "Bitbucket: the variables of later steps.",
}
"""Variables that name a file in a folder of the runner, with a description of the file."""
_SOURCED: Final[Mapping[str, str]] = {
    "BASH_ENV": "Every bash runs it, and CircleCI hands variables on through it.",
    "ENV": "Every other shell runs it, if it is interactive.",
}
"""Variables that name a file in any folder, such as the repository, with a description."""
_FOLDERS: Final[Mapping[str, tuple[str, ...]]] = {
    # GitHub Actions. Bash reads the script of the running step while it runs.
    "RUNNER_TEMP": (
        "_runner_file_commands",
        "_github_workflow",
        "*.sh",
        "*.ps1",
        "*.cmd",
        "*.py",
    ),
    # Programs that later steps find on their PATH.
    "RUNNER_TOOL_CACHE": (),
    "AGENT_TOOLSDIRECTORY": (),
    # The program of an action, whose end runs after the last step.
    "GITHUB_ACTION_PATH": (),
    # Azure Pipelines.
    "AGENT_TEMPDIRECTORY": ("*.sh", "*.ps1", "*.cmd", ".*"),
    # Jenkins.
    "WORKSPACE_TMP": ("durable-*",),
}
"""Variables that name a folder of the runner, with the runner's own entries. These are protected
even where commands may write to the folder."""
_BESIDE_TEMP: Final = ("_actions", "_tool", "_PipelineMapping")
"""Folders beside `RUNNER_TEMP`: the programs of all actions of the job, tools, and the mapping to
the work folders."""


def runner_files(
    environment: Mapping[str, str], roots: Sequence[Path]
) -> tuple[Path, ...]:
    """The files and folders of the runner that commands must not change.

    The paths are absolute, and some may not exist.

    Args:
        roots: the writable folders. A root that is a folder of the runner, or lies in one, stays
            writable, but the runner's own entries in it do not.
    """
    files = _absolute(environment, _FILES)
    folders = [path.parent for path in files]
    files += _absolute(environment, _SOURCED)
    for variable, patterns in _FOLDERS.items():
        for folder in _absolute(environment, [variable]):
            folders.append(folder)
            for pattern in patterns:
                if "*" not in pattern:
                    files += [folder / pattern]
                else:
                    files += folder.glob(pattern)
    for temporary in _absolute(environment, ["RUNNER_TEMP"]):
        work = Path(os.path.realpath(temporary)).parent
        folders += [work / name for name in _BESIDE_TEMP]
    kept = [folder for folder in folders if not _is_shared(folder, roots)]
    return tuple(dict.fromkeys([*files, *kept]))


def _absolute(environment: Mapping[str, str], variables: Iterable[str]) -> list[Path]:
    names = [environment.get(variable, "") for variable in variables]
    return [Path(name) for name in names if name.startswith("/")]


def _is_shared(folder: Path, roots: Sequence[Path]) -> bool:
    """True if a writable folder is this one, or lies in it."""
    real = Path(os.path.realpath(folder))
    return any(is_inside(root, [real]) for root in roots)
