"""The option `--max-calls N` of `exec`, and the reason to fail `--fail-on idle`.

Both are keys of `[ledger]` for one run, so they turn the ledger on as well.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from codex_py.api.options import Arguments, Options, UsageError, count, option


class LedgerOptions(Options):
    max_calls: Annotated[int | None, option("--max-calls", type=count)] = None

    def check(self, arguments: Arguments) -> None:
        if self.max_calls == 0:
            raise UsageError("--max-calls takes a number from 1")

    def settings(self, arguments: Arguments) -> Mapping[str, Any]:
        return {"ledger": {"max_calls": self.max_calls}}


class IdleOptions(Options):
    fail_on: Sequence[str] = ()

    def settings(self, arguments: Arguments) -> Mapping[str, Any]:
        return {"ledger": {"fail_if_idle": True}}
