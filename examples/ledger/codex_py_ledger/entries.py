"""The file of the ledger: one line of JSON for each turn."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from codex_py.api.commands import CodexError, frozen


@frozen
class Entry:
    """What a turn has called."""

    time: str
    """The end of the turn in UTC."""
    session: str
    calls: Mapping[str, int]
    """The number of calls of each tool."""
    failed: int
    """The number of commands that failed."""

    @property
    def total(self) -> int:
        return sum(self.calls.values())


def append(file: Path, entry: Entry) -> None:
    """Add an entry to the file, which need not exist. Raises an `OSError`."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(f"{json.dumps(asdict(entry))}\n")


def read(file: Path) -> Sequence[Entry]:
    """Read all entries, the oldest first.

    Raises:
        CodexError: the file cannot be read.
    """
    if not file.exists():
        return []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        return [Entry(**json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError) as error:
        raise CodexError(f"cannot read the ledger {file}: {error}") from error
