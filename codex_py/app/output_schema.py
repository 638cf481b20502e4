"""The JSON Schema of a final answer, and the check of an answer against it.

The request contains the schema, but not every provider enforces it. Importing this module loads
jsonschema (60 ms), so it is imported only if a schema is given.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, Protocol, cast

from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.exceptions import best_match  # pyright: ignore[reportUnknownVariableType]: untyped
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from codex_py.errors import ConfigError, OptionError
from codex_py.protocol.calls import shortened
from codex_py.protocol.json_fields import as_object

_MAX_REASON_CHARACTERS = 300


class _Validator(Protocol):
    """The part of a validator of jsonschema that is used here, with types."""

    def iter_errors(self, instance: Any) -> Iterable[ValidationError]: ...


def load_schema(path: Path) -> Any:
    """Read a JSON Schema of any draft; 2020-12 if it names none.

    Raises:
        OptionError: the file cannot be read, is not JSON, or is not a schema.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"Failed to read output schema file {path}: {error.strerror}"
        raise OptionError(message) from error
    return read_schema(data, f"Output schema file {path}")


def read_schema(data: bytes, source: str) -> Any:
    """Read a JSON Schema of any draft; 2020-12 if it names none.

    `source` names the data in errors.

    Raises:
        OptionError: it is not JSON, or is not a schema.
    """
    try:
        schema = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{source} is not valid JSON: {error}") from error
    problem = _problem(schema)
    if problem is not None:
        raise OptionError(f"{source} is not a valid JSON Schema: {problem}")
    return schema


def answer_check(schema: Any) -> Callable[[str], str | None]:
    """Return a function that describes in one sentence how an answer breaks the schema.

    It returns None if the answer does not.

    The function raises a `ConfigError` if the schema refers to one that it does not contain:
    nothing is fetched.

    Raises:
        ConfigError: `schema` is not a JSON Schema.
    """
    problem = _problem(schema)
    if problem is not None:
        raise ConfigError(f"the output schema is not a valid JSON Schema: {problem}")
    return lambda text: _violation(schema, text)


def _problem(schema: Any) -> str | None:
    """The reason why a value is not a JSON Schema; None if it is one."""
    try:
        _validator_class(schema).check_schema(schema)
    except SchemaError as error:
        return _reason(error)
    return None


def _violation(schema: Any, text: str) -> str | None:
    """See `answer_check`."""
    try:
        answer = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return f"the final answer is not valid JSON: {error}"
    no_others: Registry[Any] = Registry()
    try:
        validator: _Validator = _validator_class(schema)(schema, registry=no_others)
        errors = validator.iter_errors(answer)
        error = cast("ValidationError | None", best_match(errors))
    except Unresolvable as unresolvable:
        message = (
            f"the output schema has a reference that cannot be resolved: {unresolvable}"
        )
        raise ConfigError(message) from unresolvable
    except RecursionError:
        return (
            "the final answer is nested too deeply to be checked, or the output schema refers to"
            " itself"
        )
    if error is None:
        return None
    return f"the final answer does not satisfy the output schema: {_reason(error)}"


def _validator_class(schema: Any) -> Any:
    """The validator for the draft that a schema names."""
    draft = as_object(schema).get("$schema")
    if not isinstance(draft, str):
        # jsonschema looks up any value of another type, and fails.
        return Draft202012Validator
    return validator_for({"$schema": draft}, default=Draft202012Validator)


def _reason(error: ValidationError | SchemaError) -> str:
    """The message as `at $.path: the mistake`, cut because it may quote the whole answer."""
    # The end of the message tells the expectation, the beginning shows the value.
    return f"at {error.json_path}: {shortened(error.message, _MAX_REASON_CHARACTERS)}"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
