from dataclasses import FrozenInstanceError, asdict, field, replace
from typing import Any

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
            TypeError, match="Point takes the fields x, y, label, secret, tags"
        ):
            Point(*values, **given)
    with pytest.raises(TypeError, match=r"; it has no field w, z; x must be given$"):
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
