"""Answers the methods that change the history of a thread without a turn."""

import asyncio

from codex_py.app.injected_items import encoded_items
from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.threads import history
from codex_py.frontends.app_server.threads.history_pages import last_cursors
from codex_py.frontends.app_server.threads.thread import AppThread
from codex_py.frontends.app_server.threads.thread_answers import thread_data
from codex_py.frontends.app_server.threads.thread_params import InjectItems, Revert
from codex_py.frontends.app_server.turn_items.items import Fields


class HistoryChangeMethods(MethodGroup):
    """Answers `thread/inject_items` and `thread/revert`."""

    @serves("thread/inject_items", InjectItems)
    async def inject(self, asked: InjectItems) -> Fields:
        """Append items to the history. A running turn sends them with its next request."""
        async with self.threads.locked(asked.thread_id) as thread:
            items = await asyncio.to_thread(encoded_items, asked.items)
            thread.session.inject(items)
        return {}

    @serves("thread/revert", Revert)
    async def revert(self, asked: Revert) -> Fields:
        """Drop a turn and all later ones from the history. Files keep their contents.

        As in Codex, a running turn is interrupted.
        """
        async with self.threads.locked(asked.thread_id) as thread:
            # A turn that is unknown interrupts nothing.
            await _prompts_to_drop(thread, asked.before_turn_id)
            thread.cancel()
            await thread.ended()
            count = await _prompts_to_drop(thread, asked.before_turn_id)
            thread.session.rollback(count)
            path = thread.session.session_file
            assert path is not None
            turns = await asyncio.to_thread(history.read_turns, path)
            answer = {
                "thread": await thread_data(thread, with_turns=False),
                **last_cursors(turns),
            }
        self.server.later("thread/reverted", {"threadId": thread.thread_id})
        return answer


async def _prompts_to_drop(thread: AppThread, turn_id: str) -> int:
    """Count the prompts of a turn and of all later ones.

    Raises:
        RpcError: the history cannot be taken back to before this turn.
    """
    path = thread.session.session_file
    if path is None:
        raise RpcError(
            INVALID_REQUEST, "ephemeral threads do not support thread/revert"
        )
    counts = await asyncio.to_thread(history.prompts_of_turns, path)
    if turn_id not in counts:
        raise RpcError(INVALID_REQUEST, f"turn not found: {turn_id}")
    if not counts[turn_id]:
        text = f"turn {turn_id} has no prompt: revert to before a turn that has one"
        raise RpcError(INVALID_REQUEST, text)
    ids = list(counts)
    count = sum(counts[each] for each in ids[ids.index(turn_id) :])
    if count > len(thread.session.past_prompts()):
        text = f"a summary has replaced turn {turn_id} in the history"
        raise RpcError(INVALID_REQUEST, text)
    return count
