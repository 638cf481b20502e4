"""Makes room in the history of a thread, when it is full and when a request was too long."""

from collections.abc import Callable
from functools import partial

from codex_py.core.compact import (
    compacted_items,
    estimated_tokens,
    is_too_long,
    is_worth_compacting,
    makes_room,
    summarise,
    summary_text,
)
from codex_py.core.thread_log import ThreadLog
from codex_py.core.turn import RetryBudget
from codex_py.errors import CodexError, ModelError, StreamError
from codex_py.protocol.events import ContextCompaction, Event, ItemCompleted, ItemStarted
from codex_py.protocol.settings import TurnSettings
from codex_py.protocol.stream import ModelClient, Usage


class Compactor:
    """
    Args:
        cache_key: of the thread, see `Prompt`.
        instructions: what the model is asked for a summary with, in place of our own words.
        add_usage: is given what the summary took.
        estimate: is given how many tokens the history has then, roughly.
        warn: is told why the history stays as it is.
        next_item_id: makes the id of an item that is only shown live.
    """

    def __init__(
        self,
        log: ThreadLog,
        model: ModelClient,
        *,
        cache_key: str,
        instructions: str | None,
        emit: Callable[[Event], None],
        add_usage: Callable[[Usage], None],
        estimate: Callable[[int], None],
        warn: Callable[[str], None],
        next_item_id: Callable[[], str],
    ) -> None:
        self._log = log
        self._model = model
        self._cache_key = cache_key
        self._instructions = instructions
        self._emit = emit
        self._add_usage = add_usage
        self._estimate = estimate
        self._warn = warn
        self._next_item_id = next_item_id

    async def make_room(
        self, settings: TurnSettings, retries: RetryBudget, *, used_tokens: int
    ) -> None:
        """Compact a history that is nearly full. Without a summary it stays as it is, and the user is told.

        So it does where the request for the summary is refused: it would be refused in every later turn too.

        Args:
            used_tokens: by the last response, its input included.

        Raises:
            StreamError: the model's service could not be reached, see `Turn.run`.
        """
        limit = settings.auto_compact_token_limit
        if limit is None or used_tokens < limit or not is_worth_compacting(self._log.items):
            return
        try:
            await self.compact(settings, retries)
        except StreamError:
            raise
        except CodexError as error:
            self._warn(
                f"The conversation could not be compacted: {error}. It goes on in full length."
            )

    async def recover(
        self, failure: ModelError, settings: TurnSettings, retries: RetryBudget
    ) -> bool:
        """Compact if that may help a request that failed. True if the request is worth sending again.

        Raises:
            ModelError, CodexError: there is no summary.
        """
        if not is_too_long(failure) or not makes_room(self._log.items):
            return False
        await self.compact(settings, retries)
        return True

    async def compact(self, settings: TurnSettings, retries: RetryBudget) -> None:
        """Put a summary by the model in place of the history.

        Raises:
            ModelError, CodexError: there is none. The history is as it was.
        """
        item_id = self._next_item_id()
        status = "failed"
        self._emit(ItemStarted(ContextCompaction(id=item_id)))
        try:
            summary = summary_text(
                await summarise(
                    settings.prompt(self._log.items, self._cache_key),
                    self._instructions,
                    self._model,
                    retries,
                    emit=self._emit,
                    add_usage=self._add_usage,
                )
            )
            replacement = partial(
                compacted_items,
                history=self._log.items,
                summary=summary,
                context_window=settings.context_window,
            )
            self._log.compact(summary, replacement, settings)
            self._estimate(estimated_tokens(self._log.items))
            status = "completed"
        finally:
            self._emit(ItemCompleted(ContextCompaction(id=item_id, status=status)))
