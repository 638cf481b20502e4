"""Makes a JSON Schema for a final answer from a type.

LIGHT: a caller with a pydantic model has already imported pydantic.
"""

from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple, cast

from codex_py.protocol.bugs import text_of
from codex_py.protocol.calls import shortened

_MAX_REASON_CHARACTERS = 300
_MAX_NAME_CHARACTERS = 100
_FIELD = "response"
"""The field with an answer that is no JSON object, which strict mode demands."""
_FUNCTIONS = (FunctionType, MethodType, partial)
"""pydantic would call these with the answer."""


class WrongAnswer(ValueError):
    """An answer does not fit its type; the text is a sentence that says why."""


class ModelSchema(dict[str, Any]):
    """The JSON Schema of a type in the form that OpenAI's strict mode demands: it describes an
    object, every property is required, and no others are allowed."""

    def __init__(self, given: object) -> None:
        """Make the schema.

        Args:
            given: a pydantic model, or any other type of which pydantic can make a schema.

        Raises:
            TypeError: it can make none.
        """
        if isinstance(given, (str, dict, *_FUNCTIONS)):
            # pydantic would evaluate a text, and take a dict for a schema of its own.
            raise TypeError(f"`output_type` must be a type, not {given!r}")
        self._reader = _reader_of(given)
        super().__init__(self._reader.schema)

    def parsed(self, text: str) -> Any:
        """Return an answer as a value of the type.

        A validator that fails on the answer refuses it too: pydantic passes on exceptions other
        than `ValueError` and `AssertionError`.

        Raises:
            WrongAnswer: it does not fit.
        """
        try:
            return self._reader.parsed(text)
        except Exception as error:
            reason = shortened(_reasons(error), _MAX_REASON_CHARACTERS)
            raise WrongAnswer(
                f"the final answer does not satisfy {self._reader.name}: {reason}"
            ) from error

    def violation(self, text: str) -> str | None:
        """Say in a sentence how an answer violates the type; None if it does not."""
        try:
            self.parsed(text)
        except WrongAnswer as error:
            return str(error)
        return None


class _Reader(NamedTuple):
    """A type, as pydantic handles it."""

    name: str
    schema: dict[str, Any]
    parsed: Callable[[str], Any]


def _reader_of(given: object) -> _Reader:
    import pydantic  # 60 ms

    name = _name_of(given)
    try:
        adapter: Any = pydantic.TypeAdapter(cast("Any", given))
        if adapter.core_schema["type"] == "generator":
            raise TypeError("its items are checked too late; use `list`")
        schema = _strict(_without_root_reference(adapter.json_schema()))
        if schema.get("type") == "object":
            return _Reader(name, schema, adapter.validate_json)
        fields: dict[str, Any] = {_FIELD: (given, ...)}
        wrapper = pydantic.create_model("Answer", **fields)
        schema = _strict(wrapper.model_json_schema())
    except Exception as error:
        # A type may have methods that make its schema, and these may raise anything.
        reason = text_of(error).partition("\n")[0]
        raise TypeError(
            f"`output_type` must be a type that pydantic knows, not {name}: {reason}"
        ) from error

    def unwrapped(text: str) -> Any:
        return getattr(wrapper.model_validate_json(text), _FIELD)

    return _Reader(name, schema, unwrapped)


def _name_of(given: object) -> str:
    """The name of a type, or its text, which is cut off if it is long."""
    try:
        name = given.__name__ if isinstance(given, type) else str(given)
    except Exception:  # noqa: BLE001 - the methods may be foreign, and the type nested too deeply
        name = type(given).__name__
    return shortened(name, _MAX_NAME_CHARACTERS)


def _without_root_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """Put the definition that a schema refers to in its place, as that of a recursive model."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    definitions = schema.get("$defs", {})
    own = definitions.get(reference.removeprefix("#/$defs/"), {})
    return {**own, "$defs": definitions}


def answer_schema(given: Any) -> Any:
    """Return the JSON Schema of a class; any other value is a schema already, and returned unchanged."""
    if isinstance(given, type):
        return ModelSchema(given)
    return given


def _reasons(error: Exception) -> str:
    """The reasons of a `ValidationError`, or the failure of a validator."""
    details: Callable[[], list[dict[str, Any]]] | None = getattr(error, "errors", None)
    if isinstance(error, ValueError) and details is not None:
        return "; ".join(map(_reason, details()))
    return f"a validator failed: {text_of(error, repr)}"


def _reason(detail: dict[str, Any]) -> str:
    place = ".".join(map(str, detail["loc"]))
    return f"at {place or '$'}: {detail['msg']}"


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    fields = cast("dict[str, Any]", schema)
    if "$ref" in fields:
        # Strict mode allows no other key beside `$ref`.
        return {"$ref": fields["$ref"]}
    strict: dict[str, Any] = {}
    for key, value in fields.items():
        if key in {"properties", "$defs"}:
            strict[key] = {name: _strict(each) for name, each in value.items()}
        elif key == "oneOf":
            # Strict mode has `anyOf` alone. The variants of a tagged union exclude each other.
            strict["anyOf"] = _strict(value)
        elif key not in {"default", "discriminator"}:
            strict[key] = _strict(value)
    if "properties" in strict:
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict
