"""The values of `approvals_reviewer`: the user, and the reviewers of extensions."""

from typing import Final

from codex_py.errors import ConfigError, nearest
from codex_py.registry import (
    REVIEWERS,
    EntryPoint,
    find,
    installed_names,
    own_points,
)

USER: Final = "user"
_KEY: Final = ("approvals_reviewer",)


def reviewer_point(name: str | None) -> EntryPoint | None:
    """Return the entry point of a reviewer. None if the user decides.

    Args:
        name: the setting; None if it is not set.

    Raises:
        ConfigError: there is no such reviewer, or several packages have it.
    """
    if name is None or name == USER:
        return None
    point = find(REVIEWERS, name)
    if point is not None:
        return point
    own = [each.name for each in own_points(REVIEWERS)]
    text = f"no extension has a reviewer {name!r}"
    near = nearest(name, [USER, *own, *installed_names(REVIEWERS)])
    if near is not None:
        text += f"; did you mean {near!r}?"
    raise ConfigError(text, key=_KEY)
