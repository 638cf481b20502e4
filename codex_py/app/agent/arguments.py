"""Checks the arguments of a new `Agent`. A mistake is a `TypeError` of one sentence."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import httpx

_Check: TypeAlias = Callable[[Any], str | None]
"""Checks the value of an argument. Returns None if it is right.

Otherwise it returns the rest of a sentence that begins with the argument's name.
"""


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Check the arguments of an `Agent`, given by their names.

    Raises a `TypeError` that names the first argument of a wrong type.
    """
    for name, value in arguments.items():
        if value is None and name in _MAY_BE_NONE:
            continue
        problem = _CHECKS[name](value)
        if problem is not None:
            raise TypeError(f"`{name}` {problem}")


def check_images(images: Any) -> None:
    """Check the images of a prompt. Raises a `TypeError` if they are no sequence of paths."""
    if isinstance(images, str | os.PathLike):
        path = os.fspath(cast("os.PathLike[Any]", images))
        raise TypeError(f"`images` is a sequence of files: images=[{path!r}]")
    if not isinstance(images, Sequence) or isinstance(images, bytes):
        raise TypeError(f"`images` is a sequence of files, not {_type(images)}")
    for image in cast("Sequence[Any]", images):
        if not _is_path(image):
            raise TypeError(
                f"`images` has {_type(image)}, but an image is the path of a file, as text or a"
                " `Path`"
            )


def _model(value: Any) -> str | None:
    if isinstance(value, str | httpx.AsyncBaseTransport):
        return None
    return f"is a name, such as 'gpt-5.5', or a transport of httpx, not {value!r}"


def _folder(value: Any) -> str | None:
    if _is_path(value):
        return None
    return f"is the path of a folder, as text or a `Path`, not {value!r}"


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return None
    return f"is a text, not {_type(value)}"


def _session(value: Any) -> str | None:
    if isinstance(value, str):
        return None
    return f"is the id or the name of a conversation, as text, not {value!r}"


def _flag(value: Any) -> str | None:
    if isinstance(value, bool):
        return None
    return f"is True or False, not {value!r}"


def _functions(value: Any) -> str | None:
    if not _is_series(value):
        return f"is a sequence of functions: tools=[function], not {_type(value)}"
    if None in value:
        return "has None, which is no function"
    return None


def _features(value: Any) -> str | None:
    if not _is_series(value):
        return f"is a sequence of features: extensions=[feature], not {_type(value)}"
    for each in value:
        if not callable(each):
            return (
                f"has {each!r}, which is no feature: a feature is a function that takes"
                " the session and returns an `Extension`"
            )
    return None


def _settings(value: Any) -> str | None:
    if not isinstance(value, Mapping):
        return f"is a mapping of settings, not {value!r}"
    for key in _keys(value):
        if not isinstance(key, str):
            return f"has the key {key!r}, but the name of a setting is a text"
    return None


def _keys(value: Any) -> Iterator[object]:
    """Yield the keys of all mappings in a value, at any depth."""
    inner: Iterable[Any] = ()
    if isinstance(value, Mapping):
        table = cast("Mapping[Any, Any]", value)
        yield from table
        inner = table.values()
    elif isinstance(value, list | tuple):
        inner = cast("Iterable[Any]", value)
    for each in inner:
        yield from _keys(each)


def _variables(value: Any) -> str | None:
    """Check the variables of an environment. Never quotes a value: it may be secret."""
    if not isinstance(value, Mapping):
        return f"is a mapping of names to texts, not {_type(value)}"
    for name, text in cast("Mapping[Any, Any]", value).items():
        if not isinstance(name, str):
            return f"has the name {name!r}, but the name of a variable is a text"
        if not name or "=" in name or "\0" in name:
            return f"has {name!r}, which cannot be the name of a variable"
        if not isinstance(text, str):
            return (
                f"has {_type(text)} as {name!r}, but the value of a variable is a text"
            )
        if "\0" in text:
            return f"has a null character in {name!r}"
    return None


def _is_path(value: Any) -> bool:
    path: object = value
    if isinstance(value, os.PathLike):
        path = os.fspath(cast("os.PathLike[Any]", value))
    return isinstance(path, str)


def _is_series(value: Any) -> bool:
    is_one_value = isinstance(value, str | bytes | Mapping) or callable(value)
    return isinstance(value, Iterable) and not is_one_value


def _type(value: object) -> str:
    """Describe a value by its type: the value may be long, or secret."""
    if value is None:
        return "None"
    return f"a value of the type {type(value).__name__}"


_CHECKS: Final[Mapping[str, _Check]] = {
    "model": _model,
    "cwd": _folder,
    "instructions": _text,
    "tools": _functions,
    "extensions": _features,
    "config": _settings,
    "home": _folder,
    "environment": _variables,
    "ephemeral": _flag,
    "resume": _session,
}
_MAY_BE_NONE: Final = (
    "model",
    "instructions",
    "config",
    "home",
    "environment",
    "resume",
)
