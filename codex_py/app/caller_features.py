"""Makes features of what the caller of `open_session` gives: extensions, and functions as tools."""

from collections.abc import Callable, Sequence
from typing import Any

from codex_py.app.features.functions import functions
from codex_py.app.guarded_extension import guarded_feature
from codex_py.protocol.extension import Feature


def guarded(extensions: Sequence[Feature]) -> Sequence[Feature]:
    """Wrap each extension, so that an error inside it is reported with its name."""
    return [guarded_feature(each) for each in extensions]


def offered(tools: Sequence[Callable[..., Any]]) -> Sequence[Feature]:
    """Return the features that offer these functions as tools; none for no functions.

    Raises a `TypeError` if a function cannot be a tool.
    """
    if not tools:
        return ()
    return [functions(tools)]
