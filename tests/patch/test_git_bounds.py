"""git gets no key, waits for no named pipe, and quotes no file that a repository names."""

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from codex_py.errors import CodexError
from codex_py.patch.git import Git, repository_git
from codex_py.programs import programs_outside
from tests.support.git import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q")
    (tree / "a.txt").write_text("a\n", encoding="utf-8")
    git(tree, "add", ".")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    git(tree, *identity, "commit", "-qm", "First")
    return tree


def git_for(tree: Path, **variables: str) -> Git:
    home = tree.parent / "home"
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
    return repository_git(programs_outside(home, environment, tree), environment, tree)


def test_git_gets_no_key(repository: Path) -> None:
    keys = {
        "OPENAI_API_KEY": "sk-1",
        "MY_KEY": "sk-2",
        "AWS_SECRET_ACCESS_KEY": "sk-3",
        "GITHUB_TOKEN": "sk-4",
        "SSH_ASKPASS": "sk-5",
        "GIT_CONFIG_VALUE_0": "sk-6",
        "http_proxy": "http://u:sk-7@proxy",
    }
    variables = git_for(repository, **keys).variables
    assert not [name for name, value in variables.items() if "sk-" in value]
    assert {"PATH", "HOME"} <= variables.keys()


@pytest.mark.parametrize(
    "name",
    [
        ".gitignore",
        ".gitattributes",
        ".git/index",
        ".git/HEAD",
        ".git/config",
        ".git/info/exclude",
    ],
)
def test_a_named_pipe_that_git_would_wait_for_is_refused_at_once(
    repository: Path, name: str
) -> None:
    path = repository / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    start = time.monotonic()
    with pytest.raises(CodexError, match="neither a file nor a folder") as caught:
        git_for(repository)
    assert str(path) in str(caught.value)
    assert time.monotonic() - start < 5


def test_a_pipe_in_an_inner_folder_is_named_when_git_has_waited(
    repository: Path,
) -> None:
    inner = repository / "inner"
    inner.mkdir()
    os.mkfifo(inner / ".gitignore")
    (inner / "b.txt").touch()
    own = git_for(repository)
    with pytest.raises(CodexError, match="neither a file nor a folder") as caught:
        own.run(repository, "check-ignore", "inner/b.txt", timeout_s=0.5)
    assert str(inner / ".gitignore") in str(caught.value)
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = entry.read_bytes().split(b"\0")
            assert not (b"check-ignore" in words and b"inner/b.txt" in words)


@pytest.mark.parametrize(
    "text",
    [
        "TOPSECRETLINE\nmore",
        "topsecretline = 1",
        "[topsecretline",
        "machine a login topsecretline",
        "[core]\n\tbare = topsecretline",
        "[core]\n\tbigFileThreshold = topsecretline",
    ],
)
def test_no_error_quotes_a_file_that_the_configuration_includes(
    repository: Path, tmp_path: Path, text: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(text, encoding="utf-8")
    with (repository / ".git/config").open("a", encoding="utf-8") as config:
        config.write(f"[include]\n\tpath = {secret}\n")
    said: list[str] = []
    for words in (["status"], ["log"], ["diff"], ["ls-files"]):
        try:
            git_for(repository).without_filters(repository).output(repository, *words)
        except CodexError as error:
            said.append(str(error).lower())
    assert all("topsecret" not in text for text in said)
    assert all("configuration" in text for text in said)
