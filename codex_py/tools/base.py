"""Base classes of tools and of their parameters."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, model_validator


class ToolParams(BaseModel):
    """Arguments of a tool. Unknown keys are ignored, as Codex does: models invent them."""

    # A session calls few of its tools: each model is built by the first call that it reads, in 1 ms.
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class LenientParams(ToolParams):
    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """Models write null for what they leave out."""
        if not isinstance(data, dict):
            return data
        fields = cast("dict[str, Any]", data)
        return {name: value for name, value in fields.items() if value is not None}


class ChangesNothing:
    """For tools that change no file."""

    def changes(self, params: object, cwd: Path) -> Sequence[Path]:  # noqa: ARG002
        return ()


def command_report(exit_code: int | None, duration_s: float, output: str, note: str = "") -> str:
    """How a command ended, in the format of Codex 0.80 to 0.98. `note`: further lines of the header."""
    seconds = f"{duration_s:.1f}".removesuffix(".0")
    return f"Exit code: {exit_code}\nWall time: {seconds} seconds\n{note}Output:\n{output}"
