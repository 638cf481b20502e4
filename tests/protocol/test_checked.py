"""Reading of JSON after annotations.

Also tests `protocol/annotations.py`.
"""

from typing import Annotated, Any, Literal

import pytest

from codex_py.protocol.annotations import OR_DEFAULT, Aliases, CamelCase
from codex_py.protocol.checked import WrongValue, checked, read
from codex_py.protocol.frozen import frozen


@frozen(kw_only=True)
class Part:
    text: str


@frozen(kw_only=True)
class Whole:
    name: str
    count: Annotated[int, "How many.", Aliases(["number", "n"])] = 1
    share: float = 0.0
    is_old: bool = False
    kind: Annotated[Literal["a", "b"], "One of two.", OR_DEFAULT] = "a"
    words: Annotated[tuple[str, ...], "Some.", OR_DEFAULT] = ()
    parts: list[Part] | None = None
    line: list[str] | str = ""


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        ({"name": "x", "invented": 1}, Whole(name="x")),
        ({"name": "x", "count": None, "parts": None}, Whole(name="x")),
        ({"name": "x", "number": 3}, Whole(name="x", count=3)),
        ({"name": "x", "count": 2, "n": 3}, Whole(name="x", count=2)),
        # As models write them.
        (
            {"name": "x", "count": "3", "is_old": "True"},
            Whole(name="x", count=3, is_old=True),
        ),
        ({"name": "x", "count": 3.0, "share": 1}, Whole(name="x", count=3, share=1.0)),
        ({"name": "x", "kind": "c", "words": ["a", 1]}, Whole(name="x")),
        (
            {"name": "x", "kind": "b", "words": ["a"]},
            Whole(name="x", kind="b", words=("a",)),
        ),
        (
            {"name": "x", "parts": [{"text": "t"}]},
            Whole(name="x", parts=[Part(text="t")]),
        ),
        ({"name": "x", "line": "a b"}, Whole(name="x", line="a b")),
        ({"name": "x", "line": ["a", "b"]}, Whole(name="x", line=["a", "b"])),
    ],
)
def test_fields_are_read_as_they_are_annotated(data: Any, whole: Whole) -> None:
    assert checked(Whole, data) == whole


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "missing field `name`"),
        ([1], "invalid value [1] for `arguments`: it must be an object"),
        ({"name": None}, "missing field `name`"),
        ({"name": 5}, "invalid value 5 for `name`: it must be a string"),
        ({"name": "", "count": True}, "invalid value true for `count`"),
        ({"name": "", "count": 0.5}, "invalid value 0.5 for `count`"),
        ({"name": "", "n": float("inf")}, "invalid value Infinity for `n`"),
        (
            {"name": "", "count": "[" * 9_000},
            "for `count`: it must be an integer",
        ),
        ({"name": "", "is_old": 1}, "for `is_old`: it must be a boolean"),
        ({"name": "", "share": ""}, 'invalid value "" for `share`'),
        ({"name": "", "parts": [{"text": ""}, {}]}, "missing field `parts.1.text`"),
        ({"name": "", "line": [1]}, "invalid value 1 for `line.0`"),
    ],
)
def test_a_value_that_does_not_fit_is_reported_with_its_place(
    data: Any, words: str
) -> None:
    with pytest.raises(WrongValue) as error:
        checked(Whole, data)
    assert words in str(error.value)


@frozen(kw_only=True)
class Step:
    status: Literal["pending", "in_progress", "completed"]
    size: Literal["auto"] | int = "auto"


@frozen(kw_only=True)
class Steps:
    title: str
    steps: tuple[Step, ...] = ()
    colors: list[Literal["red", "blue"]] | None = None
    by_name: dict[str, Step] | None = None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            {"title": "", "steps": [{"status": "done"}]},
            'invalid value "done" for `steps.0.status`:'
            " it must be one of `pending`, `in_progress`, `completed`",
        ),
        (
            {"title": "", "steps": [{"status": "pending"}, {"status": "In Progress"}]},
            'invalid value "In Progress" for `steps.1.status`:'
            " it must be one of `pending`, `in_progress`, `completed`; did you mean 'in_progress'?",
        ),
        (
            {"title": "", "colors": ["red", "blu", 5]},
            'invalid value "blu" for `colors.1`: it must be one of `red`, `blue`; did you mean'
            " 'blue'?; invalid value 5 for `colors.2`: it must be one of `red`, `blue`",
        ),
        (
            {"title": "", "by_name": {"a": {"status": True}}},
            "invalid value true for `by_name.a.status`:"
            " it must be one of `pending`, `in_progress`, `completed`",
        ),
        (
            {"title": "", "steps": [{"status": "pending", "size": "atuo"}]},
            'invalid value "atuo" for `steps.0.size`: it must be one of `auto` or an integer;'
            " did you mean 'auto'?",
        ),
        (
            {"steps": [{}, {"status": "pending"}, {"status": 1}]},
            "missing field `title`; missing field `steps.0.status`; invalid value 1 for"
            " `steps.2.status`: it must be one of `pending`, `in_progress`, `completed`",
        ),
        (
            {"title": "", "colors": 5},
            "invalid value 5 for `colors`: it must be an array",
        ),
    ],
)
def test_a_wrong_choice_names_the_choices_and_all_problems_are_told(
    data: Any, words: str
) -> None:
    with pytest.raises(WrongValue) as error:
        checked(Steps, data)
    assert str(error.value) == words


def test_of_many_problems_some_are_told() -> None:
    with pytest.raises(WrongValue) as error:
        checked(Steps, {"steps": [{"status": "x"}] * 1_000})
    assert str(error.value).endswith("; and 993 more")
    assert len(str(error.value)) < 1_000


def test_an_error_says_which_types_there_are() -> None:
    with pytest.raises(WrongValue, match="it must be an array or a string"):
        checked(Whole, {"name": "", "line": 5})


def test_a_value_is_shown_in_part_however_deep_or_long_it_is() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, ["x"] * 1_000_000):
        with pytest.raises(WrongValue) as error:
            checked(str, value)
        assert len(str(error.value)) < 300


@frozen(kw_only=True)
class Settings:
    limit: int = 1
    is_quiet: bool = False
    parts: tuple[Whole, ...] = ()


@pytest.mark.parametrize(
    ("data", "sentences"),
    [
        ({"limit": 2, "is_quiet": True}, []),
        ({"limt": 2}, ["unknown field `limt`; did you mean 'limit'?"]),
        ({"xyz": 2}, ["unknown field `xyz`"]),
        (
            {"parts": [{"name": "x", "nme": ""}, {"cuont": 1, "name": "", "n": 1}]},
            [
                "unknown field `parts.0.nme`; did you mean 'name'?",
                "unknown field `parts.1.cuont`; did you mean 'count'?",
            ],
        ),
        (
            {"limit": "2", "is_quiet": "true", "quiet": 1},
            [
                'invalid value "2" for `limit`: it must be an integer',
                'invalid value "true" for `is_quiet`: it must be a boolean',
                "unknown field `quiet`; did you mean 'is_quiet'?",
            ],
        ),
        (
            {"limit": 2.0},
            ["invalid value 2.0 for `limit`: it must be an integer"],
        ),
        (
            {"parts": [{"kind": "c"}]},
            ["missing field `parts.0.name`"],
        ),
    ],
)
def test_exact_data_has_all_mistakes_listed_unknown_fields_among_them(
    data: Any, sentences: list[str]
) -> None:
    _, mistakes = read(Settings, data, exact=True)
    assert [str(each.error()) for each in mistakes] == sentences


def test_a_value_that_is_ignored_leaves_no_mistake_behind() -> None:
    data: dict[str, Any] = {"name": "", "words": ["a", 1, {}], "kind": 5}
    found, mistakes = read(Whole, data)
    assert found == Whole(name="")
    assert mistakes == []


@frozen
class Circle(CamelCase):
    kind: Literal["circle"]
    half_width: int


@frozen
class Box(CamelCase):
    kind: Literal["box", "square"]
    side_lengths: list[int]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"kind": "circle", "halfWidth": 2}, Circle("circle", 2)),
        ({"kind": "box", "sideLengths": [1]}, Box("box", [1])),
        ({"kind": "square", "sideLengths": []}, Box("square", [])),
    ],
)
def test_the_tag_of_an_object_decides_between_classes(
    data: dict[str, Any], found: object
) -> None:
    assert checked(Circle | Box, data) == found
    assert checked(list[Circle | Box], [data]) == [found]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"halfWidth": 2}, "missing field `kind`"),
        ({"kind": None}, "missing field `kind`"),
        (
            {"kind": "squar"},
            "invalid value \"squar\" for `kind`: it must be one of `circle`, `box`, `square`; did you mean 'square'?",
        ),
        ({"kind": ["box"]}, 'invalid value ["box"] for `kind`: it must be one of'),
        ({"kind": "box"}, "missing field `sideLengths`"),
        ({"kind": "circle", "half_width": 2}, "missing field `halfWidth`"),
    ],
)
def test_a_wrong_tag_names_the_tags_of_all_classes(
    data: dict[str, Any], text: str
) -> None:
    with pytest.raises(WrongValue) as caught:
        checked(Circle | Box, data)
    assert str(caught.value).startswith(text)
