"""Lists the names of files that programs act on unasked, to point them out in a patch.

A patch cannot change `.git` and the folders of agents at all.
"""

import re
from typing import Final

_KEYS: Final = "it runs on the server, with its keys"
_OPENED: Final = "editors run what it says when they open the folder"
_PLACES: Final = (
    (r"\.mcp\.json", "agents start the servers that it names"),
    (r"\.envrc", "direnv runs it in this folder"),
    (r"\.vscode/[^/]+\.json", _OPENED),
    (r"[^/]+\.code-workspace", _OPENED),
    (r"\.(?:idea|zed|cursor|fleet)/.+", "editors use it when they open the folder"),
    (
        r"\.devcontainer/.+|\.devcontainer\.json",
        _OPENED,
    ),
    (r"\.gitmodules", "git fetches the repositories that it names as submodules"),
    (r"\.gitattributes", "git converts files as it says"),
    (
        r"\.(?:github|gitea|forgejo)/(?:workflows|actions)/.+",
        _KEYS,
    ),
    (r"\.gitlab-ci\.yml|\.gitlab/.+\.yml", _KEYS),
    (r"\.(?:circleci|buildkite)/.+", _KEYS),
    (
        r"\.travis\.yml|\.drone\.yml|\.woodpecker\.ya?ml",
        _KEYS,
    ),
    (
        r"azure-pipelines\.ya?ml|bitbucket-pipelines\.yml",
        _KEYS,
    ),
    (r"(?:.*\.)?Jenkinsfile", _KEYS),
    (r"\.(?:husky|githooks|hooks)/.+", "git may run it as a hook"),
    (
        r"\.pre-commit-(?:config|hooks)\.yaml|\.?lefthook\.ya?ml",
        "git may run what it says as a hook",
    ),
    (
        r"\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.cjs|bunfig\.toml",
        "package managers follow it",
    ),
    (
        r"\.(?:mise|rtx)\.toml|mise\.toml|\.tool-versions",
        "mise follows it in this folder",
    ),
)
_EXPRESSIONS: Final = [
    (re.compile(rf"(?:.*/)?(?:{names})", re.IGNORECASE), why) for names, why in _PLACES
]
"""Expressions for the whole relative path of a file, with the clause about it."""


def used_unasked(name: str) -> str:
    """Say in a clause which program acts on a file of this name; empty if none does.

    Args:
        name: path relative to the folder of the patch. The file may be at any depth. Case does not
            matter, because some file systems ignore it.
    """
    for names, why in _EXPRESSIONS:
        if names.fullmatch(name):
            return why
    return ""
