"""A repository that came with its own `.git` leads nobody out of its folder, and people's own ones go on working."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.file_index import FileIndex
from codex_py.app.patching import changes_since_commit
from codex_py.errors import CodexError
from codex_py.programs import programs_outside
from codex_py.testing import ev_completed, ev_message
from tests.support.git import git
from tests.support.hooks import DONE, command
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

REVIEWED = json.dumps(
    {
        "findings": [],
        "overall_correctness": "patch is correct",
        "overall_explanation": "Looked.",
        "overall_confidence_score": 0.8,
    }
)
REVIEW = [[*ev_message(REVIEWED), ev_completed()]]
READ = "cat .ssh/config .netrc docs/tax.txt kept; true"
SECRETS = ("SSHSECRET", "NETSECRET", "TAXSECRET", "KEPTSECRET")


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A folder with secrets. It also is a repository, in which one of them is committed."""
    user = tmp_path / "user"
    for name, text in {
        ".ssh/config": "SSHSECRET",
        ".netrc": "NETSECRET",
        "docs/tax.txt": "TAXSECRET",
        "kept": "KEPTSECRET",
    }.items():
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        (user / name).write_text(f"{text}\n", encoding="utf-8")
    git(user, "init", "-q", "-b", "main")
    git(user, "add", "kept")
    git(user, "commit", "-qm", "one")
    git(user, "rm", "-q", "--cached", "kept")
    return user


@pytest.fixture
def place(place: Workplace) -> Workplace:
    git(place.cwd, "init", "-q", "-b", "main")
    (place.cwd / "a.txt").write_text("a\n", encoding="utf-8")
    git(place.cwd, "add", ".")
    git(place.cwd, "commit", "-qm", "one")
    (place.cwd / "a.txt").write_text("CHANGED\n", encoding="utf-8")
    return place


def by_setting(cwd: Path, user: Path) -> None:
    git(cwd, "config", "core.worktree", str(user))


def by_a_setting_in_a_bare_one(cwd: Path, user: Path) -> None:
    by_setting(cwd, user)
    git(cwd, "config", "core.bare", "true")


def by_a_setting_for_one_tree(cwd: Path, user: Path) -> None:
    git(cwd, "config", "extensions.worktreeConfig", "true")
    git(cwd, "config", "--worktree", "core.worktree", str(user))


def by_an_included_setting(cwd: Path, user: Path) -> None:
    (user / "settings").write_text(f"[core]\n\tworktree = {user}\n", encoding="utf-8")
    git(cwd, "config", "include.path", str(user / "settings"))


def by_a_setting_in_its_folder(cwd: Path, user: Path) -> None:
    by_setting(cwd, user)
    (cwd / ".git").rename(cwd / "sub.git")
    (cwd / ".git").write_text("gitdir: sub.git\n", encoding="utf-8")


def by_a_folder_elsewhere(cwd: Path, user: Path) -> None:
    by_setting(cwd, user)
    (cwd / ".git").rename(cwd.parent / "elsewhere")
    (cwd / ".git").write_text("gitdir: ../elsewhere\n", encoding="utf-8")


def to_a_repository(cwd: Path, user: Path) -> None:
    shutil.rmtree(cwd / ".git")
    (cwd / ".git").write_text(f"gitdir: {user}/.git\n", encoding="utf-8")


def by_a_link(cwd: Path, user: Path) -> None:
    shutil.rmtree(cwd / ".git")
    (cwd / ".git").symlink_to(user / ".git")


def to_objects(cwd: Path, user: Path) -> None:
    head = git(user, "rev-parse", "HEAD")
    (cwd / ".git/objects/info/alternates").write_text(
        f"{user}/.git/objects\n", encoding="utf-8"
    )
    (cwd / ".git/refs/heads/main").write_text(head, encoding="ascii")


def to_a_common_folder(cwd: Path, user: Path) -> None:
    (cwd / ".git/commondir").write_text(f"{user}/.git\n", encoding="utf-8")


STAYS = [
    *(
        by_setting,
        by_a_setting_in_a_bare_one,
        by_a_setting_for_one_tree,
        by_an_included_setting,
    ),
    *(by_a_setting_in_its_folder, by_a_folder_elsewhere),
]
REFUSED = [to_a_repository, by_a_link, to_objects, to_a_common_folder]
Lead = Callable[[Path, Path], None]


def run(
    place: Workplace, script: Sequence[Any], *words: str, **options: Any
) -> tuple[int, str]:
    """All that a run shows and sends."""
    with ScriptedServer(script, **options) as server:
        place.configure(server)
        done = run_codex_py(words, place.home, place.cwd)
        sent = "".join(json.dumps(request.body) for request in server.requests)
    return done.returncode, f"{done.stdout.decode()}{done.stderr.decode()}{sent}"


def objects(place: Workplace) -> str:
    """The contents of the repository's own objects."""
    words = ["git", "cat-file", "--batch-all-objects", "--batch"]
    variables = {"PATH": os.environ["PATH"], "GIT_DIR": str(place.cwd / ".git")}
    return subprocess.run(
        words,
        cwd="/",
        env=variables,
        check=False,
        capture_output=True,
        encoding="latin-1",
    ).stdout


def assert_no_secret(text: str) -> None:
    assert not [secret for secret in SECRETS if secret in text]


def shown_changes(place: Workplace) -> str:
    try:
        programs = programs_outside(place.home, os.environ, place.cwd)
        return changes_since_commit(place.cwd, programs, os.environ)
    except CodexError as error:
        return str(error)


def offered_names(place: Workplace) -> Sequence[str]:
    programs = programs_outside(place.home, os.environ, place.cwd)
    index = FileIndex(place.cwd, programs, os.environ, use_git=True)

    async def search() -> list[str]:
        found = [*await index.search("tax", 5), *await index.search("kept", 5)]
        return [name for name in found if name in {"docs/tax.txt", "kept"}]

    return asyncio.run(search())


@pytest.mark.parametrize("lead", [*STAYS, *REFUSED])
def test_nothing_outside_is_reviewed_or_shown(
    place: Workplace, user: Path, lead: Lead
) -> None:
    lead(place.cwd, user)
    assert_no_secret(shown_changes(place))
    assert not offered_names(place)
    code, told = run(place, REVIEW, "review", "--uncommitted")
    assert_no_secret(told)
    if lead in STAYS:
        assert code == 0, told
        assert "+CHANGED" in told
    else:
        assert code == 1
        assert "not read" in told, told
    _, told = run(place, REVIEW, "exec", "review", "--commit", "HEAD")
    assert_no_secret(told)


@pytest.mark.parametrize("lead", [by_setting, by_a_folder_elsewhere, to_a_repository])
@pytest.mark.parametrize(
    "words",
    [
        ["exec", "--best-of", "1", "go"],
        ["exec", "--worktree", "--with-changes", "go"],
        ["exec", "--bundle", "{outside}/bundle", "go"],
        ["review", "--base", "main"],
        ["batch", "{outside}/tasks.jsonl", "-o", "{outside}/results.jsonl"],
    ],
    ids=["best-of", "worktree", "bundle", "review", "batch"],
)
def test_nothing_outside_is_copied(
    place: Workplace, user: Path, tmp_path: Path, lead: Lead, words: Sequence[str]
) -> None:
    lead(place.cwd, user)
    task = json.dumps({"id": "t", "prompt": "go", "repo": str(place.cwd)})
    (tmp_path / "tasks.jsonl").write_text(f"{task}\n", encoding="utf-8")
    words = [word.format(outside=tmp_path) for word in words]
    script = REVIEW if words[0] == "review" else [command(READ), DONE]
    code, told = run(place, script, *words)
    assert_no_secret(told)
    assert_no_secret(objects(place) if lead is by_setting else "")
    for name in ("bundle", "results.jsonl"):
        path = tmp_path / name
        assert_no_secret(path.read_text("utf-8") if path.exists() else "")
    assert code == 0 or lead is to_a_repository, told


def test_variables_of_a_hook_lead_nowhere(place: Workplace, user: Path) -> None:
    variables = {
        "GIT_DIR": f"{user}/.git",
        "GIT_WORK_TREE": str(user),
        "GIT_INDEX_FILE": f"{user}/.git/index",
        "GIT_OBJECT_DIRECTORY": f"{user}/.git/objects",
        "GIT_COMMON_DIR": f"{user}/.git",
    }
    with ScriptedServer(REVIEW) as server:
        place.configure(server)
        done = run_codex_py(
            ["review", "--uncommitted"], place.home, place.cwd, variables
        )
        sent = "".join(json.dumps(request.body) for request in server.requests)
    assert done.returncode == 0, done.stderr
    assert "+CHANGED" in sent
    assert_no_secret(sent)


def test_a_list_of_ignored_files_elsewhere_is_not_read(
    place: Workplace, user: Path
) -> None:
    (user / "patterns").write_text("new\n", encoding="utf-8")
    (place.cwd / "new").write_text("NEW\n", encoding="utf-8")
    (place.cwd / "patterns").write_text("new\n", encoding="utf-8")
    for path, is_ignored in (
        (user / "patterns", False),
        ("~/patterns", False),
        ("../user/patterns", False),
        (place.cwd / "patterns", True),
        ("patterns", True),
    ):
        git(place.cwd, "config", "core.excludesFile", str(path))
        assert ("+NEW" in shown_changes(place)) is not is_ignored, path


def test_a_list_of_ignored_files_of_the_user_is_read(
    place: Workplace, user: Path
) -> None:
    (place.home.parent / "patterns").write_text("new\n", encoding="utf-8")
    (place.cwd / "new").write_text("NEW\n", encoding="utf-8")
    (place.home.parent / ".gitconfig").write_text(
        "[core]\n\texcludesFile = ~/patterns\n", encoding="utf-8"
    )
    for words in (
        ["-c", "core.bare=false", "status"],
        ["config", "core.excludesFile", f"{user}/x"],
    ):
        git(place.cwd, *words)
        code, told = run(place, REVIEW, "review", "--uncommitted")
        assert code == 0
        assert "+CHANGED" in told
        assert "+NEW" not in told


def test_repositories_of_people_go_on_working(place: Workplace, tmp_path: Path) -> None:
    git(place.cwd, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(tmp_path, "init", "-q", "-b", "main", str(tmp_path / "over"))
    git(tmp_path / "over", "submodule", "add", "-q", str(place.cwd), "sub")
    git(
        tmp_path, "clone", "-q", "--separate-git-dir=apart.git", str(place.cwd), "apart"
    )
    git(tmp_path, "clone", "-q", str(place.cwd), "sparse")
    git(tmp_path / "sparse", "sparse-checkout", "set", "--no-cone", "/a.txt")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{place.cwd}", "partial")
    for name in ("linked", "over/sub", "apart", "sparse", "partial"):
        tree = Workplace(place.home, tmp_path / name)
        (tree.cwd / "a.txt").write_text(f"IN {name}\n", encoding="utf-8")
        code, told = run(tree, REVIEW, "review", "--uncommitted")
        assert code == 0, told
        assert f"+IN {name}" in told
        words = ("exec", "--worktree", "--with-changes", "go")
        code, told = run(tree, [command("cat a.txt"), DONE], *words)
        assert code == 0, told
        assert told.count(f"IN {name}") >= 1, told
