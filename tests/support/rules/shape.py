"""What the rules of all APIs are written with."""

import re
from typing import Any, TypeAlias, cast

JsonObject: TypeAlias = dict[str, Any]

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def require(holds: object, problem: str) -> None:
    """Raise a `ValueError` with this text if something does not hold."""
    if not holds:
        raise ValueError(problem)


def objects(value: object, where: str) -> list[JsonObject]:
    """The objects of a list; a `ValueError` if this is no list of objects."""
    entries = cast("list[object]", value) if isinstance(value, list) else [None]
    require(
        all(isinstance(entry, dict) for entry in entries),
        f"{where} is no list of objects",
    )
    return cast("list[JsonObject]", entries)


def check_tool_name(name: object, where: str) -> None:
    is_legal = isinstance(name, str) and _TOOL_NAME.fullmatch(name)
    require(is_legal, f"{where}: {name!r} is no legal name of a tool")


def duplicates(values: list[Any]) -> list[Any]:
    return [value for place, value in enumerate(values) if value in values[:place]]
