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
    """The arguments of a call.

    The fields are numbered: a parameter may have a name that pydantic does not allow. Its name is
    the alias of the field.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def model_validate_json(
        cls, json_data: str | bytes | bytearray, **options: Any
    ) -> Self:
        """Parse the arguments. Raises a `WrongValues`: its text is shorter than pydantic's."""
        try:
            return super().model_validate_json(json_data, **options)
        except ValidationError as error:
            problems = error.errors(include_url=False)
            raise WrongValues([_wrong_value(each) for each in problems]) from error

    def given(self) -> dict[str, Any]:
        """The arguments that the model gave, by the names of the parameters, in their order."""
        given: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            if name in self.model_fields_set:
                given[str(field.alias)] = getattr(self, name)
        return given


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
    descriptions = about or {}
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        annotation = parameter.annotation
        if annotation is Parameter.empty:
            annotation = Any
        if parameter.default is Parameter.empty:
            default = ...
        else:
            default = parameter.default
            if lenient:
                annotation = Optional[annotation]  # noqa: UP045
        field = Field(
            default=default,
            alias=parameter.name,
            description=descriptions.get(parameter.name),
        )
        fields[f"argument_{number}"] = (annotation, field)
    return create_model(name, __base__=FunctionArguments, **fields)


def takes_none(annotation: Any) -> bool:
    """True if the annotation of a parameter allows None."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if annotation in (Any, None, Parameter.empty):
        return True
    return NoneType in get_args(annotation)


def arguments_schema(
    name: str, parameters: Iterable[Parameter], about: Mapping[str, str]
) -> dict[str, Any]:
    """The JSON Schema of the arguments of a function.

    Raises:
        TypeError: pydantic cannot check or describe a type.
    """
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
