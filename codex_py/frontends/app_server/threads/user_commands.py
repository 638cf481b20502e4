"""Answers the method with which the user runs a command, as `!COMMAND` in the terminal."""

from functools import partial

from codex_py.app.json_rpc import INVALID_PARAMS, INVALID_REQUEST, RpcError
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.threads.thread import AppThread
from codex_py.frontends.app_server.threads.thread_params import ShellCommand
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.prompts import Note


class UserCommandMethods(MethodGroup):
    """Answers `thread/shellCommand`."""

    @serves("thread/shellCommand", ShellCommand)
    async def run(self, asked: ShellCommand) -> Fields:
        """Start a command. Without a running turn, it is a turn of its own."""
        if not asked.command.strip():
            raise RpcError(INVALID_REQUEST, "command must not be empty")
        if asked.timeout_ms < 0:
            text = f"thread/shellCommand timeoutMs must be non-negative, got {asked.timeout_ms}"
            raise RpcError(INVALID_PARAMS, text)
        async with self.threads.locked(asked.thread_id) as thread:
            feed = thread.feed
            session = thread.session
            run = partial(
                thread.shell.run,
                asked.command,
                thread.config,
                item_id=session.next_live_id(),
                timeout_s=asked.timeout_ms / 1000,
                tell=partial(_tell, thread),
            )
            if feed is not None:
                with thread.answering():
                    # The command may outlive the turn: its notifications are of this one.
                    thread.run_beside(run(sink=feed.take))
                    return {}
            await thread.ended()
            work = partial(run, sink=session.emit)
            await thread.start(partial(session.run_own, work), None)
            return {}


def _tell(thread: AppThread, text: str) -> None:
    """Tell the model about a command, if the thread has not been closed."""
    if thread.is_open:
        thread.session.tell(Note(text, "user"))
