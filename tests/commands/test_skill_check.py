"""Tests `commands/skills.py`."""

from pathlib import Path

import pytest

from codex_py.commands.skills import skill_problems

GOOD = """\
---
name: release
description: How we release
---
See [the steps](references/steps.md#first), [ours](https://example.com), [below](#end), `[no](link)`.

```
[nor](this)
```
"""


def problems(folder: Path, text: str) -> list[str]:
    path = folder / "release" / "SKILL.md"
    (path.parent / "references").mkdir(parents=True)
    (path.parent / "references" / "steps.md").touch()
    path.write_text(text, encoding="utf-8")
    return [problem.removeprefix(f"{path}:") for problem in skill_problems(path)]


def test_a_skill_as_the_standard_has_it_has_no_problems(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("name: release\n", "", ["1: `name` is missing."]),
        (
            "name: release",
            "name: other",
            [
                "2: `name` is 'other', but the folder is 'release': they must be the same."
            ],
        ),
        *(
            (
                "name: release",
                f"name: {name}",
                [
                    f"2: `name` is {name!r}: use lower-case letters, digits and single hyphens between them."
                ],
            )
            for name in ("Release", "-a", "a--b", "a_b")
        ),
        (
            "release\n",
            f"{'a' * 65}\n",
            ["2: `name` has 65 characters: at most 64 are allowed."],
        ),
        (
            "How",
            "x" * 1025,
            ["3: `description` has 1036 characters: at most 1024 are allowed."],
        ),
        ("How we release", "", ["3: `description` is missing."]),
        (
            "---\nSee",
            f"compatibility: {'x' * 501}\n---\nSee",
            ["4: `compatibility` has 501 characters: at most 500 are allowed."],
        ),
        (
            "steps.md",
            "none.md",
            ["5: the link to 'references/none.md' leads to no file."],
        ),
        (
            "---\nSee",
            "nothing\n---\nSee",
            ["4: the front matter has a line that is no field: 'nothing'."],
        ),
        ("---\nname", "name", ["1: it does not begin with a line `---`."]),
    ],
)
def test_each_problem_is_a_sentence_with_its_line(
    tmp_path: Path, old: str, new: str, found: list[str]
) -> None:
    assert problems(tmp_path, GOOD.replace(old, new, 1)) == found
