"""The slash command `/ledger` of the terminal."""

from codex_py.api.slash_commands import SlashCommand, Terminal
from codex_py_ledger.entries import read
from codex_py_ledger.table import LedgerTable


async def run(terminal: Terminal, argument: str) -> None:
    conversation = await terminal.conversation()
    file = LedgerTable.of(terminal.config).path(terminal.config.home)
    turns = [each for each in read(file) if each.session == conversation.thread_id]
    calls = sum(turn.total for turn in turns)
    terminal.show(f"This session: {calls} calls, {len(turns)} turns")


command = SlashCommand(run, "show how much this session has called")
