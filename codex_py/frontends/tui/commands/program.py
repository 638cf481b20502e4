"""Commands for the program itself, and for taking things out of it."""

import base64
from datetime import datetime
from typing import TYPE_CHECKING

from codex_py.core.transcript import thread_items
from codex_py.errors import CodexError
from codex_py.frontends.tui.commands.registry import Command
from codex_py.frontends.tui.keys import SHORTCUTS
from codex_py.protocol.events import AgentMessage, CommandExecution, FileChange, UserMessage

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

_MAX_CLIPBOARD = 100_000
"""Bytes; terminals take no more, or less."""


async def _copy(terminal: "Terminal", _: str) -> None:
    session = terminal.conversation.session
    said = [] if session is None else thread_items(session.items)
    answers = [item.text for item in said if isinstance(item, AgentMessage)]
    if not answers:
        raise CodexError("there is no answer to copy yet", code="nothing_to_copy")
    data = answers[-1].encode(errors="replace")
    if len(data) > _MAX_CLIPBOARD:
        raise CodexError("the answer is too long for the clipboard; /export it", code="too_long")
    # OSC 52 reaches the clipboard of the machine that the user sits at, over ssh and tmux too.
    terminal.screen.send(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
    terminal.hint("the last answer was handed to the terminal's clipboard")


async def _export(terminal: "Terminal", argument: str) -> None:
    session = terminal.conversation.session
    if session is None:
        raise CodexError("there is no conversation yet", code="no_session")
    name = argument or f"codex-{datetime.now().astimezone():%Y-%m-%d-%H%M%S}.md"
    path = terminal.config.cwd / name
    parts: list[str] = []
    for item in thread_items(session.earlier or session.items):
        match item:
            case UserMessage():
                parts.append("## User\n\n" + item.text)
            case AgentMessage():
                parts.append("## Agent\n\n" + item.text)
            case CommandExecution():
                parts.append(f"```console\n$ {item.command}\n{item.aggregated_output}\n```")
            case FileChange():
                parts.append(f"```diff\n{item.diff}\n```")
            case _:
                pass
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write("\n\n".join(parts) + "\n")
    except OSError as error:
        raise CodexError(f"can not write {str(path)!r}: {error.strerror}", code="export") from error
    terminal.transcript.notice(f"The conversation was written to {path}")


async def _help(terminal: "Terminal", _: str) -> None:
    width = max(len(command.name) + len(command.argument) for command in terminal.commands.all) + 2
    lines = [
        f"/{f'{command.name} {command.argument}':{width}} {command.help}"
        for command in terminal.commands.all
    ]
    terminal.transcript.notice("\n".join(lines))


async def _keymap(terminal: "Terminal", _: str) -> None:
    width = max(len(keys) for keys, _ in SHORTCUTS) + 2
    terminal.transcript.notice("\n".join(f"{keys:{width}}{what}" for keys, what in SHORTCUTS))


async def _quit(terminal: "Terminal", _: str) -> None:
    terminal.leave()


PROGRAM = [
    Command("copy", "copy the last answer", _copy),
    Command("export", "write the conversation to a file", _export, argument="[FILE]"),
    Command("help", "list the commands", _help),
    Command("keymap", "list the keys (?)", _keymap),
    Command("quit", "leave", _quit, aliases=("exit",)),
]
