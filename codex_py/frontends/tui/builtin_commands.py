"""The commands of the terminal."""

from dataclasses import replace
from typing import TYPE_CHECKING

from codex_py.frontends.tui.commands import Command

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal


def builtin_commands() -> list[Command]:
    return [
        Command("new", "start a new conversation", _new, while_working=False),
        Command(
            "compact", "put a summary in place of the conversation", _compact, while_working=False
        ),
        Command("quit", "leave", _quit, aliases=("exit",)),
    ]


async def _new(terminal: "Terminal", _: str) -> None:
    await terminal.open(replace(terminal.options, resume=None, resume_last=False))


async def _compact(terminal: "Terminal", _: str) -> None:
    terminal.compact()


async def _quit(terminal: "Terminal", _: str) -> None:
    terminal.leave()
