"""Guards a third-party extension.

The errors and the wrong results of its functions are reported with the name of the extension and of
the field.
"""

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
)
from functools import partial
from types import TracebackType
from typing import Any, Final, cast

from codex_py.config.check import KeyPath
from codex_py.errors import CodexError, ConfigError, single_error
from codex_py.protocol.events import StopOverridden
from codex_py.protocol.extension import Extension, Feature, OfferedTool, Thread
from codex_py.protocol.prompts import Note

_Check = Callable[[Any], str | None]
"""Checks a value. Returns None if the value is right, else words such as `a Note or None` for what
it should be."""


class ExtensionBug(Exception):
    """Raised for a function of an extension that fails or returns a wrong value.

    The text is a clause, and names the extension. A `CodexError` is no bug: it is passed on.
    """

    def __repr__(self) -> str:
        return str(self)


class GuardedFeature:
    """A feature whose mistakes are reported with its name.

    `isinstance` sees the class of the feature itself.
    """

    def __init__(
        self,
        feature: Feature,
        name: str,
        key: KeyPath,
    ) -> None:
        """Guard a feature.

        Args:
            name: the name of the extension, for users.
            key: the key of its table in the configuration.
        """
        self._feature = feature
        self._guard = _Guard(name, key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feature, name)

    @property
    def __class__(self) -> type[Any]:  # pyright: ignore[reportIncompatibleMethodOverride] - `isinstance` asks it
        return type(self._feature)

    def __call__(self, thread: Thread) -> Extension:
        """Raises a `ConfigError` if the feature fails or does not return an `Extension`."""
        with self._guard.opening("its feature"):
            made = self._feature(thread)
            extension = self._guard.checked("its feature", made, _is_extension)
        return self._guard.guarded(extension)


class _Guard:
    """Wraps the functions of one extension. For the arguments, see `GuardedFeature`."""

    def __init__(self, name: str, key: KeyPath) -> None:
        self._name = name
        self._key = key

    @contextmanager
    def opening(self, what: str) -> Generator[None]:
        """Report a mistake as a `ConfigError` that names the extension.

        Use it while no turn runs.
        """
        try:
            with self._naming(what):
                yield
        except ExtensionBug as bug:
            raise ConfigError(str(bug), key=self._key) from bug.__cause__

    @contextmanager
    def _naming(self, what: str) -> Generator[None]:
        """Report a failure as an `ExtensionBug`. `what`: the field, for the message."""
        try:
            yield
        except ExtensionBug:
            raise
        except Exception as error:
            if isinstance(single_error(error), CodexError):
                raise
            text = f"{self._name} failed in {what}: {error!r}"
            raise ExtensionBug(text) from error

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
        if inspect.iscoroutine(value):
            # Nothing will await this coroutine.
            value.close()
        found = "None" if value is None else type(value).__name__
        raise ExtensionBug(f"{self._name}: {what} returned {found}, not {wanted}")

    def guarded(self, given: Extension) -> Extension:
        """The extension with each of its functions wrapped."""
        return Extension(
            tools=given.tools,
            find_tool=self._plain("find_tool", given, _is_function),
            wrap_model=self._wrap_model(given),
            recover=self._awaited("recover", given, _is_anything),
            wrap_dispatch=self._plain("wrap_dispatch", given, _is_function),
            wrap_approver=self._plain("wrap_approver", given, _is_approver),
            context=self._plain("context", given, _is_notes),
            before_prompt=self._awaited("before_prompt", given, _is_notes_or_none),
            before_request=self._awaited("before_request", given, _is_notes_or_none),
            before_stop=self._awaited("before_stop", given, _is_stop),
            max_rounds=given.max_rounds,
            around_turn=self._around("around_turn", given),
            around_compaction=self._around("around_compaction", given),
            around_session=self._around("around_session", given),
            turn_facts=self._plain("turn_facts", given, _is_facts),
            loaded=self._plain("loaded", given, _is_anything),
            sink=self._plain("sink", given, _is_anything),
        )

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
            with self._naming(what):
                return self.checked(what, function(*arguments), check)

        return call

    def _wrap_model(self, given: Extension) -> Any:
        # The session calls this function when it is made, and not within a turn.
        wrap = self._plain("wrap_model", given, _is_function)

        def call(model: Any) -> Any:
            with self.opening("`wrap_model`"):
                return wrap(model)

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
            with self._naming(what):
                answer = function(*arguments)
                if not inspect.isawaitable(answer):
                    raise ExtensionBug(
                        f"{self._name}: {what} must be an `async def`;"
                        f" it returned {type(answer).__name__}"
                    )
                return self.checked(what, await answer, check)

        return call

    def _around(self, field: str, given: Extension) -> Any:
        """Wrap a function that returns an async context manager."""
        enter = self._plain(field, given, _is_context)
        is_outside_turns = field == "around_session"
        naming = self.opening if is_outside_turns else self._naming

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
        # The context has let the error through, which is not its own.
        assert error is not None
        raise error


def _is_anything(_: Any) -> str | None:
    return None


def _is_extension(value: Any) -> str | None:
    if not isinstance(value, Extension):
        return "an `Extension`"
    if not _is_list_of(OfferedTool, value.tools):
        return "an `Extension` whose `tools` are a list of `OfferedTool`"
    if not isinstance(cast("object", value.max_rounds), int):
        return "an `Extension` whose `max_rounds` is an integer"
    for name in _FUNCTIONS:
        if not callable(getattr(value, name)):
            return f"an `Extension` whose `{name}` is a function"
    return None


def _is_function(value: Any) -> str | None:
    if callable(value) and not inspect.iscoroutine(value):
        return None
    return "a function"


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
