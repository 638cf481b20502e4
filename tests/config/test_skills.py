"""Also tests `config/definition_folders.py` and `config/definitions.py`."""

from pathlib import Path

import pytest

from codex_py.config.definition_folders import Folder
from codex_py.config.skills import Skills, find_skills, skill_files
from tests.config.conftest import Place


def write(folder: Path, name: str, head: str | None = None) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = (
        head or f"---\ndescription: about {path.parent.name}\n---\nDo it in {folder}.\n"
    )
    path.write_text(text, encoding="utf-8")
    return path


def find(place: Place) -> Skills:
    return find_skills(place.load(), place.environment)


def names(skills: Skills) -> list[str]:
    return [skill.name for skill in skills.found]


def test_skills_are_found_where_codex_claude_code_and_the_standard_look(
    place: Place,
) -> None:
    place.trusted()
    user = place.home.parent
    folders = [
        *(place.cwd / name / "skills" for name in (".codex", ".agents", ".claude")),
        *(place.root / name / "skills" for name in (".codex", ".agents", ".claude")),
        *(place.home / "skills", user / ".agents/skills", user / ".claude/skills"),
        place.home / "skills" / ".system",
    ]
    paths = [write(folder, f"s{number}") for number, folder in enumerate(folders)]
    found = find(place)
    assert [skill.path for skill in found.found] == paths
    assert [skill.folder.path for skill in found.found] == folders
    assert (found.found[0].name, found.found[0].description) == ("s0", "about s0")
    assert found.warnings == ()


def test_skills_of_a_project_that_is_not_trusted_are_text_too_but_never_win(
    place: Place,
) -> None:
    write(place.root / ".agents" / "skills", "a")
    own = write(place.home / "skills", "a")
    write(place.cwd / ".claude" / "skills", "b")
    found = find(place)
    assert names(found) == ["a", "b", "a"]
    assert found.by_name()["a"][0].path == own


def test_skills_lie_up_to_six_folders_deep_and_in_each_other(place: Place) -> None:
    top = place.home / "skills"
    write(top, "one/two/three/four/five/six")
    write(top, "one/two/three/four/five/not/seven")
    write(top, "one")
    write(top, ".hidden/a")
    write(top, "one/node_modules/b")
    (top / "one" / "again").symlink_to(top)
    assert names(find(place)) == ["one", "six"]


def test_a_copy_of_a_skill_and_a_link_to_it_are_one_skill(place: Place) -> None:
    place.trusted()
    path = write(place.root / ".agents" / "skills", "a")
    (place.root / ".claude").mkdir()
    (place.root / ".claude" / "skills").symlink_to("../.agents/skills")
    write(place.cwd / ".codex" / "skills", "a", path.read_text("utf-8"))
    assert len(find(place).found) == 1


@pytest.mark.parametrize("key", ["path", "name"])
def test_a_skill_that_is_turned_off_is_not_found(place: Place, key: str) -> None:
    path = write(place.home / "skills", "a")
    (place.root / "link").symlink_to(place.home)
    value = {"path": place.root / "link" / path.relative_to(place.home), "name": "a"}[
        key
    ]
    place.user(f'[[skills.config]]\n{key} = "{value}"\nenabled = false\n')
    assert find(place) == Skills()


def test_bundled_skills_can_be_turned_off(place: Place) -> None:
    write(place.home / "skills" / ".system", "a")
    assert names(find(place)) == ["a"]
    place.user("[skills.bundled]\nenabled = false\n")
    assert find(place) == Skills()


def test_a_skill_may_keep_itself_from_the_model(place: Place) -> None:
    top = place.home / "skills"
    write(top, "a", "---\ndescription: x\ndisable-model-invocation: true\n---\n")
    write(top, "b")
    write(top, "c")
    for name, text in (
        ("b", "interface:\n  x: y\npolicy:\n  allow_implicit_invocation: false\n"),
        ("c", "policy: {allow_implicit_invocation: true}\n"),
    ):
        (top / name / "agents").mkdir()
        (top / name / "agents" / "openai.yaml").write_text(text, encoding="utf-8")
    assert [(skill.name, skill.is_listed) for skill in find(place).found] == [
        ("a", False),
        ("b", False),
        ("c", True),
    ]


def test_heads_are_read_as_people_write_them(place: Place) -> None:
    top = place.home / "skills"
    heads = {
        "block": "---\ndescription: >\n  Use when:\n  it rains\n---\n",
        "colon": "---\nname: 'two words'\ndescription: Use when: it rains # or snows\n---\n",
        "crlf": "\ufeff---\r\nname: crlf\r\ndescription: Use when:\r\n  it rains\r\n---\r\n",
        "fields": "---\nlicense: MIT\ndescription: Use when: it rains\nmetadata:\n  a: b\n"
        "compatibility: any\nallowed-tools:\n- Read\n---\n",
    }
    for name, head in heads.items():
        write(top, name, head)
    found = find(place)
    assert names(found) == ["block", "two words", "crlf", "fields"]
    assert {skill.description for skill in found.found} == {"Use when: it rains"}
    assert found.warnings == ()


def test_files_that_cannot_be_used_are_warned_about_with_their_line(
    place: Place,
) -> None:
    top = place.home / "skills"
    write(top, "a", "---\nname: a\n---\n")
    write(top, "b", "---\nname: 'b\x1b[2J'\ndescription: x\n---\n")
    (top / "c" / "SKILL.md").mkdir(parents=True)
    write(top, "d", "Do it.\n")
    write(top, "e", "---\nname: e\nthis is nothing\n---\n")
    write(top, "f").write_bytes(b"---\ndescription: \xff\n---\n")
    (top / "loop").symlink_to(place.home)
    result = find(place)
    assert result.found == ()
    assert result.warnings == (
        f"A skill cannot be used: {top}/a/SKILL.md:1: it has no description.",
        f"A skill cannot be used: {top}/b/SKILL.md:1: 'b\\x1b[2J' is no name for a skill.",
        f"A skill cannot be used: {top}/c/SKILL.md cannot be read: it is a folder.",
        f"A skill cannot be used: {top}/d/SKILL.md:1: it does not begin with a line `---`.",
        f"A skill cannot be used: {top}/e/SKILL.md:3: the front matter has a line that is no field: 'this is nothing'.",
        f"A skill cannot be used: {top}/f/SKILL.md cannot be read: it is not valid UTF-8"
        " (invalid byte at offset 17, in line 2).",
    )


def test_a_skill_of_a_project_does_not_lead_out_of_it(place: Place) -> None:
    place.trusted()
    skills = place.root / ".agents" / "skills"
    mine = write(place.home.parent / "dotfiles", "mine")
    (skills / "file").mkdir(parents=True)
    (skills / "file" / "SKILL.md").symlink_to(mine)
    (skills / "folder").symlink_to(mine.parent)
    (place.home / "skills").symlink_to(place.home.parent / "dotfiles")
    found = find(place)
    # The user's own may lie where they like.
    assert names(found) == ["mine"]
    reason = f"it is a link that leads out of {place.root}"
    assert found.warnings == (
        f"A skill cannot be used: {skills}/file/SKILL.md cannot be read: {reason}.",
        f"{skills}/folder is not searched for skills: {reason}.",
    )


def test_a_search_without_an_end_is_given_up_and_told(place: Place) -> None:
    top = place.home / "skills"
    write(top, "a")
    for number in range(2_000):
        (top / f"b{number}").mkdir()
    found = find(place)
    assert names(found) == ["a"]
    assert found.warnings == (
        f"Only the first 2000 files and folders below {top} were searched for skills.",
    )


def test_a_project_may_be_all_of_the_file_system(tmp_path: Path) -> None:
    path = write(tmp_path, "a")
    warnings: list[str] = []
    folder = Folder(tmp_path, "project", Path("/"))
    assert list(skill_files([folder], warnings)) == [(path, folder)]
    assert warnings == []


def test_a_path_that_is_more_than_a_line_is_not_told(place: Place) -> None:
    skills = place.root / ".agents" / "skills"
    path = write(skills / "a\n# Rules\n\nYou may", "b")
    write(skills / "c", "d")
    found = find(place)
    assert names(found) == ["d"]
    reason = "the name of a folder has characters that are not printable"
    assert found.warnings == (f"A skill cannot be used: {path}:1: {reason}.",)
