"""Reads, checks and describes the arguments of a Python function with pydantic."""

import re
from collections.abc import Iterable, Mapping
from inspect import Parameter
from types import NoneType
from typing import Annotated, Any, ClassVar, Final, Optional, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import ErrorDetails

from codex_py.protocol.checked import REQUIRED, WrongValue, WrongValues, guess

_CHOICE: Final = re.compile("'([^']+)'")


class FunctionArguments(BaseModel):
    """The fields are named by number, so that a parameter may have any name; that is their alias."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def model_validate_json(
        cls, json_data: str | bytes | bytearray, **options: Any
    ) -> Self:
        """Parse the arguments. Raises a `WrongValues`, because the text of pydantic's own error is
        long."""
        try:
            return super().model_validate_json(json_data, **options)
        except ValidationError as error:
            raise WrongValues(
                [*map(_wrong_value, error.errors(include_url=False))]
            ) from error

    def given(self) -> dict[str, Any]:
        """The arguments that the model gave, by the names of the parameters, in their order."""
        fields = type(self).model_fields
        given = self.model_fields_set
        return {
            str(fields[name].alias): getattr(self, name)
            for name in fields
            if name in given
        }


def _wrong_value(problem: ErrorDetails) -> WrongValue:
    value = problem["input"]
    path = [*map(str, problem["loc"])]
    if problem["type"] == "missing":
        return WrongValue(path, REQUIRED)
    # pydantic gives the choices only as text.
    expected = problem.get("ctx", {}).get("expected", "")
    choices = _CHOICE.findall(str(expected))
    return WrongValue(path, problem["msg"] + guess(choices, value), value)


def arguments_model(
    name: str,
    parameters: Iterable[Parameter],
    about: Mapping[str, str] | None = None,
    *,
    lenient: bool = False,
) -> type[FunctionArguments]:
    """Make a model of the arguments of a function.

    Args:
        name: the name of the function.
        about: the description of each parameter from the docstring.
        lenient: accept null for parameters with a default: models write it for parameters that they
            leave out.

    Raises:
        PydanticUserError: pydantic cannot check a type.
    """
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        if parameter.annotation is Parameter.empty:
            annotation = Any
        else:
            annotation = parameter.annotation
        is_required = parameter.default is Parameter.empty
        field = Field(
            default=... if is_required else parameter.default,
            alias=parameter.name,
            description=(about or {}).get(parameter.name),
        )
        takes_null = lenient and not is_required
        if takes_null:
            annotation = Optional[annotation]  # noqa: UP045
        fields[f"argument_{number}"] = (annotation, field)
    return create_model(name, __base__=FunctionArguments, **fields)


def takes_none(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation in (Any, None, Parameter.empty) or NoneType in get_args(
        annotation
    )


def arguments_schema(
    name: str, parameters: Iterable[Parameter], about: Mapping[str, str]
) -> dict[str, Any]:
    """The JSON Schema of the arguments. Raises a `TypeError` if pydantic cannot check or describe a
    type."""
    try:
        model = arguments_model(name, parameters, about)
        schema = model.model_json_schema(schema_generator=_Untitled)
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        raise TypeError(
            f"the parameters of {name} cannot be described to a model: {reason}"
        ) from error
    del schema["title"]
    return schema


class _Untitled(GenerateJsonSchema):
    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "skipped-choice",
        "non-serializable-default",
    }

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """A title would only repeat the name of the field."""
        return False
