"""Guards the wire of an installed package.

The errors and the wrong results of its functions are reported with the name of the wire and its entry
point. What it returns is checked before the session sees it. The wires of the program are not guarded.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from typing import Any, Final, cast, get_args

from codex_py.app.guarded_extension import Guard, WrongResult
from codex_py.config.check import KeyPath
from codex_py.errors import MalformedItem
from codex_py.model.client import HEADER_NAME
from codex_py.protocol.checked import WrongValue, WrongValues, read
from codex_py.protocol.items import ResponseItem, parse_item
from codex_py.protocol.json_fields import integer_field
from codex_py.protocol.messages import decode_json, encode_json
from codex_py.protocol.stream import (
    Completed,
    Decoder,
    OutputItemDone,
    Prompt,
    ResponseEvent,
    Usage,
    Wire,
)
from codex_py.registry import EntryPoint, failures_named, load, unusable

_EVENTS: Final = get_args(ResponseEvent)
_ITEMS: Final = get_args(ResponseItem)


def installed_wire(point: EntryPoint, key: KeyPath, **keywords: Any) -> Wire:
    """Make the wire of an entry point, and guard it.

    Args:
        key: the key of the configuration that asks for it.
        keywords: the arguments of its constructor.

    Raises:
        ConfigError: it cannot be loaded, its constructor fails, or what it makes is no wire.
    """
    make = load(point, "wire", key)
    if not callable(make):
        is_now = type(make).__name__
        reason = f"its entry point is a {is_now}, not a class"
        raise unusable(point, "wire", reason, key)
    names = ", ".join(f"`{name}`" for name in keywords)
    hint = f"; it is called with the keywords {names}"
    with failures_named(point, "wire", key, hint):
        wire: Any = make(**keywords)
        problem = _problem(wire)
    if problem is not None:
        raise unusable(point, "wire", problem, key)
    return GuardedWire(wire, f"the wire {point.name!r} ({point.value})", key)


def _problem(wire: Any) -> str | None:
    """Say what a wire lacks. None if it has all members of a `Wire`, and they look right."""
    kind = type(wire).__name__
    for name in ("path", "headers", "body", "decoder"):
        if not hasattr(wire, name):
            return f"its entry point returned {kind}, which has no `{name}`"
    for name in ("body", "decoder"):
        function = getattr(wire, name)
        if not callable(function):
            return f"`{name}` is {type(function).__name__}, not a function"
        if inspect.iscoroutinefunction(function):
            return f"`{name}` must be no `async def`"
    path: object = wire.path
    if not _is_path(path):
        return (
            f"`path` is {path!r}, not a text such as '/chat' that begins with a slash"
        )
    headers: object = wire.headers
    if not _are_headers(headers):
        return f"`headers` are {headers!r}, not a mapping of names to texts"
    return None


def _is_path(path: object) -> bool:
    """True if a path can be appended to an address: it is empty, or begins with a slash."""
    if not isinstance(path, str) or not path.isprintable():
        return False
    return not path or path.startswith("/")


def _are_headers(headers: object) -> bool:
    if not isinstance(headers, Mapping):
        return False
    pairs = cast("Mapping[object, object]", headers)
    return all(_is_header(name, text) for name, text in pairs.items())


def _is_header(name: object, text: object) -> bool:
    if not isinstance(name, str) or not isinstance(text, str):
        return False
    return re.fullmatch(HEADER_NAME, name) is not None and text.isprintable()


class GuardedWire:
    """A `Wire` whose mistakes are reported with its name."""

    def __init__(self, wire: Wire, name: str, key: KeyPath) -> None:
        self._wire = wire
        self._guard = Guard(name, key, keeps_errors=False)
        self.path = wire.path
        self.headers = wire.headers

    def body(self, prompt: Prompt) -> bytes:
        with self._guard.naming("`body`"):
            return self._guard.checked("`body`", self._wire.body(prompt), _is_bytes)

    def decoder(self, prompt: Prompt) -> Decoder:
        return _GuardedDecoder(partial(self._wire.decoder, prompt), self._guard)


class _GuardedDecoder:
    """A `Decoder` that reports the mistakes of another one, and checks its events."""

    def __init__(self, make: Callable[[], Decoder], guard: Guard) -> None:
        self._make = make
        self._guard = guard
        self._is_complete = False
        """True after `Completed`."""

    @cached_property
    def _decoder(self) -> Decoder:
        # The client asks for a decoder in advance, where an error could not end the turn. So it is
        # made when it is first used.
        with self._guard.naming("`decoder`"):
            return self._guard.checked("`decoder`", self._make(), _is_decoder)

    @property
    def finished(self) -> bool:
        decoder = self._decoder
        with self._guard.naming("`finished`"):
            return self._guard.checked("`finished`", decoder.finished, _is_bool)

    def feed(self, data: str, name: str = "message") -> Sequence[ResponseEvent]:
        decoder = self._decoder
        with self._guard.naming("`feed`"):
            return self._events("`feed`", decoder.feed(data, name))

    def end(self) -> Sequence[ResponseEvent]:
        decoder = self._decoder
        with self._guard.naming("`end`"):
            events = self._events("`end`", decoder.end())
        if not self._is_complete:
            raise WrongResult(
                f"{self._guard.name}: the answer ended without `Completed`, and `end` raised no"
                " `StreamError`"
            )
        return events

    def _events(self, what: str, returned: Any) -> Sequence[ResponseEvent]:
        """Check the events that a function returned.

        Raises:
            WrongResult: one is wrong, or comes after `Completed`.
        """
        given: Sequence[Any] = self._guard.checked(what, returned, _is_list)
        events: list[ResponseEvent] = []
        for each in given:
            if self._is_complete:
                raise WrongResult(
                    f"{self._guard.name}: {what} returned {type(each).__name__} after `Completed`"
                )
            try:
                event = _checked_event(each)
            except WrongValue as error:
                # The text names the field, and its value.
                raise WrongResult(
                    f"{self._guard.name}: {what} returned a wrong {_kind(each)}: {error}"
                ) from None
            self._is_complete = isinstance(event, Completed)
            events.append(event)
        return events


def _kind(event: Any) -> str:
    """Name the class of an event, or that of its item."""
    if isinstance(event, OutputItemDone):
        return type(event.item).__name__
    return type(event).__name__


def _checked_event(event: Any) -> ResponseEvent:
    """Return an event whose fields have the types that they should have.

    Raises:
        WrongValue: a field has another type, or the value is no event.
    """
    if not isinstance(event, _EVENTS):
        raise WrongValue(("event",), "it must be a `ResponseEvent`", repr(event))
    if isinstance(event, OutputItemDone):
        index = _of_type(int, event.output_index, "output_index")
        return replace(event, output_index=index, item=_checked_item(event.item))
    found = _of_type(type(event), asdict(event))
    if isinstance(found, Completed):
        _require_counts(found.usage)
    return found


def _of_type(kind: Any, value: Any, *path: str) -> Any:
    """Return a value as this type. Raises a `WrongValue` if it has another one."""
    found, mistakes = read(kind, value, path, exact=True)
    if mistakes:
        raise WrongValues([each.error() for each in mistakes])
    return found


def _checked_item(item: Any) -> ResponseItem:
    """Return an item as a session file would give it back. Raises a `WrongValue` if none would."""
    if not isinstance(item, _ITEMS):
        raise WrongValue(("item",), "it must be a `ResponseItem`", repr(item))
    given = asdict(item)
    source = given.pop("source")
    data = source or {name: value for name, value in given.items() if value is not None}
    try:
        return parse_item(decode_json(encode_json(data)))
    except MalformedItem as error:
        if isinstance(error.__cause__, WrongValue):
            raise error.__cause__ from error
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise WrongValue(("item",), f"it is no JSON: {error}", repr(item)) from error


def _require_counts(usage: Usage) -> None:
    """Raise a `WrongValue` for a negative or an impossible number of tokens."""
    counts = asdict(usage)
    for name, count in counts.items():
        if integer_field(counts, name) is None:
            raise WrongValue(("usage", name), "it must be a number of tokens", count)


def _is_bytes(value: Any) -> str | None:
    if isinstance(value, bytes):
        return None
    return "bytes"


def _is_bool(value: Any) -> str | None:
    if isinstance(value, bool):
        return None
    return "True or False"


def _is_decoder(value: Any) -> str | None:
    for name in ("feed", "end"):
        if not callable(getattr(value, name, None)):
            return f"a `Decoder`, which has a function `{name}`"
    if not hasattr(value, "finished"):
        return "a `Decoder`, which has `finished`"
    return None


def _is_list(value: Any) -> str | None:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return None
    return "a list of events"
