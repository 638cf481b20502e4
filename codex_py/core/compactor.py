"""Compacts the history of a thread when it is nearly full, and when a request was too long."""

from functools import partial
from typing import Literal

from codex_py.core.compact import (
    compacted_items,
    estimated_tokens,
    is_too_long,
    is_worth_compacting,
    makes_room,
    summarise,
    summary_text,
)
from codex_py.core.parts import SessionParts
from codex_py.core.turn import RetryBudget
from codex_py.errors import CompactionFailed, ModelError, StreamError
from codex_py.protocol.events import ContextCompaction, ItemCompleted, ItemStarted
from codex_py.protocol.extension import Compaction
from codex_py.protocol.prompts import Note
from codex_py.protocol.stream import ModelStream


class Compactor:
    def __init__(self, parts: SessionParts, model: ModelStream) -> None:
        self._parts = parts
        self._log = parts.log
        self._model = model

    async def make_room(self, retries: RetryBudget, *, used_tokens: int) -> None:
        """Compact a history that is nearly full. If there is no summary, keep the history and warn the user.

        A refused request for the summary is no error either: it would be refused in every later turn.

        Args:
            used_tokens: tokens of the last response, its input included.

        Raises:
            StreamError: the provider could not be reached, see `Turn.run`.
            CodexError: an extension ended the turn.
        """
        limit = self._parts.thread.settings.auto_compact_token_limit
        if limit is None or used_tokens < limit or not is_worth_compacting(self._log.items):
            return
        try:
            await self.compact(retries, "auto")
        except StreamError:
            raise
        except (ModelError, CompactionFailed) as error:
            self._parts.thread.warn(
                f"The conversation could not be compacted: {error}. It goes on in full length."
            )

    async def recover(self, failure: ModelError, retries: RetryBudget) -> bool:
        """Compact if that may help a failed request. True if the request is worth sending again.

        Raises:
            CodexError: there is no summary.
        """
        if not is_too_long(failure) or not makes_room(self._log.items):
            return False
        await self.compact(retries, "auto")
        return True

    async def compact(self, retries: RetryBudget, trigger: Literal["auto", "manual"]) -> None:
        """Replace the history by a summary of the model.

        Raises:
            CodexError: there is no summary. The history is unchanged.
        """
        parts = self._parts
        settings, emit = parts.thread.settings, parts.thread.emit
        item_id = parts.next_live_id()
        status = "failed"
        kept: list[Note] = []
        emit(ItemStarted(ContextCompaction(id=item_id)))
        try:
            async with parts.extension.around_compaction(Compaction(trigger, kept.append)):
                text = await summarise(
                    settings.prompt(self._log.items, parts.thread.thread_id),
                    settings.compact_prompt,
                    self._model,
                    retries,
                    emit=emit,
                    add_usage=parts.tokens.add,
                )
                summary = summary_text(text)
                replacement = partial(
                    compacted_items,
                    history=self._log.items,
                    summary=summary,
                    context_window=settings.context_window,
                )
                self._log.compact(summary, replacement, settings, parts.extension.context)
                self._log.tell(kept)
                parts.tokens.estimate(estimated_tokens(self._log.items))
                status = "completed"
        finally:
            emit(ItemCompleted(ContextCompaction(id=item_id, status=status)))
