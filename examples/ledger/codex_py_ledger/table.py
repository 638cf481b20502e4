"""The table `[ledger]` of config.toml, which turns the ledger on."""

from pathlib import Path

from codex_py.api.tables import ClaimedTable, Feature, Limit, SessionSetup, key
from codex_py_ledger.feature import Ledger


class LedgerTable(ClaimedTable):
    """The keys of `[ledger]`."""

    file: str = key("The file of the ledger.", default="ledger.jsonl")
    max_calls: Limit | None = key("The most calls of a turn.")
    fail_if_idle: bool = key("A turn without calls makes the run fail.", default=False)

    def path(self, home: Path) -> Path:
        """Return the file of the ledger: absolute, or below `$CODEX_HOME`."""
        return home / Path(self.file).expanduser()

    def feature(self, setup: SessionSetup) -> Feature:
        return Ledger(
            self.path(setup.config.home),
            self.max_calls,
            fails_if_idle=self.fail_if_idle,
        )
