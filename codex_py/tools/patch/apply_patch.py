"""`apply_patch` as the model calls it. The engine behind it is loaded by the first patch."""

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import AliasChoices, Field

from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import ToolParams

if TYPE_CHECKING:
    from codex_py.tools.patch.patch_calls import PatchCalls


class ApplyPatchParams(ToolParams):
    input: str = Field(
        validation_alias=AliasChoices("input", "patch", "patchText"), description="The whole patch."
    )


class ApplyPatch:
    """
    Args:
        home, unambiguous: see `PatchCalls`.
    """

    name = "apply_patch"
    params = ApplyPatchParams
    parallel = False

    def __init__(self, home: Path | None = None, *, unambiguous: bool = False) -> None:
        self._home = home
        self._unambiguous = unambiguous
        self._calls: PatchCalls | None = None

    async def run(self, params: ApplyPatchParams, context: ToolContext) -> ToolOutput:
        return await self.apply(params.input, context.cwd, context)

    async def apply(self, patch: str, cwd: Path, context: ToolContext) -> ToolOutput:
        """See `PatchCalls.apply`."""
        if self._calls is None:
            # 15 ms, which a session without a patch need not spend.
            from codex_py.tools.patch.patch_calls import PatchCalls  # noqa: PLC0415

            self._calls = PatchCalls(self._home, unambiguous=self._unambiguous)
        return await self._calls.apply(patch, cwd, context)
