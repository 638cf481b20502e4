"""The arguments of a Python function, as pydantic reads, checks and describes them."""

from collections.abc import Iterable, Mapping
from inspect import Parameter
from types import NoneType
from typing import Annotated, Any, Optional, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError


class FunctionArguments(BaseModel):
    """The fields are named by number, so that a parameter may have any name; that is their alias."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    def given(self) -> dict[str, Any]:
        """What the model gave, by the names of the parameters."""
        fields = type(self).model_fields
        return {str(fields[name].alias): getattr(self, name) for name in self.model_fields_set}


def arguments_model(
    name: str,
    parameters: Iterable[Parameter],
    about: Mapping[str, str] | None = None,
    *,
    lenient: bool = False,
) -> type[FunctionArguments]:
    """
    Args:
        name: of the function.
        about: what its docstring says of each parameter.
        lenient: take null for all that has a default: models write it for what they leave out.

    Raises:
        TypeError: pydantic cannot check a type.
    """
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(parameters):
        annotation = Any if parameter.annotation is Parameter.empty else parameter.annotation
        is_required = parameter.default is Parameter.empty
        field = Field(
            default=... if is_required else parameter.default,
            alias=parameter.name,
            description=(about or {}).get(parameter.name),
        )
        is_wider = lenient and not is_required
        fields[f"argument_{number}"] = (Optional[annotation] if is_wider else annotation, field)  # noqa: UP045
    try:
        return create_model(name, __base__=FunctionArguments, **fields)
    except PydanticUserError as error:
        raise _not_described(name, error) from error


def takes_none(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation in (Any, None, Parameter.empty) or NoneType in get_args(annotation)


def arguments_schema(
    name: str, parameters: Iterable[Parameter], about: Mapping[str, str]
) -> dict[str, Any]:
    """JSON Schema of the arguments, without titles.

    Raises:
        TypeError: pydantic cannot check or describe a type.
    """
    model = arguments_model(name, parameters, about)
    try:
        return _untitled(model.model_json_schema())
    except PydanticUserError as error:
        raise _not_described(name, error) from error


def _not_described(name: str, error: PydanticUserError) -> TypeError:
    reason = str(error).partition("\n")[0]
    return TypeError(f"the parameters of {name} cannot be described to a model: {reason}")


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the titles that pydantic makes of names. A member that is called `title` is a table, and stays."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if isinstance(value, dict) and key not in {"default", "const"}:
            value = _untitled(cast("dict[str, Any]", value))
        elif isinstance(value, list) and key in {"anyOf", "oneOf", "allOf", "prefixItems"}:
            value = [_untitled(each) for each in cast("list[dict[str, Any]]", value)]
        kept[key] = value
    return kept
