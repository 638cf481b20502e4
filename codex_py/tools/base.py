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
    """Arguments of a tool. A text in the annotation of a field describes it to the model.

    Unknown keys are ignored, as Codex does: models invent them, and write null for what they leave out.
    """

    @classmethod
    def model_validate(cls, data: object) -> Self:
        """Named as that of pydantic's models, which are arguments of other tools. Raises a `WrongValue`."""
        return checked(cls, data)

    @classmethod
    def model_validate_json(cls, text: str) -> Self:
        """Raises a `ValueError` or `RecursionError`."""
        value = json.loads(text)
        if "\\ud" in text.lower():
            # Half a surrogate pair is the model's mistake, which it is told.
            json.dumps(value, ensure_ascii=False).encode()
        return cls.model_validate(value)


def invalid_arguments(error: ValueError | RecursionError) -> ToolError:
    """The error in the words of Codex."""
    return ToolError(f"failed to parse function arguments: {error}", code="InvalidArgs")


class ChangesNothing:
    """For tools that change no file."""

    def changes(self, params: object, cwd: Path) -> Sequence[Path]:  # noqa: ARG002
        return ()


def command_report(
    exit_code: int | None, duration_s: float, output: str, note: str = ""
) -> str:
    """How a command ended, in the format of Codex 0.80 to 0.98. `note`: further lines of the header."""
    seconds = f"{duration_s:.1f}".removesuffix(".0")
    return (
        f"Exit code: {exit_code}\nWall time: {seconds} seconds\n{note}Output:\n{output}"
    )
