"""Compaction: a summary by the model replaces a history that fills the context window.

Codex does the same with providers other than OpenAI: the whole history is sent once more with a
request for a hand-over note. The new history is the first context, the latest prompts of the user,
and the note. If the model writes no note, the history is shortened without one, see `shorten`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final, Literal

from codex_py.core.context import is_context_message
from codex_py.core.retry import RetryBudget
from codex_py.core.session_state import SessionState
from codex_py.core.shorten import Shortened, shortened, weight
from codex_py.core.summary import size_for, summary_by_model
from codex_py.errors import (
    QUOTA_CODES,
    CodexError,
    CompactionFailed,
    ExitCode,
    ModelError,
)
from codex_py.instructions import instruction_text
from codex_py.protocol import event_items, events
from codex_py.protocol.extension import Compaction
from codex_py.protocol.messages import (
    EncodedItem,
    estimated_tokens,
    input_text,
    message,
)
from codex_py.protocol.prompts import (
    Note,
    context_length,
    is_models,
    is_summary,
    user_prompt,
)
from codex_py.protocol.stream import Usage

_KEPT_PROMPT_TOKENS: Final = 20_000
_KEPT_PART_OF_WINDOW: Final = 4
"""Prompts get at most a quarter of the window: a small one must not be full again at once."""
_SUMMARY_TOKENS: Final = 1_000
"""The usual length of a summary."""
_LARGE_TOKENS: Final = 4_000
"""A request with more tokens than this after its context may be too long for a small model,
whatever the error says."""
_BYTES_PER_TOKEN: Final = 4
"""The estimate for text."""
_MOST_TOKENS_FOR_ESTIMATED: Final = 4
"""No text has more tokens than bytes, and an estimated token is four bytes."""


class Compactor:
    """Compacts the history of a thread when it is nearly full, and when a request was too long."""

    def __init__(self, session: SessionState) -> None:
        self._session = session
        self._log = session.log
        self._problem: CodexError | None = None
        """The reason why the model gave no summary the last time."""
        self._failed_in: str | None = None
        """The id of the turn in which compaction failed. That turn does not try again while there
        is room."""
        self._refused_in: str | None = None
        """The id of the turn in which the request for a summary was itself too long. That turn
        asks for no other summary."""
        self._guessed_in: str | None = None
        """The id of the last turn that took an unclear failure for a lack of room. A turn does so
        once."""
        self._has_told_doubt = False
        """True once the user was warned that the provider reports impossibly many tokens."""

    async def make_room(
        self,
        retries: RetryBudget,
        *,
        pending: str = "",
    ) -> None:
        """Compact a history that is nearly full.

        If an extension refuses, or the provider cannot be reached and there is still room, the
        history stays unchanged, the user is warned, and the next turn tries again. A compacted
        history also stays unchanged if the provider reports more tokens for it than it can have:
        another compaction would not change the report.

        Args:
            retries: the retry budget of the turn.
            pending: a prompt that is about to be added.

        Raises:
            CodexError: an extension ended the turn.
        """
        settings = self._session.settings
        limit = settings.auto_compact_token_limit
        pending_tokens = len(pending.encode(errors="replace")) // _BYTES_PER_TOKEN
        used_tokens = self._log.used_tokens(settings) + pending_tokens
        if limit is None or used_tokens < limit:
            return
        is_full = used_tokens >= settings.context_window
        has_failed = self._failed_in == self._turn_id
        if has_failed and not is_full:
            return
        if not is_worth_compacting(self._log.items):
            return
        if self._is_doubtful(used_tokens):
            self._tell_doubt(used_tokens)
            return
        try:
            is_done = await self._compact(
                "auto", lambda: self._ask(retries, is_full=is_full)
            )
            problem = None if is_done else self._problem
        except (ModelError, CompactionFailed) as error:
            problem = error
        if problem is not None:
            self._problem = problem
            self._failed_in = self._turn_id
            self._session.warn(
                f"The conversation could not be compacted: {problem}. It goes on in full length."
            )

    def _is_doubtful(self, used_tokens: int) -> bool:
        """True if the provider reports more tokens than a compacted history can have."""
        estimated = self._log.request(self._session.settings).estimated_tokens
        if used_tokens <= _MOST_TOKENS_FOR_ESTIMATED * estimated:
            return False
        return any(map(is_summary, self._log.items))

    def _tell_doubt(self, used_tokens: int) -> None:
        if self._has_told_doubt:
            return
        self._has_told_doubt = True
        estimated = self._log.request(self._session.settings).estimated_tokens
        self._session.warn(
            f"The provider reports about {used_tokens} tokens for a conversation that was"
            f" compacted and has about {estimated}. It is not compacted again because of such"
            " reports."
        )

    async def recover(self, failure: ModelError, retries: RetryBudget) -> bool:
        """Compact if a request was too long and a summary may be shorter.

        True if the history has become shorter.

        Raises:
            CodexError: an extension refused to compact, or the provider refuses every request.
        """
        if not (failure.is_too_long and self._has_more_than(_SUMMARY_TOKENS)):
            return False
        return await self._compact(
            "auto", lambda: self._ask(retries, is_full=True), failure
        )

    async def try_shorter(self, failure: ModelError, retries: RetryBudget) -> bool:
        """Compact, once in a turn, after a large request that the provider may have found too long.

        True if the history has become shorter.

        Raises:
            CodexError: an extension refused to compact, or the provider refuses every request.
        """
        is_guess = failure.may_be_too_long and self._guessed_in != self._turn_id
        if not (is_guess and self._has_more_than(_LARGE_TOKENS)):
            return False
        self._guessed_in = self._turn_id
        self._session.warn(
            f"The conversation may be too long for the model, and is shortened once: {failure}"
        )
        return await self._compact(
            "auto", lambda: self._ask(retries, is_full=True), failure
        )

    async def shorten(self, failure: ModelError) -> bool:
        """Shorten the history without a summary if a request was too long.

        True if it has become shorter.

        Raises:
            CodexError: an extension refused to compact.
        """
        return failure.is_too_long and await self._compact("auto", None, failure)

    async def compact(self, retries: RetryBudget) -> None:
        """Replace the history by the model's summary at the user's request.

        Raises:
            CodexError: there is no summary. The history is unchanged.
        """
        await self._compact("manual", lambda: summary_by_model(self._session, retries))

    async def _compact(
        self,
        trigger: Literal["auto", "manual"],
        ask: Callable[[], Awaitable[str | None]] | None,
        failure: ModelError | None = None,
    ) -> bool:
        """Replace the history; after a failure only by a shorter one.

        False if no replacement was possible.

        Args:
            failure: the failure after which the history must become shorter, if there is one.
            ask: returns the summary. If `ask` or its result is None, the history is shortened
                without a summary.
        """
        session = self._session
        item_id = session.next_live_id()
        is_done = False
        kept: list[Note] = []
        compaction = Compaction(trigger, kept.append)
        session.emit(events.ItemStarted(event_items.ContextCompaction(id=item_id)))
        try:
            async with session.extension.around_compaction(compaction):
                summary = None if ask is None else await ask()
                notes = [*session.extension.context("compact"), *kept]
                context = self._log.new_context(session.settings, notes)
                if summary is not None:
                    is_done = self._use_summary(summary, context, failure)
                is_done = is_done or self._shorten(context, failure)
        finally:
            status = "completed" if is_done else "failed"
            item = event_items.ContextCompaction(id=item_id, status=status)
            session.emit(events.ItemCompleted(item))
        return is_done

    def _use_summary(
        self,
        summary: str,
        context: Sequence[EncodedItem],
        failure: ModelError | None,
    ) -> bool:
        """Replace the history by the context, the latest prompts and the summary.

        False if there was a failure, and the new history would not be shorter.
        """
        text = f"{instruction_text('compact/summary.md')}\n{summary}"
        items = [*context, *self._latest_prompts()]
        return self._replace(items, text, only_shorter=failure is not None)

    def _replace(
        self, items: Sequence[EncodedItem], last_text: str, *, only_shorter: bool
    ) -> bool:
        """Replace the history by `items` and a message with `last_text`.

        False, without a change, if the new history would have to be shorter and is not.
        """
        settings = self._session.settings
        items = [*items, message("user", [input_text(last_text)])]
        if only_shorter:
            bytes_before = sum(map(len, self._log.request(settings).input))
            if sum(map(len, items)) >= bytes_before:
                return False
        self._log.compact(items, last_text, settings)
        tokens = estimated_tokens(self._log.items)
        self._session.count(Usage(), Usage(input_tokens=tokens))
        return True

    def _latest_prompts(self) -> Sequence[EncodedItem]:
        """The prompts of the user, shortened to what a compacted history may keep of them."""
        window = self._session.settings.context_window
        kept_tokens = min(_KEPT_PROMPT_TOKENS, window // _KEPT_PART_OF_WINDOW)
        room = _BYTES_PER_TOKEN * kept_tokens
        prompts = [item for item in self._log.items if user_prompt(item) is not None]
        return shortened(prompts, room).items

    def _shorten(
        self, context: Sequence[EncodedItem], failure: ModelError | None
    ) -> bool:
        """Cut the history after its context to half, and to half of the window at most.

        False if nothing can go.
        """
        settings = self._session.settings
        request = self._log.request(settings)
        mark = instruction_text("compact/shortened.md")
        head = [*context, message("user", [input_text(mark)])]
        # Old context messages must not follow the new ones: the model would believe the last.
        behind = request.input[context_length(request.input) :]
        rest = [
            item for item in behind if item not in head and not is_context_message(item)
        ]
        size = size_for(failure)
        room = sum(map(size, rest)) // 2
        if size is weight:
            fixed = replace(request, input=head).estimated_tokens
            room = min(room, self._room_beside(fixed, failure))
        short = shortened(rest, room, size)
        items = [*context, *short.items]
        if not self._replace(items, mark, only_shorter=True):
            return False
        self._tell_shortened(short, request.estimated_tokens)
        return True

    def _room_beside(self, fixed_tokens: int, failure: ModelError | None) -> int:
        """Half of the window that `fixed_tokens` leave free, in bytes of text."""
        settings = self._session.settings
        window = settings.context_window
        if settings.auto_compact_token_limit:
            window = min(window, settings.auto_compact_token_limit)
        told = None
        if failure is not None:
            told = failure.limit_tokens
        # Ignore a limit that is smaller than the context: it would cut all the rest.
        if told is not None and told > fixed_tokens:
            window = min(window, told)
        free_bytes = _BYTES_PER_TOKEN * (window - fixed_tokens)
        return max(0, free_bytes // 2)

    def _tell_shortened(self, short: Shortened, tokens_before: int) -> None:
        why = ""
        if self._problem is not None:
            why = f" ({self._problem})"
        tokens = self._log.request(self._session.settings).estimated_tokens
        self._session.warn(
            f"The conversation was shortened without a summary{why}, from about"
            f" {tokens_before} tokens to {tokens}. Outputs cut: {short.outputs};"
            f" turns that lost answers and calls: {short.turns};"
            f" prompts cut: {short.prompts}."
        )

    def _has_more_than(self, tokens: int) -> bool:
        """True if the history has more than `tokens` after its context, and is worth compacting."""
        items = self._log.items
        after_context = items[context_length(items) :]
        if estimated_tokens(after_context) <= tokens:
            return False
        return is_worth_compacting(items)

    @property
    def _turn_id(self) -> str:
        turn = self._session.turn
        assert turn is not None
        return turn.id

    async def _ask(
        self,
        retries: RetryBudget,
        *,
        is_full: bool,
    ) -> str | None:
        """Ask the model for a summary; None if it refuses, or refused earlier in this turn.

        Args:
            is_full: True if the history does not fit any more: None also stands for a failure
                that might pass.

        Raises:
            CodexError: the model cannot be asked now, and the history still fits.
        """
        if self._turn_id not in {self._failed_in, self._refused_in}:
            self._problem = None
            try:
                return await summary_by_model(self._session, retries)
            except (ModelError, CompactionFailed) as error:
                self._problem = error
                if isinstance(error, ModelError) and error.is_too_long:
                    self._refused_in = self._turn_id
        problem = self._problem
        if problem is None or _is_final(problem):
            return None
        if is_full and problem.retryable:
            return None
        raise problem


def is_worth_compacting(items: Sequence[EncodedItem]) -> bool:
    """True if the history has more than context and prompts."""
    return any(map(is_models, items[context_length(items) :]))


def _is_final(error: CodexError) -> bool:
    """True if the provider would refuse a summary again, but not every request.

    Neither the key, nor the quota, nor the service is the cause.
    """
    return (
        not error.retryable
        and error.exit_code is ExitCode.TURN_FAILED
        and error.code not in QUOTA_CODES
        and error.status not in {HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.NOT_FOUND}
    )
