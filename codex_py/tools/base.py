"""Base classes of tools and of their parameters."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from codex_py.errors import ToolError
from codex_py.protocol.checked import checked
from codex_py.protocol.frozen import frozen


@frozen(kw_only=True)
class ToolParams:
    """The arguments of a tool. A text in the annotation of a field describes it to the model.

    Unknown keys are ignored, as in Codex: models invent keys, and write null for fields that they
    leave out.
    """

    @classmethod
    def model_validate(cls, data: object) -> Self:
        """Check the arguments. Raises a `WrongValue`.

        The name is that of pydantic's method, as other tools have pydantic models.
        """
        return checked(cls, data)

    @classmethod
    def model_validate_json(cls, text: str) -> Self:
        """Parse and check the arguments. Raises a `ValueError` or `RecursionError`."""
        value = json.loads(text)
        if "\\ud" in text.lower():
            # The model may have written half a surrogate pair: encoding it raises a `ValueError`.
            json.dumps(value, ensure_ascii=False).encode()
        return cls.model_validate(value)


def invalid_arguments(error: ValueError | RecursionError) -> ToolError:
    """The error about invalid arguments, in the words of Codex."""
    if "set_int_max_str_digits" in str(error):
        # Python's words are for programmers.
        error = ValueError("a number has too many digits")
    return ToolError(f"failed to parse function arguments: {error}", code="InvalidArgs")


class ChangesNothing:
    """A base class for tools that change no files."""

    def changes(self, params: object, cwd: Path) -> Sequence[Path]:  # noqa: ARG002
        return ()


def command_report(
    exit_code: int | None, duration_s: float, output: str, note: str = ""
) -> str:
    """Return the report on an ended command, in the format of Codex 0.80 to 0.98.

    Args:
        note: additional lines of the header, each with its line end.
    """
    seconds = f"{duration_s:.1f}".removesuffix(".0")
    return (
        f"Exit code: {exit_code}\nWall time: {seconds} seconds\n{note}Output:\n{output}"
    )
