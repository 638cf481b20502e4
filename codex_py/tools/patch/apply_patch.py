"""`apply_patch` as the model calls it. The engine behind it is loaded by the first patch."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import AliasChoices, Field

from codex_py.protocol.calls import PastCall, PastItems, named_changes, read_report, shortened
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.events import FileChange, ThreadItem
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import PatchApplier, ToolParams

_MOVED_TO = re.compile(r"^\*\*\* Move to: (.*\S)", re.MULTILINE)


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
        self._calls: PatchApplier | None = None

    async def run(self, params: ApplyPatchParams, context: ToolContext) -> ToolOutput:
        return await self.apply(params.input, context.cwd, context)

    def changes(self, params: ApplyPatchParams, cwd: Path) -> Sequence[Path] | None:
        named = [change.path for change in named_changes(params.input)]
        return [cwd / path for path in (*named, *_MOVED_TO.findall(params.input))] or None

    def replay(self, call: PastCall, past: PastItems) -> ThreadItem | None:
        if not call.has_run:
            return None
        patch = str(call.arguments.get("input", call.arguments.get("patch", "")))
        item = FileChange(id=past.next_id(), changes=named_changes(patch), diff=patch)
        report = read_report(call.output)
        if report.exit_code == 0:
            return replace(item, status="completed")
        status = "declined" if call.error_code in {"ApprovalDenied", "SandboxDenied"} else "failed"
        code, text = call.error_code or "PatchFailed", shortened(report.text.rstrip("\n"))
        return replace(item, status=status, error={"code": code, "message": text} if text else None)

    async def apply(self, patch: str, cwd: Path, context: ToolContext) -> ToolOutput:
        """See `PatchCalls.apply`."""
        if self._calls is None:
            # 15 ms, which a session without a patch need not spend.
            from codex_py.tools.patch.patch_calls import PatchCalls  # noqa: PLC0415

            self._calls = PatchCalls(self._home, unambiguous=self._unambiguous)
        return await self._calls.apply(patch, cwd, context)
