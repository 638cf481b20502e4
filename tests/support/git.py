"""Git with an author, for the repositories of tests."""

import os
import subprocess
from pathlib import Path

_SETTINGS = {
    "user.name": "Ada",
    "user.email": "ada@example.com",
    "commit.gpgSign": "false",
    "core.quotePath": "false",
    "init.defaultBranch": "main",
    "protocol.file.allow": "always",
}
_OPTIONS = [
    word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")
]


def git(folder: Path, *words: str, given: str = "", **variables: str) -> str:
    """Run git in a folder. Returns its output without the newline at the end.

    Args:
        given: its standard input.
        variables: of its environment, besides those of the test.

    Raises:
        subprocess.CalledProcessError: git failed.
    """
    done = subprocess.run(
        ["git", *_OPTIONS, *words],
        cwd=folder,
        env={**os.environ, **variables},
        input=given,
        check=True,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
    )
    return done.stdout.removesuffix("\n")
