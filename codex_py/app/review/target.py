"""Reads the argument of `/review`: the change to review. LIGHT."""

import re

from codex_py.errors import UsageError
from codex_py.protocol.frozen import frozen

_USAGE = "write /review --uncommitted, --base BRANCH, --commit SHA, or what is to be reviewed"


@frozen
class ReviewTarget:
    """The change that the user wants to have reviewed.

    One of `uncommitted`, `base`, `commit` and `words` is set.
    """

    uncommitted: bool = False
    """Review changes that are not committed: staged, unstaged and untracked."""
    base: str | None = None
    """Review everything since this branch or commit, including changes that are not committed."""
    commit: str | None = None
    """Review what this commit changed."""
    title: str | None = None
    """The title of `commit`, for the request."""
    words: str | None = None
    """Review what these words of the user's describe."""

    @property
    def name(self) -> str:
        """The target in words: `commit 1a2b3c: Fix the lock`."""
        if self.commit is not None:
            title = f": {self.title}" if self.title else ""
            return f"commit {self.commit}{title}"
        if self.base is not None:
            return f"changes since {self.base}"
        return self.words or "current changes"


def review_target(argument: str) -> ReviewTarget:
    """Return the target that the argument of `/review` names.

    Raises a `UsageError` for an unknown option, or one without its value.
    """
    match re.split(r"[\s=]+", argument, maxsplit=1):
        case ["--uncommitted"]:
            return ReviewTarget(uncommitted=True)
        case ["--base", name]:
            return ReviewTarget(base=name)
        case ["--commit", name]:
            return ReviewTarget(commit=name)
        case [word, *_] if word.startswith("--"):
            raise UsageError(_USAGE)
        case _:
            return ReviewTarget(words=argument)
