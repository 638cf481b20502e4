"""Base classes of tools and of their parameters."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from pydantic import BaseModel, ConfigDict, model_validator

from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.tools import ToolOutput


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


class PatchApplier(Protocol):
    async def apply(self, patch: str, cwd: Path, context: ToolContext) -> ToolOutput:
        """Apply the text of a patch whose relative paths start at `cwd`."""
        ...
