"""The command `codex-py ledger`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from codex_py.api.commands import (
    Command,
    count,
    flag,
    frozen,
    option,
    print_json,
    print_table,
    tell,
)
from codex_py.api.configuration import ConfigOptions, command_config
from codex_py_ledger.entries import Entry, read
from codex_py_ledger.table import LedgerTable


@frozen
class LedgerCommand(ConfigOptions):
    json: Annotated[bool, flag("--json")] = False
    last: Annotated[int, option("--last", type=count)] = 20


def run(options: LedgerCommand, environment: Mapping[str, str]) -> int:
    config = command_config(options, environment)
    file = LedgerTable.of(config).path(config.home)
    entries = read(file)[-options.last :]
    if options.json:
        return print_json([asdict(entry) for entry in entries])
    if not entries:
        tell(f"There is no turn in {file}.")
        return 0
    return print_table([("TIME", "CALLS", "FAILED", "TOOLS"), *map(row, entries)])


def row(entry: Entry) -> Sequence[str]:
    tools = [f"{name} {calls}" for name, calls in entry.calls.items()]
    return (entry.time, str(entry.total), str(entry.failed), ", ".join(tools))


command = Command(run, Path(__file__).with_name("ledger.txt"), LedgerCommand)
