from pathlib import Path

from codex_py.config.config import load_config
from codex_py.config.skills import Skill, Skills, find_skills, skill_message
from tests.config.conftest import Place


def write(folder: Path, name: str, head: str | None = None) -> Skill:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    text = head or f"---\ndescription: about {name}\n---\nDo it.\n"
    path.write_text(text, encoding="utf-8")
    return Skill(name, f"about {name}", path, text)


def find(place: Place) -> Skills:
    config = load_config(cwd=place.cwd, environment=place.environment, system=place.system)
    return find_skills(config, place.environment)


def test_skills_are_found_where_codex_looks(place: Place) -> None:
    place.trusted()
    found = [
        write(place.root / ".agents" / "skills", "a"),
        write(place.cwd / ".codex" / "skills", "b"),
        write(place.home / "skills" / "nested", "c"),
        write(place.home.parent / ".agents" / "skills", "d"),
        write(place.home / "skills" / ".system", "e"),
    ]
    assert find(place) == Skills(tuple(found))


def test_skills_of_a_project_that_is_not_trusted_are_left_alone(place: Place) -> None:
    write(place.root / ".agents" / "skills", "a")
    assert find(place) == Skills()


def test_the_nearest_of_two_skills_of_a_name_is_taken(place: Place) -> None:
    place.trusted()
    near = write(place.cwd / ".agents" / "skills", "a")
    write(place.home / "skills", "a")
    assert find(place).found == (near,)


def test_a_skill_that_is_turned_off_is_not_found(place: Place) -> None:
    skill = write(place.home / "skills", "a")
    place.user(f'[[skills.config]]\npath = "{skill.path}"\nenabled = false\n')
    assert find(place) == Skills()


def test_files_that_can_not_be_used_are_warned_about(place: Place) -> None:
    write(place.home / "skills", "a", "---\nname: a\n---\n")
    write(place.home / "skills", "b", "---\nname: 'b\x1b[2J'\ndescription: x\n---\n")
    (place.home / "skills" / "loop").symlink_to(place.home)
    (place.home / "skills" / "c" / "SKILL.md").mkdir(parents=True)
    result = find(place)
    assert result.found == ()
    assert [warning.rpartition("used: ")[2] for warning in result.warnings] == [
        "it has no description.",
        "'b\\x1b[2J' is no name for a skill.",
        "it is a folder.",
    ]


def test_a_mention_is_a_dollar_and_the_whole_name() -> None:
    one, two = (
        Skill(name, "x", Path(f"/{name}/SKILL.md"), "text\n") for name in ("one", "one-two")
    )
    skills = Skills((one, two))
    assert skills.mentioned("$one-two. Then ($one), $one again; not $ONE, a$one or $three") == [
        two,
        one,
    ]
    assert skill_message(one) == (
        "<skill>\n<name>one</name>\n<path>/one/SKILL.md</path>\ntext\n\n</skill>"
    )


def test_a_skill_of_a_project_does_not_lead_out_of_it(place: Place) -> None:
    place.trusted()
    skills = place.root / ".agents" / "skills"
    mine = write(place.home.parent / "dotfiles", "mine")
    (skills / "file").mkdir(parents=True)
    (skills / "file" / "SKILL.md").symlink_to(mine.path)
    (skills / "folder").symlink_to(mine.path.parent)
    (place.home / "skills").symlink_to(place.home.parent / "dotfiles")
    found = find(place)
    # The user's own may lie where they like.
    assert [skill.name for skill in found.found] == ["mine"]
    assert found.warnings == (
        f"The skill {skills}/file/SKILL.md cannot be used:"
        f" it is a link that leads out of {place.root}.",
    )
