"""Makes tools of Python functions, and describes them to the model.

LIGHT if the types are plain.
"""

import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from inspect import Parameter
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    overload,
)

from codex_py.protocol.tools import FunctionSpec

P = ParamSpec("P")
R = TypeVar("R")

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ARGUMENTS: Final = re.compile(r"(?:Args|Arguments|Parameters):")
_ARGUMENT: Final = re.compile(r"\s+\*{0,2}(\w+)(?: *\([^)]*\))?: *(.*)")
_FIELD: Final = re.compile(r":param (?:[^:]* )?(\w+): *(.*)")

_TYPE_NAMES: Final[Mapping[Any, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    types.NoneType: "null",
}


@dataclass(frozen=True, slots=True, eq=False)
class PythonFunction(Generic[P, R]):
    """A function with its description for the model. It can still be called like the function."""

    function: Callable[P, R]
    spec: FunctionSpec
    parameters: Mapping[str, Parameter]
    needs_approval: bool
    parallel: bool

    @property
    def name(self) -> str:
        return self.spec.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


AnyFunction: TypeAlias = Callable[..., Any]


@overload
def tool(function: Callable[P, R], /) -> PythonFunction[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    parallel: bool = False,
) -> Callable[[Callable[P, R]], PythonFunction[P, R]]: ...
def tool(
    function: AnyFunction | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    parallel: bool = False,
) -> Any:
    """Make a tool of a function, for `Agent(tools=[…])` and `open_session(…, tools=[…])`.

    A bare function there has the default options.

    The parameters are described by their types and by the docstring (a section `Args:`, or
    `:param name:`). The model's arguments are converted and checked before the call. The model gets
    a `str` unchanged, `bytes` as an image (PNG, JPEG, GIF, WebP), a list that contains `bytes` as
    its parts, and any other value as JSON. An iterator, such as a generator, becomes a list, and
    may yield 64 MB. After an exception, the model gets its type and text, and the turn continues;
    only a `CodexError` ends it.

    A coroutine function runs in the loop of the session, and is cancelled with the turn. Any other
    function runs in a separate thread, which cannot be cancelled: the turn ends without waiting for
    it.

    >>> from codex_py import tool
    >>> @tool(name="in_stock", parallel=True)
    ... def stock(part: str) -> int:
    ...     'How many of a part there are.'
    ...     return 7
    >>> stock.spec.description, stock.spec.parameters["properties"], stock("bolts")
    ('How many of a part there are.', {'part': {'type': 'string'}}, 7)

    Args:
        function: a `PythonFunction` is returned unchanged.
        name: at most 64 letters, digits, `_` and `-`; None: the function's name.
        description: None: the docstring without the parameters.
        needs_approval: ask `approve`, or the session's approver, before each call. Without either,
            calls are refused.
        parallel: a call may run concurrently with others; otherwise it runs alone.

    Raises:
        TypeError: `function` is not a function, has no usable name, or has parameters that cannot
            be named or described in a call; or an option has another type.
    """
    _check_option("name", name, str | None, "a text")
    _check_option("description", description, str | None, "a text")
    _check_option("needs_approval", needs_approval, bool, "True or False")
    _check_option("parallel", parallel, bool, "True or False")
    if function is None:
        wanted = {"name": name, "description": description}
        return partial(tool, **wanted, needs_approval=needs_approval, parallel=parallel)
    if isinstance(function, PythonFunction):
        return cast("PythonFunction[..., Any]", function)
    if not callable(function):
        raise TypeError(f"a tool is a function, not {function!r}")
    name = str(name or getattr(function, "__name__", ""))
    if not _NAME.fullmatch(name):
        raise TypeError(
            f"a tool needs a name of letters, digits, _ and -, at most 64: {name!r};"
            " give one with tool(name=…)"
        )
    # The docstring of a `partial` describes partials, not the function.
    described: Any = getattr(function, "func", function)
    text, about = _read_docstring(inspect.getdoc(described) or "")
    parameters = _parameters(function, name)
    schema = _plain_schema(parameters.values(), about)
    if schema is None:
        # pydantic describes the other types.
        from codex_py.tools.python.arguments import arguments_schema  # 55 ms

        schema = arguments_schema(name, parameters.values(), about)
    spec = FunctionSpec(name, text if description is None else description, schema)
    return PythonFunction(function, spec, parameters, needs_approval, parallel)


def _check_option(
    option: str, value: object, kind: type | types.UnionType, due: str
) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"`{option}` of a tool is {due}, not {value!r}")


def _parameters(function: AnyFunction, name: str) -> Mapping[str, Parameter]:
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except (NameError, ValueError) as error:
        raise TypeError(f"the parameters of {name} cannot be read: {error}") from error
    named_kinds = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    for parameter in parameters.values():
        if parameter.kind not in named_kinds:
            raise TypeError(
                f"a model cannot give the parameter {parameter} of {name} by its name"
            )
    return parameters


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description of the function, and the description of each parameter."""
    description: list[str] = []
    about: dict[str, str] = {}
    section: _ArgumentSection | None = None
    for line in text.splitlines():
        if line.strip() and not line[0].isspace():
            # A line without an indent ends the section.
            section = None
        if _ARGUMENTS.fullmatch(line.rstrip()):
            section = _ArgumentSection(about)
            continue
        field = _FIELD.match(line)
        if field is not None:
            about[field[1]] = field[2]
        elif section is not None:
            section.add(line)
        else:
            description.append(line)
    return "\n".join(description).strip(), about


class _ArgumentSection:
    """Reads the lines of a section `Args:` into descriptions by parameter."""

    def __init__(self, about: dict[str, str]) -> None:
        self._about = about
        self._name = ""
        """The parameter that the last line described."""
        self._indent = 0
        """The indent of its first line."""

    def add(self, line: str) -> None:
        depth = len(line) - len(line.lstrip())
        found = _ARGUMENT.match(line)
        # A line that is indented further continues the description, even with a colon in it.
        begins = self._indent == 0 or depth <= self._indent
        if found is not None and begins:
            self._name = found[1]
            self._indent = depth
            self._about[self._name] = found[2]
        elif self._name and line.strip():
            text = f"{self._about[self._name]} {line.strip()}"
            self._about[self._name] = text.strip()


class _NotPlain(Exception):
    """A type or a value that pydantic has to describe."""


def _plain_schema(
    parameters: Iterable[Parameter], about: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the JSON Schema of an object with these members, as pydantic writes it.

    Returns None if one of their types is not plain.

    Plain types are str, int, float, bool, None, Any, lists, dictionaries with keys of str,
    literals, enumerations of plain values, and unions of these; `Annotated` with a text describes a
    parameter.

    Args:
        about: the description of each parameter from the docstring.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    try:
        for parameter in parameters:
            schema = _type_schema(parameter.annotation)
            if parameter.default is Parameter.empty:
                required.append(parameter.name)
            else:
                schema["default"] = _plain_value(parameter.default)
            text = about.get(parameter.name)
            if text:
                schema.setdefault("description", text)
            properties[parameter.name] = schema
    except (_NotPlain, TypeError):
        # A `TypeError` comes from metadata that cannot be hashed.
        return None
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        return {**schema, "required": required}
    return schema


def _type_schema(annotation: Any) -> dict[str, Any]:
    """Return the JSON Schema of a plain type. Raises `_NotPlain` for any other."""
    if annotation in {Any, Parameter.empty}:
        return {}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice([member.value for member in annotation])
    name = _TYPE_NAMES.get(annotation)
    if name is not None:
        return {"type": name}
    arguments = get_args(annotation)
    origin = cast("Any", get_origin(annotation) or annotation)
    if origin is Annotated:
        described, *texts = arguments
        if not all(isinstance(text, str) for text in texts):
            raise _NotPlain
        return {**_type_schema(described), "description": texts[0]}
    if origin is Literal:
        return _choice(list(arguments))
    if origin in {Union, types.UnionType}:
        return {"anyOf": [_type_schema(each) for each in arguments]}
    if origin is list:
        element = arguments[0] if arguments else Any
        return {"type": "array", "items": _type_schema(element)}
    if origin is dict and arguments[:1] in {(), (str,)}:
        values = _type_schema(arguments[1]) if arguments else {}
        return {"type": "object", "additionalProperties": values or True}
    raise _NotPlain


def _choice(values: list[Any]) -> dict[str, Any]:
    kinds = {_TYPE_NAMES.get(type(_plain_value(value))) for value in values}
    schema: dict[str, Any] = {"enum": values}
    if len(values) == 1:
        schema = {"const": values[0]}
    if len(kinds) == 1:
        return {**schema, "type": kinds.pop()}
    return schema


def _plain_value(value: Any) -> Any:
    if isinstance(value, Enum):
        value = value.value
    is_empty_collection = type(value) in {list, dict} and not value
    if type(value) in _TYPE_NAMES or is_empty_collection:
        return value
    raise _NotPlain
