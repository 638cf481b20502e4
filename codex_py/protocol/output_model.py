"""Makes a JSON Schema for a final answer from a pydantic model.

LIGHT: a caller with a model has already imported pydantic.
"""

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeGuard, cast

from codex_py.protocol.bugs import text_of
from codex_py.protocol.calls import shortened

_MAX_REASON_CHARACTERS = 300


class PydanticModel(Protocol):
    """The methods of a `pydantic.BaseModel` class that are used here."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...
    @classmethod
    def model_validate_json(cls, json_data: str) -> Self: ...


class ModelSchema(dict[str, Any]):
    """The JSON Schema of a model in the form that OpenAI's strict mode demands: every property is
    required, and no others are allowed."""

    def __init__(self, model: object) -> None:
        """Make the schema. Raises a `TypeError` if `model` is not a pydantic model."""
        if not _is_model(model):
            raise TypeError(f"`output_type` must be a pydantic model, not {model!r}")
        super().__init__(_strict(model.model_json_schema()))
        self._model = model

    def violation(self, text: str) -> str | None:
        """Say in a sentence how an answer violates the model; None if it does not.

        A validator that fails on the answer refuses it too: pydantic passes on exceptions other
        than `ValueError` and `AssertionError`.
        """
        try:
            self._model.model_validate_json(text)
        except Exception as error:  # noqa: BLE001 - the validators are the caller's
            name = cast("type", self._model).__name__
            reason = shortened(_reasons(error), _MAX_REASON_CHARACTERS)
            return f"the final answer does not satisfy {name}: {reason}"
        return None


def answer_schema(given: Any) -> Any:
    """Return the JSON Schema of a pydantic model; any other value is a schema already, and returned
    unchanged."""
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


def _is_model(model: object) -> TypeGuard[type[PydanticModel]]:
    return isinstance(model, type) and hasattr(model, "model_validate_json")


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
        elif key != "default":
            strict[key] = _strict(value)
    if "properties" in strict:
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict
