"""What the user wants to have reviewed. LIGHT."""

from codex_py.protocol.frozen import frozen


@frozen
class ReviewTarget:
    """What the user wants to have reviewed. One of them is set."""

    uncommitted: bool = False
    """What is not committed: staged, unstaged and untracked."""
    base: str | None = None
    """All since this branch or commit, what is not committed included."""
    commit: str | None = None
    title: str | None = None
    """Of the commit, for the request."""
    words: str | None = None
    """Anything, in the user's words."""

    @property
    def name(self) -> str:
        if self.commit is not None:
            title = f": {self.title}" if self.title else ""
            return f"commit {self.commit}{title}"
        if self.base is not None:
            return f"changes since {self.base}"
        return self.words or "current changes"
