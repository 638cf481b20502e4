"""Reads foreign data into types, by their annotations. All such data is checked here. LIGHT.

It reads the items of the API, the arguments of tools, settings, the tasks of a batch and the params
of the servers. pydantic would do the same, but would cost every run of `exec` that calls a tool
50 ms and 10 MB.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    cast,
    get_args,
    get_origin,
)

from codex_py.errors import nearest
from codex_py.protocol.annotations import (
    Declares,
    FieldShape,
    Form,
    Kind,
    Plain,
    choices,
    expected,
    form,
    known_names,
    members_of,
    plain,
    shape,
    tag_of,
)
from codex_py.protocol.json_fields import JsonObject

REQUIRED: Final = "it is missing"
"""The reason of a `WrongValue` for a missing value."""
_MAX_PROBLEMS: Final = 8
"""The number of problems that the text of an error names."""
_SHOWN_CHARS: Final = 200
"""Limit on a wrong value in the text of an error."""
_UNFIT: Final = object()
"""Takes the place of the typed value if a value does not fit its type."""

Place: TypeAlias = tuple[str, ...]
"""The names and indices that lead to a value."""


class WrongValue(ValueError):
    """A JSON value of the wrong type, or a missing one. The text is for a model.

    Attributes:
        path: the names and indices that lead to the value.
        reason: the problem, for other texts.
    """

    def __init__(
        self,
        path: Sequence[str],
        reason: str,
        value: object = None,
    ) -> None:
        field = ".".join(path) or "arguments"
        if reason == REQUIRED:
            text = f"missing field `{field}`"
        else:
            text = f"invalid value {_beginning(value)} for `{field}`: {reason}"
        super().__init__(text)
        self.path = path
        self.reason = reason


def _beginning(value: object) -> str:
    """The first characters of a value as JSON. It may be megabytes, or nested deeply."""
    chunks = json.JSONEncoder(default=str).iterencode(value)
    text = "".join(islice(chunks, _SHOWN_CHARS))
    return text[:_SHOWN_CHARS]


class UnknownField(WrongValue):
    """A field that its object does not have."""

    def __init__(self, path: Sequence[str], known: Iterable[str]) -> None:
        """`known` has the names of the fields that the object may have."""
        self._hint = guess(known, path[-1])
        super().__init__(path, f"it is unknown{self._hint}")

    def __str__(self) -> str:
        return f"unknown field `{'.'.join(self.path)}`{self._hint}"


class WrongValues(WrongValue):
    """One or more wrong values. `path` and `reason` are those of the first."""

    def __init__(self, problems: Sequence[WrongValue]) -> None:
        first = problems[0]
        super().__init__(first.path, first.reason)
        self.problems = problems

    def __str__(self) -> str:
        shown = [str(each) for each in self.problems[:_MAX_PROBLEMS]]
        left = len(self.problems) - len(shown)
        if left > 0:
            shown.append(f"and {left} more")
        return "; ".join(shown)


class Mistake(NamedTuple):
    """A value that is not as its type demands."""

    path: Place
    reason: Literal["missing", "unknown", "wrong"]
    kind: Kind
    """The type of the value; of an unknown field, the type that lacks it."""
    value: Any = None

    def error(self) -> WrongValue:
        match self.reason:
            case "missing":
                return WrongValue(self.path, REQUIRED)
            case "unknown":
                return UnknownField(self.path, known_names(self.kind))
            case "wrong":
                hint = guess(choices(self.kind), self.value)
                reason = f"it must be {expected(self.kind)}{hint}"
                return WrongValue(self.path, reason, self.value)


def guess(options: Iterable[object], value: object) -> str:
    """Return `; did you mean …?` with the option that a wrong value resembles, or nothing."""
    known = {str(option).lower(): option for option in options}
    if not known or not isinstance(value, str):
        return ""
    meant = nearest(value.lower(), known)
    if meant is None:
        return ""
    return f"; did you mean {known[meant]!r}?"


def checked(
    kind: Kind,
    value: Any,
    path: Place = (),
) -> Any:
    """Convert a JSON value to a type. Unknown fields are ignored.

    Raises:
        WrongValues: a value has another type, or is missing. The error names all of them.
    """
    found, mistakes = read(kind, value, path)
    _require_none(mistakes)
    return found


def checked_fields(cls: type[Any], data: JsonObject, path: Place = ()) -> JsonObject:
    """The fields of a `@frozen` class from a JSON object, without those that are left out.

    Raises the errors of `checked`.
    """
    reader = _Reader(exact=False)
    values = reader.fields(cls, data, path)
    _require_none(reader.mistakes)
    return values


def _require_none(mistakes: Iterable[Mistake]) -> None:
    wrong = [each.error() for each in mistakes if each.reason != "unknown"]
    if wrong:
        raise WrongValues(wrong)


def read(
    kind: Kind, value: Any, path: Place = (), *, exact: bool = False
) -> tuple[Any, list[Mistake]]:
    """Convert a value to a type. Returns it with all mistakes, in the order of the fields.

    The value counts only if there are no mistakes besides unknown fields. Null for a field with a
    default counts as left out.

    Args:
        exact: refuse strings in place of numbers and booleans, and whole numbers with a decimal
            point. By default they are converted, because models write them.
    """
    reader = _Reader(exact=exact)
    found = reader.value(kind, value, path)
    return found, reader.mistakes


class _Reader:
    """Converts one value, and collects the mistakes in it."""

    def __init__(self, *, exact: bool) -> None:
        self.mistakes: list[Mistake] = []
        self._exact = exact
        self._wrong = 0
        """The number of mistakes besides unknown fields."""

    def value(
        self,
        kind: Kind,
        value: Any,
        path: Place,
    ) -> Any:
        """Convert a value by the first type of a union that has its form.

        Among objects with a tag, its value decides. Returns None, and adds a mistake, if no type
        fits.
        """
        for option in _options(kind):
            match option.form:
                case "choice":
                    if value in option.inner:
                        return value
                case "array":
                    if isinstance(value, list | tuple):
                        elements = cast("Sequence[Any]", value)
                        return self._elements(option, elements, path)
                case "mapping":
                    if isinstance(value, dict):
                        members = cast("JsonObject", value)
                        return self._members(option.inner[1], members, path)
                case "fields":
                    if isinstance(value, dict):
                        data = cast("JsonObject", value)
                        return self._tagged(option, data, path)
                case "plain":
                    found = self._plain(plain(option.kind), value)
                    if found is not _UNFIT:
                        return found
        self._add(Mistake(path, "wrong", kind, value))
        return None

    def fields(self, cls: type[Any], data: JsonObject, path: Place) -> JsonObject:
        """The values of the fields of a `@frozen` class that are given."""
        values: JsonObject = {}
        known = shape(cls)
        for field in known.fields:
            name = _given(field, data)
            if name is None:
                if field.is_required:
                    missing = (*path, field.names[0])
                    self._add(Mistake(missing, "missing", field.kind))
                continue
            mistakes_before = len(self.mistakes)
            wrong_before = self._wrong
            value = self.value(field.kind, data[name], (*path, name))
            if self._wrong == wrong_before:
                values[field.name] = value
            elif field.is_lenient:
                # The field counts as left out.
                del self.mistakes[mistakes_before:]
                self._wrong = wrong_before
        for name, value in data.items():
            if name not in known.names:
                unknown = Mistake((*path, name), "unknown", cls, value)
                self.mistakes.append(unknown)
        return values

    def _tagged(
        self,
        option: "_Option",
        data: JsonObject,
        path: Place,
    ) -> Any:
        """Convert an object to the class that its tag names, or to the only class of the union."""
        tags = option.tags
        if tags is None:
            return self._object(option.kind, data, path)
        value = data.get(tags.name)
        if isinstance(value, str) and value in tags.classes:
            return self._object(tags.classes[value], data, path)
        place = (*path, tags.name)
        reason = "missing" if value is None else "wrong"
        self._add(Mistake(place, reason, tags.kind, value))
        return None

    def _object(self, cls: type[Any], data: JsonObject, path: Place) -> Any:
        if issubclass(cls, Declares):
            self._declared(cls, data, path)
            return cls(data)
        wrong_before = self._wrong
        values = self.fields(cls, data, path)
        if self._wrong > wrong_before:
            return None
        return cls(**values)

    def _declared(self, cls: type[Declares], data: JsonObject, path: Place) -> None:
        for name, value in data.items():
            kind = cls.__kind_at__(name)
            place = (*path, name)
            if kind is None:
                self.mistakes.append(Mistake(place, "unknown", cls, value))
            else:
                self.value(kind, value, place)

    def _elements(
        self,
        option: "_Option",
        values: Sequence[Any],
        path: Place,
    ) -> Any:
        kind = option.inner[0]
        if kind is not Any:
            values = [
                self.value(kind, value, (*path, str(at)))
                for at, value in enumerate(values)
            ]
        return option.kind(values)

    def _members(
        self,
        kind: Kind,
        members: JsonObject,
        path: Place,
    ) -> JsonObject:
        if kind is Any:
            return members
        return {
            name: self.value(kind, member, (*path, name))
            for name, member in members.items()
        }

    def _plain(self, kind: Plain, value: Any) -> Any:
        """The converted value; `_UNFIT` if it does not fit."""
        if not self._exact:
            value = _number(kind.types[-1], value)
        if kind.fits(value):
            return kind.make(value)
        return _UNFIT

    def _add(self, mistake: Mistake) -> None:
        self.mistakes.append(mistake)
        self._wrong += 1


def _given(field: FieldShape, data: JsonObject) -> str | None:
    """The name under which an object has a value for a field."""
    for name in field.names:
        if data.get(name) is not None:
            return name
    return None


def _number(kind: type, value: Any) -> Any:
    """Convert a value to a number or boolean of this type, if it can stand for one."""
    if kind in (bool, int, float) and isinstance(value, str):
        try:
            value = json.loads(value.lower())
        except (ValueError, RecursionError):
            return value
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind is float and type(value) is int:
        return float(value)
    return value


class _Tags(NamedTuple):
    """The field by whose value the classes of a union differ."""

    name: str
    """The name of the field in JSON."""
    classes: Mapping[str, type[Any]]
    """The class for each value of the field."""
    kind: Kind
    """The type of the field, with the values of all classes."""


class _Option(NamedTuple):
    """One type of a union."""

    form: Form
    kind: Any
    """The type, without its parameters unless it is plain."""
    inner: tuple[Any, ...] = ()
    """The parameters: the choices, or the types of the members."""
    tags: _Tags | None = None
    """The tags of the classes of the union; None if it has only one class, or they have no tag."""


@cache
def _options(kind: Kind) -> tuple[_Option, ...]:
    members = members_of(kind)
    tags = _tags([each for each in members if form(each) == "fields"])
    return tuple(_option(each, tags) for each in members)


def _option(kind: Kind, tags: _Tags | None) -> _Option:
    match form(kind):
        case "plain":
            return _Option("plain", kind)
        case "fields":
            return _Option("fields", kind, tags=tags)
        case other:
            return _Option(other, get_origin(kind), get_args(kind))


def _tags(classes: Sequence[type[Any]]) -> _Tags | None:
    """The tags of several classes; None unless all have one, under the same name."""
    if len(classes) < 2:
        return None
    class_of: dict[str, type[Any]] = {}
    names: set[str] = set()
    for cls in classes:
        tag = tag_of(cls)
        if tag is None:
            return None
        names.add(tag.name)
        class_of |= dict.fromkeys(tag.values, cls)
    if len(names) > 1:
        return None
    return _Tags(names.pop(), class_of, Literal[tuple(class_of)])
