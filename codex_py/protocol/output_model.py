"""A pydantic model as the schema of a final answer. LIGHT: whoever has a model has imported pydantic."""

from typing import Any, Protocol, Self, TypeGuard, cast

from codex_py.protocol.calls import shortened

_MAX_REASON_CHARACTERS = 300


class PydanticModel(Protocol):
    """A class made from `pydantic.BaseModel`, as far as it is used here."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...
    @classmethod
    def model_validate_json(cls, json_data: str) -> Self: ...


class ModelSchema(dict[str, Any]):
    """The JSON Schema of a model, as the strict mode of OpenAI demands it: every property is required, and there are no
    others."""

    def __init__(self, model: object) -> None:
        """Raises a `TypeError` if it is no pydantic model."""
        if not _is_model(model):
            raise TypeError(f"`output_type` must be a pydantic model, not {model!r}")
        super().__init__(_strict(model.model_json_schema()))
        self._model = model

    def violation(self, text: str) -> str | None:
        """One sentence that says how an answer breaks the model; None if it does not."""
        try:
            self._model.model_validate_json(text)
        except ValueError as error:
            details: list[dict[str, Any]] = cast("Any", error).errors()
            reasons = [
                f"at {'.'.join(map(str, each['loc'])) or '$'}: {each['msg']}"
                for each in details
            ]
            name = cast("type", self._model).__name__
            reason = shortened("; ".join(reasons), _MAX_REASON_CHARACTERS)
            return f"the final answer does not satisfy {name}: {reason}"
        return None


def answer_schema(given: Any) -> Any:
    """The JSON Schema that is meant: itself, or that of a pydantic model."""
    if isinstance(given, type):
        return ModelSchema(given)
    return given


def _is_model(model: object) -> TypeGuard[type[PydanticModel]]:
    return isinstance(model, type) and hasattr(model, "model_validate_json")


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    fields = cast("dict[str, Any]", schema)
    if "$ref" in fields:
        # It may have nothing beside it.
        return {"$ref": fields["$ref"]}
    strict: dict[str, Any] = {}
    for key, value in fields.items():
        if key in {"properties", "$defs"}:
            strict[key] = {name: _strict(each) for name, each in value.items()}
        elif key != "default":
            strict[key] = _strict(value)
    if "properties" in strict:
        strict |= {
            "required": list(strict["properties"]),
            "additionalProperties": False,
        }
    return strict
