from pathlib import Path


def make_repository(folder: Path) -> None:
    """As much of a git repository as marks the root of a project; git itself is not run."""
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
