from concurrent.futures import ThreadPoolExecutor
from dataclasses import (
    FrozenInstanceError,
    asdict,
    field,
    fields,
    is_dataclass,
    replace,
)
from inspect import signature
from typing import Any, ClassVar, get_type_hints

import pytest

from codex_py.protocol.frozen import frozen


@frozen
class Point:
    x: int
    y: int = 0
    label: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)
    tags: list[str] = field(default_factory=list[str], compare=False)


@frozen(kw_only=True)
class Named:
    """A docstring is kept."""

    name: str


def test_fields_are_given_by_place_by_name_or_left_out() -> None:
    point = Point(1, label="here")
    assert (point.x, point.y, point.label, point.tags) == (1, 0, "here", [])
    assert point.tags is not Point(1).tags
    assert Named.__doc__ == "A docstring is kept."


def test_wrong_fields_are_a_type_error() -> None:
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}),
        ((1, 2, "", "", [], 6), {}),
        ((1,), {"x": 1}),
        ((1,), {"z": 1}),
    ]
    for values, given in wrong:
        with pytest.raises(
            TypeError, match=r"Point .*takes the fields x, y, label, secret, tags"
        ):
            Point(*values, **given)
    with pytest.raises(
        TypeError, match=r"^Point has no field w, z; it takes .*; x must be given$"
    ):
        Point(w=1, z=2)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError):
        Named("by place")  # pyright: ignore[reportCallIssue]


def test_values_compare_and_hash_by_their_fields() -> None:
    assert Point(1, 2, "a") == Point(1, 2, "b") != Point(1, 3)
    assert hash(Point(1, 2, "a")) == hash(Point(1, 2, "b"))
    assert Named(name="x") != "x"


def test_a_field_can_neither_be_set_nor_deleted_nor_added() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="'x'"):
        point.x = 2  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(FrozenInstanceError, match="'x'"):
        del point.x  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(point, "__dict__")


def test_it_prints_matches_and_is_replaced_as_a_dataclass() -> None:
    assert repr(Point(1, secret="s")) == "Point(x=1, y=0, label='', tags=[])"
    match Point(3, 4):
        case Point(x, y):
            assert (x, y) == (3, 4)
    assert replace(Point(1), y=5) == Point(1, 5)
    assert asdict(Named(name="n")) == {"name": "n"}


class Counted:
    """A base that is no dataclass."""

    count = 3


@frozen(kw_only=True)
class Shape(Counted):
    sides: ClassVar[int] = 0

    name: str
    corners: int = field(default=1, kw_only=True)


@frozen
class Square(Shape):
    sides: ClassVar[int] = 4

    width: int
    corners: int = 4


def test_a_class_adds_to_the_fields_of_its_base_and_replaces_defaults() -> None:
    square = Square(width=2, name="s")
    assert (square.width, square.name, square.corners, square.sides) == (2, "s", 4, 4)
    assert [each.name for each in fields(Square)] == ["name", "corners", "width"]
    assert repr(square) == "Square(name='s', corners=4, width=2)"
    assert square.count == 3


def fresh() -> type[Any]:
    """A class that nobody has used yet."""

    @frozen
    class Fresh:
        value: int = 1

    return Fresh


def test_each_use_may_be_the_first_one() -> None:
    assert fresh()(2).value == 2
    assert fresh().__match_args__ == ("value",)
    assert is_dataclass(fresh())
    assert [each.name for each in fields(fresh())] == ["value"]
    assert str(signature(fresh())) == "(value: int = 1)"
    assert get_type_hints(fresh()) == {"value": int}
    assert repr(fresh()()).endswith("Fresh(value=1)")
    assert fresh()() != fresh()()
    assert hash(fresh()()) == hash((1,))
    assert replace(fresh()(), value=3).value == 3


def test_threads_may_use_a_class_at_the_same_time() -> None:
    for _ in range(20):
        cls = fresh()
        with ThreadPoolExecutor(4) as pool:
            made = [pool.submit(cls, number) for number in range(8)]
            values = [each.result().value for each in made]
        assert values == [*range(8)]


def test_a_mistake_in_the_fields_is_told_when_the_class_is_used() -> None:
    @frozen
    class Mistaken:
        values: list[str] = []  # noqa: RUF012

    with pytest.raises(ValueError, match="mutable default"):
        fields(Mistaken)
