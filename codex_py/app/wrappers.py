"""The wrappers around a call, an approval and a request of a session, in their order."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from codex_py.app.session_tools import SessionTools
from codex_py.core.session import Session
from codex_py.model.client import HttpModelClient
from codex_py.protocol.dispatch import Approvals, Tool
from codex_py.protocol.frozen import frozen
from codex_py.tools.router import CallQueue, ToolRouter


@frozen
class Wrapper:
    """A function or a feature in a chain."""

    name: str
    """The name of the feature or of the function."""
    module: str
    what: str
    """A description in a sentence or two; empty if the author gives none."""


def call_wrappers(session: Session) -> Sequence[Wrapper]:
    """List the wrappers of a call of the model, from the first to the tool."""
    return [
        _described(SessionTools.dispatch),
        _described(ToolRouter.dispatch),
        _described(CallQueue.turn),
        _described(SessionTools.with_latest_settings),
        *_of_features(session, lambda extension: extension.wrap_dispatch),
        _described(Tool),
    ]


def approval_wrappers(session: Session) -> Sequence[Wrapper]:
    """List the wrappers of a request for an approval, from the tool to the one that decides."""
    return [
        _described(Approvals.ask),
        *_of_features(session, lambda extension: extension.wrap_approver),
    ]


def request_wrappers(session: Session) -> Sequence[Wrapper]:
    """List the wrappers of a request to the model, from the turn to the client that sends it."""
    return [
        *_of_features(session, lambda extension: extension.wrap_model),
        _described(HttpModelClient.stream),
    ]


def _of_features(
    session: Session,
    field: Callable[[Any], Callable[[Any], Any]],
) -> Iterator[Wrapper]:
    """Describe the features that wrap something.

    The text is that of the wrapper, or else that of the feature.

    Args:
        field: returns the wrapper of an extension, such as `wrap_model`.
    """
    for feature, extension in zip(session.features, session.extensions, strict=True):
        wrap = field(extension)
        inner = object()
        # A feature that wraps nothing returns its argument.
        if wrap(inner) is inner:
            continue
        described = _described(feature)
        text = _described(wrap).what
        if text:
            described = replace(described, what=text)
        yield described


def _described(part: object) -> Wrapper:
    """Describe a class, a function, or an object by its class."""
    while isinstance(part, partial):
        part = cast("partial[Any]", part).func
    is_named = inspect.isroutine(part) or inspect.isclass(part)
    named: Any = part if is_named else type(part)
    name = named.__qualname__.partition(".<locals>")[0]
    text = inspect.getdoc(named) or ""
    paragraph = text.partition("\n\n")[0]
    return Wrapper(name, named.__module__, " ".join(paragraph.split()))
