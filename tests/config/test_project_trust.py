"""A project is trusted with what it held then."""

import errno
import json
from pathlib import Path

import pytest

from codex_py.config.project_trust import Changed, Trusted, Untrusted
from codex_py.errors import ConfigError
from tests.config.conftest import Place

SETTINGS = "model = 'project'\n"
RULE = 'prefix_rule(pattern=["ls"])\n'


def write(place: Place, name: str, text: str) -> Path:
    path = place.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def files(place: Place) -> dict[Path, str]:
    """Of a trusted project, in the order in which they are read."""
    texts = {
        ".codex/config.toml": SETTINGS,
        ".codex/hooks.json": "{}",
        ".codex/rules/a.rules": RULE,
        "sub/.codex/config.toml": "",
    }
    place.trusted()
    return {write(place, name, text): text for name, text in texts.items()}


def test_files_that_exist_when_a_trusted_project_is_first_seen_are_used(
    place: Place, files: dict[Path, str]
) -> None:
    write(place, ".codex/rules/notes.txt", "no rule")
    for _ in range(2):
        config = place.load()
        assert (config.project_trust, config.warnings) == (Trusted(files), ())
        assert config.model == "project"


@pytest.mark.parametrize(
    "name",
    [
        ".codex/config.toml",
        ".codex/hooks.json",
        ".codex/rules/a.rules",
        "sub/.codex/config.toml",
    ],
)
def test_after_a_change_nothing_is_used_until_it_is_trusted_again(
    place: Place, files: dict[Path, str], name: str
) -> None:
    place.load()
    path = write(place, name, f"\n{files[place.root / name]}")
    config = place.load()
    assert config.project_trust == Changed((path,))
    assert (config.trust, config.model) == ("trusted", "gpt-6.1-sol")
    assert config.warnings == (
        f"This project's own settings, rules and hooks are not used: {path} changed since the project"
        " was trusted; look at the change, and trust it with `codex-py exec --trust`.",
    )
    place.trust()
    config = place.load()
    assert (config.model, config.warnings) == ("project", ())
    assert config.project_trust == Trusted(files | {path: f"\n{files[path]}"})


def test_new_and_removed_files_count_as_changes_too(
    place: Place, files: dict[Path, str]
) -> None:
    place.load()
    new = write(place, ".codex/rules/b.rules", RULE)
    gone = place.root / ".codex/hooks.json"
    gone.unlink()
    assert place.load().project_trust == Changed((gone, new))


def test_a_file_in_a_project_that_had_none_is_a_change(place: Place) -> None:
    place.trusted()
    assert place.load().project_trust == Trusted({})
    path = place.project(SETTINGS)
    assert place.load().project_trust == Changed((path,))


def test_a_project_without_files_needs_no_trust_in_them(
    place: Place, files: dict[Path, str]
) -> None:
    place.load()
    for path in files:
        path.unlink()
    assert (place.load().project_trust, place.load().warnings) == (Trusted({}), ())


def test_files_elsewhere_in_the_project_neither_count_nor_are_forgotten(
    place: Place, files: dict[Path, str]
) -> None:
    place.load()
    elsewhere, place.cwd = place.cwd, place.root
    here = {path: text for path, text in files.items() if elsewhere not in path.parents}
    assert place.load().project_trust == Trusted(here)
    place.trust()
    place.cwd = elsewhere
    assert place.load().project_trust == Trusted(files)


def test_trust_is_written_where_codex_looks_for_it(place: Place) -> None:
    path = place.project(SETTINGS)
    assert place.load().project_trust == Untrusted((path,))
    place.trust()
    assert place.load().project_trust == Trusted({path: SETTINGS})
    place.user(f'[projects."{place.root}"]\ntrust_level = "untrusted"\n')
    assert place.load().project_trust == Untrusted((path,))


def test_the_record_holds_digests_and_is_the_users_alone(
    place: Place, files: dict[Path, str]
) -> None:
    place.load()
    record = place.home / "codex-py/trust.json"
    assert record.stat().st_mode & 0o777 == 0o600
    digests = json.loads(record.read_text(encoding="utf-8"))[str(place.root)]
    assert set(digests) == {path.relative_to(place.root).as_posix() for path in files}
    assert all(len(digest) == 64 for digest in digests.values())


@pytest.mark.parametrize("text", ["{", "[]", '{"/a": 1}', '{"/a": {"b": 1}}'])
def test_a_damaged_record_is_no_reason_to_trust(place: Place, text: str) -> None:
    place.trusted()
    place.project(SETTINGS)
    record = place.home / "codex-py/trust.json"
    record.parent.mkdir()
    record.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"trust\.json is damaged"):
        place.load()


def test_a_home_that_cannot_be_written_is_no_obstacle(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.trusted()
    path = place.project(SETTINGS)
    tried: list[Path] = []

    def refuse(folder: Path) -> None:
        tried.append(folder)
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("codex_py.config.project_trust.make_private", refuse)
    assert place.load().project_trust == Trusted({path: SETTINGS})
    assert tried == [place.home / "codex-py"]


@pytest.mark.parametrize("name", [".codex/config.toml", ".codex/rules/a.rules"])
def test_no_file_of_a_trusted_project_leads_out_of_it(place: Place, name: str) -> None:
    place.trusted()
    outside = place.user("", "other.toml")
    (place.root / name).parent.mkdir(parents=True)
    (place.root / name).symlink_to(outside)
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert str(caught.value) == (
        f"{place.root / name} cannot be read: it is a link that leads out of {place.root}"
    )


def test_a_branch_in_a_linked_worktree_is_compared_with_what_was_trusted(
    place: Place, files: dict[Path, str], tmp_path: Path
) -> None:
    place.cwd = place.root
    assert place.load().model == "project"
    linked, git_dir = tmp_path / "linked", place.root / ".git" / "worktrees" / "linked"
    place.root, place.cwd = linked, linked
    write(place, ".git", f"gitdir: {git_dir}\n")
    git_dir.mkdir(parents=True)
    (git_dir / "gitdir").write_text(f"{linked}/.git\n", encoding="utf-8")
    for path, text in list(files.items())[:3]:
        write(place, f".codex/{path.as_posix().rpartition('/.codex/')[2]}", text)
    changed = write(place, ".codex/config.toml", "model = 'branch'")
    assert place.load().project_trust == Changed((changed,))
    write(place, ".codex/config.toml", SETTINGS)
    assert place.load().model == "project"
    write(place, ".codex/config.toml", "model = 'branch'")
    place.trust()
    assert place.load().model == "branch"
