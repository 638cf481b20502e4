"""Values of options that extensions add to, such as those of `--fail-on`.

`apply` parses a command line without them, and starts sooner without the registry.
"""

from collections.abc import Sequence

from codex_py.command_line.parser import OneOf
from codex_py.registry import find, installed_names, own_points


class OneOfExtensions(OneOf):
    """A `OneOf` whose values extensions add to.

    Args:
        group: the group of entry points whose names are values, too.
    """

    def __init__(self, group: str, *allowed: str) -> None:
        super().__init__(*allowed)
        self._group = group

    @property
    def allowed(self) -> Sequence[str]:
        """The values that messages and completion list, those of installed packages last."""
        own = [point.name for point in own_points(self._group)]
        return [*self._values, *own, *installed_names(self._group)]

    def __call__(self, value: str) -> str:
        # The metadata of packages, which takes 20 ms, is read only for a value that we do not have.
        if value in self._values or find(self._group, value) is not None:
            return value
        return super().__call__(value)
