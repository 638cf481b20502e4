"""The options for gates, which are keys of `[gates]`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from codex_py.api.options import Arguments, Options, count, flag, not_empty, option

_COMMANDS: Final = ("exec", "review")
"""A review has no conditions but those of `--fail-on`."""


class GateOptions(Options):
    commands = _COMMANDS

    verify: Annotated[
        Sequence[str], option("--verify", action="append", type=not_empty)
    ] = ()
    verify_tries: Annotated[int | None, option("--verify-tries", type=count)] = None
    verify_timeout: Annotated[str | None, option("--verify-timeout")] = None
    require_change: Annotated[bool, flag("--require-change")] = False
    forbid_path: Annotated[
        Sequence[str], option("--forbid-path", action="append", type=not_empty)
    ] = ()
    max_diff_lines: Annotated[int | None, option("--max-diff-lines", type=count)] = None
    require_evidence: Annotated[
        Sequence[str], option("--require-evidence", action="append", type=not_empty)
    ] = ()

    def settings(self, arguments: Arguments) -> Mapping[str, Any]:  # noqa: ARG002 - of the base class
        return {"gates": dict(vars(self))}


class FailOnOptions(Options):
    commands = _COMMANDS

    fail_on: Sequence[str] = ()

    def settings(self, arguments: Arguments) -> Mapping[str, Any]:  # noqa: ARG002 - of the base class
        return {"gates": {"fail_on": list(self.fail_on)}}
