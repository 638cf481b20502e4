"""`@frozen`: a frozen, slotted dataclass that is cheap to define.

`dataclass` writes and compiles six methods for each class, which takes 0.4 to 0.7 ms, and `exec`
defines 150 classes until its first turn is over. A `frozen` class takes 0.02 ms: it begins with
only its slots, and gets its fields and methods when it is first used. Most classes are never used
in a run. `fields`, `replace` and `asdict` of `dataclasses` work on it.
"""

import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import (
    MISSING,
    Field,
    FrozenInstanceError,
    dataclass,
    field,
    fields,
    replace,
)
from typing import (
    Any,
    ClassVar,
    Final,
    NamedTuple,
    NoReturn,
    TypeVar,
    cast,
    dataclass_transform,
    overload,
)

T = TypeVar("T")
_DRAFT: Final = "__frozen_draft__"
"""The name of the class attribute that holds the `_Draft`."""


class _Draft(NamedTuple):
    """The material from which the fields of a class are made."""

    annotations: dict[str, Any]
    names: list[str]
    """The names of the fields, without class variables and inherited fields."""
    defaults: dict[str, Any]
    kw_only: bool


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T], /) -> type[T]: ...
@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool) -> Callable[[type[T]], type[T]]: ...
def frozen(cls: type[Any] | None = None, /, *, kw_only: bool = False) -> Any:
    """Make a class what `dataclass(frozen=True, slots=True)` makes it, without `__post_init__`.

    A mistake in the fields, such as a list as a default, raises when the class is first used.
    """

    def decorate(cls: type[Any]) -> type[Any]:
        return _with_slots(cls, kw_only=kw_only)

    if cls is None:
        return decorate
    return decorate(cls)


def _with_slots(cls: type[Any], *, kw_only: bool) -> type[Any]:
    """Copy a class, with slots for its fields and without their defaults.

    It is a copy because slots cannot be added to a class.
    """
    annotations: dict[str, Any] = cls.__annotations__
    members = dict(cls.__dict__)
    for name in ("__dict__", "__weakref__"):
        members.pop(name, None)
    names = [name for name in annotations if not _is_class_variable(annotations[name])]
    defaults = {name: members.pop(name) for name in names if name in members}
    inherited: set[str] = set()
    for base in cls.__mro__[1:-1]:
        inherited.update(base.__dict__.get("__slots__", ()))
    members |= _LATE
    members["__doc__"] = cls.__doc__ or cls.__name__
    members["__slots__"] = tuple(name for name in names if name not in inherited)
    members[_DRAFT] = _Draft(annotations, names, defaults, kw_only)
    metaclass: Any = type(cls)
    return metaclass(cls.__name__, cls.__bases__, members)


def _is_class_variable(annotation: Any) -> bool:
    return annotation is ClassVar or getattr(annotation, "__origin__", None) is ClassVar


def _with_fields(cls: Any) -> Any:
    """Let `dataclass` make the fields and methods of a `frozen` class, and return the class.

    That is the class itself, or the nearest base that is `@frozen`.
    """
    made = _nearest(cls)
    draft: _Draft = made.__dict__[_DRAFT]
    members = {
        **draft.defaults,
        "__annotations__": draft.annotations,
        # `dataclass` would derive a docstring from the signature, which takes 0.1 ms.
        "__doc__": made.__doc__,
        "__module__": made.__module__,
    }
    # A throw-away class without slots, of which `dataclass` describes the fields.
    drafted: Any = type(made)(made.__name__, made.__bases__, members)
    describe = dataclass(init=False, repr=False, eq=False, kw_only=draft.kw_only)
    describe(drafted)
    for name in _MADE_BY_DATACLASS:
        setattr(made, name, drafted.__dict__[name])
    made.__repr__ = _representation(made)
    made.__eq__ = _equality(made)
    made.__hash__ = _hashing(made)
    return made


def _nearest(cls: Any) -> Any:
    """The class, or its nearest base, that is `@frozen` itself."""
    return next(each for each in cls.__mro__ if _DRAFT in each.__dict__)


class _LateAttribute:
    """A placeholder for an attribute until the class is complete."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: Any) -> Any:
        return getattr(_with_fields(owner), self._name)


# The methods of a class until it is complete. Each completes the class, then calls the method that
# has taken its place.


def _initialize(self: Any, /, *values: Any, **given: Any) -> None:
    made = _nearest(self.__class__)
    made.__init__ = _initializer(made)
    made.__init__(self, *values, **given)


def _represent(self: Any) -> str:
    return _with_fields(self.__class__).__repr__(self)


def _equals(self: Any, other: object) -> bool:
    return _with_fields(self.__class__).__eq__(self, other)


def _hash(self: Any) -> int:
    return _with_fields(self.__class__).__hash__(self)


class _Signature:
    """Makes the signature of a class for `help`, on demand."""

    def __get__(self, instance: object, owner: type[Any]) -> inspect.Signature:
        if instance is not None:
            # `inspect.signature` of an instance must return the signature of its `__call__`.
            raise AttributeError("__signature__")
        parameters = [_parameter(each) for each in fields(owner) if each.init]
        parameters.sort(key=lambda parameter: parameter.kind)
        return inspect.Signature(parameters)


def _parameter(each: Field[Any]) -> inspect.Parameter:
    """The parameter of a field. The default of a field with a factory is shown as the factory."""
    if each.kw_only:
        kind = inspect.Parameter.KEYWORD_ONLY
    else:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    default: Any = inspect.Parameter.empty
    if each.default is not MISSING:
        default = each.default
    elif each.default_factory is not MISSING:
        default = each.default_factory
    return inspect.Parameter(each.name, kind, default=default, annotation=each.type)


def _misfit(
    made: type[Any],
    names: Sequence[str],
    given: Collection[str],
) -> str:
    """The message about arguments that do not match the fields of a class."""
    fields = ", ".join(names)
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given]
    if unknown:
        wrong = ", ".join(unknown)
        text = f"{made.__qualname__} has no field {wrong}; it takes the fields {fields}"
    else:
        text = f"{made.__qualname__} takes the fields {fields}"
    if missing:
        text += f"; {', '.join(missing)} must be given"
    return text


def _initializer(made: Any) -> Callable[..., None]:
    """Make the `__init__` of a class."""
    positional: list[str] = []
    names: list[str] = []
    defaults: dict[str, Any] = {}
    factories: dict[str, Callable[[], Any]] = {}
    for name, default, kw_only in _described(made):
        names.append(name)
        if isinstance(default, Field):
            options = cast("Field[Any]", default)
            if options.kw_only is not MISSING:
                kw_only = options.kw_only
            if options.default_factory is not MISSING:
                factories[name] = options.default_factory
            default = options.default
        if default is not MISSING:
            defaults[name] = default
        if not kw_only:
            positional.append(name)
    expected = set(names)

    def initialize(self: Any, /, *values: Any, **given: Any) -> None:
        by_place = dict(zip(positional, values, strict=False))
        complete = {**defaults, **by_place, **given}
        for name, make in factories.items():
            if name not in complete:
                complete[name] = make()
        if (
            complete.keys() != expected
            or len(by_place) < len(values)
            or by_place.keys() & given
        ):
            raise TypeError(_misfit(made, names, complete.keys()))
        for name, value in complete.items():
            object.__setattr__(self, name, value)

    return initialize


def _described(made: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield the name, the default or `field(…)`, and `kw_only` of each field.

    Inherited fields come first, also if the class defines them anew.
    """
    found: dict[str, tuple[str, Any, bool]] = {}
    for base in reversed(made.__mro__):
        draft: _Draft | None = base.__dict__.get(_DRAFT)
        if draft is not None:
            for name in draft.names:
                default = draft.defaults.get(name, MISSING)
                found[name] = (name, default, draft.kw_only)
    yield from found.values()


def _representation(made: type[Any]) -> Callable[[Any], str]:
    names = [each.name for each in fields(made) if each.repr]

    def represent(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{made.__qualname__}({values})"

    return represent


def _equality(made: type[Any]) -> Callable[[Any, object], bool]:
    names = [each.name for each in fields(made) if each.compare]

    def equals(self: Any, other: object) -> bool:
        if type(other) is not made:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in names)

    return equals


def _hashing(made: type[Any]) -> Callable[[Any], int]:
    names = [each.name for each in fields(made) if each.compare]

    def hash_value(self: Any) -> int:
        return hash(tuple(getattr(self, name) for name in names))

    return hash_value


def _refuse_to_set(
    _self: Any,
    name: str,
    _value: object,
) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_MADE_BY_DATACLASS: Final = (
    "__dataclass_fields__",
    "__dataclass_params__",
    "__match_args__",
)
_LATE: Final = {
    "__init__": _initialize,
    "__repr__": _represent,
    "__eq__": _equals,
    "__hash__": _hash,
    "__replace__": replace,
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__signature__": _Signature(),
    **{name: _LateAttribute(name) for name in _MADE_BY_DATACLASS},
}
"""The members of every `frozen` class until it is complete."""
