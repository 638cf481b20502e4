"""Guards a third-party extension.

The errors and the wrong results of its functions are reported with the name of the extension and of
the field.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
)
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Final, cast

from codex_py.app.inner_parts import (
    Events,
    InnerApprover,
    InnerStream,
    ReviewedApprover,
    is_of_others,
    of_others,
)
from codex_py.app.turn_facts import facts_problem
from codex_py.config.check import KeyPath
from codex_py.errors import CodexError, ConfigError, ToolError, single_error
from codex_py.protocol.approval import Review, ReviewDecision
from codex_py.protocol.dispatch import is_cancelled
from codex_py.protocol.events import StopOverridden
from codex_py.protocol.extension import Extension, Feature, OfferedTool, Thread
from codex_py.protocol.prompts import Note
from codex_py.protocol.tools import ToolOutput

_Check = Callable[[Any], str | None]
"""Checks a value. Returns None if the value is right, else words such as `a Note or None` for what
it should be."""


class ExtensionBug(Exception):
    """Raised for a function of an extension that fails or returns a wrong value.

    The text is a clause, and names the extension. A `CodexError` is no bug: it is passed on.
    """

    def __repr__(self) -> str:
        return str(self)


class WrongResult(ExtensionBug, TypeError):
    """A function of an extension returned a value of a wrong type."""


class GuardedFeature:
    """A feature whose mistakes are reported with its name.

    `isinstance` sees the class of the feature itself.
    """

    _feature: Feature
    _guard: "Guard"

    def __init__(
        self,
        feature: Feature,
        name: str,
        key: KeyPath = (),
        *,
        keeps_errors: bool = False,
    ) -> None:
        """Guard a feature.

        Args:
            name: the name of the extension, for users.
            key: the key of its table in the configuration; empty if it has none.
            keeps_errors: do not replace the exceptions of the extension, but add its name to them
                as a note. The caller who passed the feature may handle them.
        """
        own = self.__dict__
        own["_feature"] = feature
        own["_guard"] = Guard(name, key, keeps_errors=keeps_errors)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feature, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._feature, name, value)

    @property
    def __class__(self) -> type[Any]:  # pyright: ignore[reportIncompatibleMethodOverride] - `isinstance` asks it
        return type(self._feature)

    def for_child(self, setup: Any) -> Feature:
        """Return the feature for a child session: its own one, or the same one."""
        make: Any = getattr(self._feature, "for_child", None)
        if make is None:
            return self
        guard = self._guard
        with guard.opening("`for_child`"):
            feature = guard.checked("`for_child`", make(setup), _is_function)
        return GuardedFeature(
            feature, guard.name, guard.key, keeps_errors=guard.keeps_errors
        )

    def __call__(self, thread: Thread) -> Extension:
        """Make the extension, and wrap its functions.

        Raises a `ConfigError`, or the error of a caller's feature, if there is no `Extension`.
        """
        guard = self._guard
        with guard.opening("its feature"):
            made: Any = self._feature(thread)
            if guard.keeps_errors and not isinstance(made, Extension):
                # The session refuses it, as it refuses a feature that is not a function.
                _close_coroutine(made)
                return made
            extension = guard.checked("its feature", made, _is_extension)
        return guard.guarded(extension)


def guarded_feature(feature: Feature) -> Feature:
    """Guard a feature that a caller gives. Its name is that of the function, or of the class.

    What is no function is returned unchanged: the session refuses it.
    """
    if not callable(feature):
        return feature
    function: Any = feature
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return GuardedFeature(feature, f"the extension `{name}`", keeps_errors=True)


class Guard:
    """Wraps the functions of one extension. For the arguments, see `GuardedFeature`."""

    def __init__(self, name: str, key: KeyPath, *, keeps_errors: bool) -> None:
        self.name = name
        self.key = key
        self.keeps_errors = keeps_errors

    @contextmanager
    def opening(self, what: str) -> Generator[None]:
        """Report a mistake while no turn runs.

        The mistake of an installed extension is a `ConfigError`.
        """
        try:
            with self.naming(what):
                yield
        except ExtensionBug as bug:
            if self.keeps_errors:
                raise
            raise ConfigError(str(bug), key=self.key) from bug.__cause__

    @contextmanager
    def naming(
        self, what: str, allowed: tuple[type[BaseException], ...] = ()
    ) -> Generator[None]:
        """Report a failure as an `ExtensionBug`, or add a note to it.

        Args:
            what: the field, for the message.
            allowed: further exceptions that are no bugs.
        """
        failed = f"{self.name} failed in {what}"
        try:
            yield
        except (ExtensionBug, GeneratorExit):
            raise
        except asyncio.CancelledError as error:
            if is_cancelled() or is_of_others(error):
                raise
            # Nobody has cancelled the turn. The extension awaited something that was cancelled.
            raise ExtensionBug(f"{failed}: {error!r}") from error
        except BaseException as error:
            cause = single_error(error)
            if isinstance(cause, (CodexError, *allowed)) or is_of_others(cause):
                raise
            if self.keeps_errors or not isinstance(error, Exception):
                _add_note(cause, failed)
                raise
            raise ExtensionBug(f"{failed}: {error!r}") from error

    def checked(
        self,
        what: str,
        value: Any,
        check: _Check,
    ) -> Any:
        """Return the value that a field returned.

        Raises an `ExtensionBug` if the value is wrong.
        """
        wanted = check(value)
        if wanted is None:
            return value
        _close_coroutine(value)
        found = "None" if value is None else type(value).__name__
        raise WrongResult(f"{self.name}: {what} returned {found}, not {wanted}")

    def guarded(self, given: Extension) -> Extension:
        """Return the extension with all functions wrapped that it has."""
        wrapped: dict[str, Any] = {}
        for field, wrap in self._wrappers().items():
            is_left_out = getattr(given, field) is getattr(_EMPTY, field)
            if not is_left_out:
                wrapped[field] = wrap(field, given)
        return replace(given, **wrapped)

    def _wrappers(self) -> Mapping[str, Callable[[str, Extension], Any]]:
        """Return the way to wrap each function, by its field."""
        return {
            "find_tool": self._find_tool,
            "wrap_model": self._wrap_model,
            "recover": partial(self._awaited, check=_is_anything),
            "wrap_dispatch": self._wrap_dispatch,
            "wrap_approver": self._wrap_approver,
            "context": partial(self._plain, check=_is_notes),
            "before_prompt": partial(self._awaited, check=_is_notes_or_none),
            "before_request": partial(self._awaited, check=_is_notes_or_none),
            "before_stop": partial(self._awaited, check=_is_stop),
            "around_turn": self._around,
            "around_compaction": self._around,
            "around_session": self._around,
            "turn_facts": self._turn_facts,
            "loaded": partial(self._plain, check=_needs_no_await),
            "sink": partial(self._plain, check=_needs_no_await),
        }

    def _plain(
        self,
        field: str,
        given: Extension,
        check: _Check,
    ) -> Any:
        """Wrap a plain function."""
        function = getattr(given, field)
        what = f"`{field}`"

        def call(*arguments: Any) -> Any:
            with self.naming(what):
                return self.checked(what, function(*arguments), check)

        return call

    def _turn_facts(self, field: str, given: Extension) -> Any:
        tell = self._plain(field, given, _is_facts)

        def call() -> Any:
            facts = tell()
            problem = facts_problem(facts)
            if problem is not None:
                text = f"{self.name} returned bad `{field}`: {problem}"
                raise CodexError(text, code="extension")
            return facts

        return call

    def _find_tool(self, field: str, given: Extension) -> Any:
        make = self._plain(field, given, _is_function)
        what = f"the finder of `{field}`"

        def call() -> Any:
            find = make()

            def found(name: str) -> Any:
                # The call fails with these, see `Dispatch`.
                with self.naming(what, (ToolError, OSError)):
                    return self.checked(what, find(name), _is_tool_or_none)

            return found

        return call

    def _wrap_model(self, field: str, given: Extension) -> Any:
        # The session calls this function when it is made, and not within a turn.
        wrap = self._plain(field, given, _is_function)
        what = f"the stream of `{field}`"
        naming = partial(self.naming, what, (StopAsyncIteration,))

        def call(model: Any) -> Any:
            inner = partial(InnerStream, model)
            with self.opening(f"`{field}`"):
                stream = wrap(inner)
            if stream is inner:
                return model

            def make(prompt: Any) -> Any:
                return self.checked(what, stream(prompt), _is_context)

            def guarded(prompt: Any) -> Any:
                return _GuardedStream(partial(make, prompt), naming)

            return guarded

        return call

    def _wrap_dispatch(self, field: str, given: Extension) -> Any:
        wrap = self._plain(field, given, _is_function)
        what = f"the function of `{field}`"

        def call(dispatch: Any) -> Any:
            async def inner(use: Any) -> Any:
                return await of_others(dispatch(use))

            run = wrap(inner)
            if run is inner:
                return dispatch

            async def guarded(use: Any) -> Any:
                with self.naming(what, (ToolError, OSError)):
                    return await self._answer(what, run(use), _is_output)

            return guarded

        return call

    def _wrap_approver(self, field: str, given: Extension) -> Any:
        wrap = self._plain(field, given, _is_approver)
        what = f"the approver of `{field}`"

        def call(approver: Any) -> Any:
            inner = InnerApprover(approver)
            wrapped = wrap(inner)
            if wrapped is inner:
                return approver

            async def review(request: Any) -> Any:
                with self.naming(what, (ToolError,)):
                    return await self._answer(what, wrapped.review(request), _is_review)

            return ReviewedApprover(wrapped, review)

        return call

    def _awaited(
        self,
        field: str,
        given: Extension,
        check: _Check,
    ) -> Any:
        """Wrap an async function."""
        function = getattr(given, field)
        what = f"`{field}`"

        async def call(*arguments: Any) -> Any:
            with self.naming(what):
                return await self._answer(what, function(*arguments), check)

        return call

    async def _answer(self, what: str, answer: Any, check: _Check) -> Any:
        """Await the result of an async function, and check it."""
        if not inspect.isawaitable(answer):
            raise WrongResult(
                f"{self.name}: {what} must be an `async def`;"
                f" it returned {type(answer).__name__}"
            )
        return self.checked(what, await answer, check)

    def _around(self, field: str, given: Extension) -> Any:
        """Wrap a function that returns an async context manager."""
        enter = self._plain(field, given, _is_context)
        is_outside_turns = field == "around_session"
        naming = self.opening if is_outside_turns else self.naming

        def call(*arguments: Any) -> AbstractAsyncContextManager[object]:
            return _Around(partial(enter, *arguments), partial(naming, f"`{field}`"))

        return call


class _Around(AbstractAsyncContextManager[object]):
    """A context of an extension. Errors of others within the context pass through unchanged."""

    def __init__(
        self,
        make: Callable[[], AbstractAsyncContextManager[object]],
        naming: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._make = make
        self._naming = naming

    async def __aenter__(self) -> object:
        with self._naming():
            self._context = self._make()
            return await self._context.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        with self._naming():
            try:
                return await self._context.__aexit__(kind, error, trace)
            except BaseException as raised:
                if raised is not error:
                    raise
        # Here the context has raised the error of its block again. That is no mistake of the
        # extension, so the error passes outside of `naming`.
        assert error is not None
        raise error


class _GuardedStream(_Around):
    """A response of an extension's wrapper of models, whose events are guarded too."""

    async def __aenter__(self) -> object:
        events: Any = await super().__aenter__()
        with self._naming():
            return Events(events, self._next)

    async def _next(self, event: Awaitable[Any]) -> Any:
        with self._naming():
            return await event


def _close_coroutine(value: Any) -> None:
    """Close the result of an `async def`, which nothing will await."""
    if inspect.iscoroutine(value):
        value.close()


def _add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, once: an extension may raise the same one again."""
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _is_anything(_: Any) -> str | None:
    return None


def _needs_no_await(value: Any) -> str | None:
    """Check the result of a function that is called for its effect: nothing awaits the result."""
    if inspect.isawaitable(value):
        return "None: it must be no `async def`"
    return None


def _is_extension(value: Any) -> str | None:
    if not isinstance(value, Extension):
        return "an `Extension`"
    if not _is_list_of(OfferedTool, value.tools):
        return "an `Extension` whose `tools` are a list of `OfferedTool`"
    if not isinstance(cast("object", value.max_rounds), int):
        return "an `Extension` whose `max_rounds` is an integer"
    for name in _FUNCTIONS:
        function = getattr(value, name)
        if not callable(function):
            return f"an `Extension` whose `{name}` is a function"
        if name in _NEVER_AWAITED and _is_async(function):
            return f"an `Extension` whose `{name}` is a function, and no `async def`"
    return None


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


def _is_function(value: Any) -> str | None:
    if callable(value) and not inspect.iscoroutine(value):
        return None
    return "a function"


def _is_tool_or_none(value: Any) -> str | None:
    if value is None:
        return None
    if hasattr(value, "run") and hasattr(value, "params"):
        return None
    return "a `Tool` or None"


def _is_output(value: Any) -> str | None:
    if isinstance(value, ToolOutput):
        return None
    return "a `ToolOutput`"


def _is_review(value: Any) -> str | None:
    if isinstance(value, bool | ReviewDecision | Review):
        return None
    return "a `Review`"


def _is_approver(value: Any) -> str | None:
    if hasattr(value, "review"):
        return None
    return "an `Approver`"


def _is_context(value: Any) -> str | None:
    if hasattr(value, "__aenter__") and hasattr(value, "__aexit__"):
        return None
    return "an async context manager"


def _is_facts(value: Any) -> str | None:
    if isinstance(value, Mapping):
        return None
    return "a mapping"


def _is_notes(value: Any) -> str | None:
    if _is_list_of(Note, value):
        return None
    return "a list of `Note`"


def _is_list_of(kind: type[Any], value: Any) -> bool:
    if not isinstance(value, Sequence):
        return False
    return all(isinstance(each, kind) for each in cast("Sequence[Any]", value))


def _is_notes_or_none(value: Any) -> str | None:
    if value is None:
        return None
    return _is_notes(value)


def _is_stop(value: Any) -> str | None:
    if value is None or isinstance(value, Note | StopOverridden):
        return None
    return "a `Note` or None"


_EMPTY: Final = Extension()
_NEVER_AWAITED: Final = ("loaded", "sink")
"""The functions that are called for their effect. They must not be `async def`."""
_FUNCTIONS: Final = (
    "find_tool",
    "wrap_model",
    "recover",
    "wrap_dispatch",
    "wrap_approver",
    "context",
    "before_prompt",
    "before_request",
    "before_stop",
    "around_turn",
    "around_compaction",
    "around_session",
    "turn_facts",
    "loaded",
    "sink",
)
"""The fields of an `Extension` that are functions."""
