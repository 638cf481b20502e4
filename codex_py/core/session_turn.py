"""One turn of a session: from its first event to its last, with its requests from the history and its results into
it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from codex_py.core.compact import Compactor, is_worth_compacting
from codex_py.core.host import Host
from codex_py.core.turn import RetryBudget, Turn
from codex_py.core.turn_end import TurnOutcome, checked_facts
from codex_py.errors import (
    CodexError,
    ExitCode,
    ModelError,
    PromptRefused,
    TurnSkipped,
    single_error,
)
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import Denied
from codex_py.protocol.bugs import bug_found, bug_line
from codex_py.protocol.extension import TurnStart, TurnStop
from codex_py.protocol.frozen import frozen
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.response_order import Place
from codex_py.protocol.stream import Prompt, Usage


@frozen
class TurnResult:
    """What a turn of a `Session` brought."""

    last_message: str | None
    """Text of the turn's last agent message."""
    usage: Usage
    """Of the whole thread."""
    error: CodexError | None = None
    denied: bool = False
    """True if a policy, or the user, refused a call."""
    exit_code: int = 0
    """That of `codex-py exec`: of the error, if the turn failed; else what an extension sets, or 3 if one was
    overridden, see `Extension.before_stop`. 0: the turn completed."""

    def raise_for_error(self) -> None:
        """Raises `error`, a `CodexError`, if the turn failed."""
        if self.error is not None:
            raise self.error


class SessionTurn:
    """The `Conversation` of a turn, or the state of a compaction. Made in the task that runs it."""

    def __init__(
        self, host: Host, compactor: Compactor, start: TurnStart, retries: RetryBudget
    ) -> None:
        self.start = start
        self.takes_steering = False
        """The turn has a next request, with which steered prompts go out."""
        self.ending: CodexError | None = None
        """Why the turn was cancelled, if not by its user."""
        self._host = host
        self._compactor = compactor
        self._retries = retries
        self._is_ended = False
        """The turn was cancelled by `end`."""
        self._is_over = False
        """The last event of the turn is due: `end` is too late."""
        self._last_message: str | None = None
        self._denied = Denied()
        self._overridden: events.StopOverridden | None = None
        """An extension wanted to continue the turn that ends."""
        task = asyncio.current_task()
        assert task is not None
        self._task: asyncio.Task[Any] = task
        self._cancellations = task.cancelling()

    async def run(self, work: Callable[["SessionTurn"], Awaitable[None]]) -> TurnResult:
        """Do the work between the first event and the last. See `Session.run_turn`.

        `work`: `answer` or `compact`.
        """
        self._host.emit(events.TurnStarted(self.start.id))
        outcome = await self._outcome(await self._end_of(work))
        bug = outcome.bug
        if bug is not None:
            self._host.emit(bug_found(bug))
        for event in outcome.events(
            self._host.log.usage, self._denied, self._overridden
        ):
            self._host.emit(event)
        return self._result(outcome)

    async def answer(self) -> None:
        """Send requests until the model calls nothing more."""
        log = self._host.log
        turn = Turn(
            self,
            self._host.model,
            self._host.handlers,
            self._retries,
            max_responses=self._host.settings.max_responses,
            ran=log.ran,
        )
        was_unfinished = log.is_unfinished
        log.is_unfinished = True
        try:
            open_call = log.take_open_call()
            if open_call is not None:
                # Nothing may come between a call and its output.
                await turn.answer(open_call)
            await self._begin()
            await turn.run()
            await self._be_cancelled()
        except asyncio.CancelledError:
            log.abort(self.ending)
            raise
        except PromptRefused:
            log.is_unfinished = was_unfinished
            raise
        log.is_unfinished = False

    async def compact(self) -> None:
        """Raises a `CodexError` if there is no summary."""
        if not is_worth_compacting(self._host.log.items):
            raise CodexError(
                "there is nothing to compact yet", code="nothing_to_compact"
            )
        await self._compactor.compact(self._retries)

    def end(self, error: CodexError | None = None) -> None:
        """Cancel the turn, once. `error`: the reason; None if the user wants it."""
        if not (self._is_ended or self._is_over):
            self._is_ended = True
            self.ending = error
            self.takes_steering = False
            self._task.cancel()

    def watch(self, event: events.Event) -> None:
        match event:
            case events.ItemCompleted(event_items.AgentMessage(text=text)):
                self._last_message = text
            case events.CallDenied(cause=cause, allow=allow):
                self._denied = self._denied.plus(cause, allow)
            case _:
                pass

    async def prompt(self) -> Prompt:
        host = self._host
        host.log.send_notes()
        while host.steered:
            await self._send(host.steered[0])
            del host.steered[0]
        host.log.tell(await host.extension.before_request())
        host.log.tell_change(host.settings)
        return host.log.request(host.settings, self.start.output_schema)

    def record(self, item: ResponseItem | Note, place: Place) -> None:
        self._host.log.record(item, place)

    def leave_open(self, place: Place) -> None:
        self._host.log.leave_open(place)

    def settle(self, *, whole: bool) -> None:
        self._host.log.settle(whole=whole)

    def emit(self, event: events.Event) -> None:
        self._host.emit(event)

    def report_hidden(self, bug: Exception) -> None:
        self._host.emit(bug_found(bug))
        self._host.warn(f"A call could not be shown: {bug_line(bug)}")

    def add_usage(self, usage: Usage) -> None:
        self._host.count(usage, usage)

    async def should_continue(self, *, follow_up: bool) -> bool:
        if not (follow_up or self._host.steered or await self._extensions_continue()):
            self.takes_steering = False
            return False
        await self._compactor.make_room(self._retries)
        return True

    async def recover(self, failure: ModelError, retries_left: int) -> bool:
        is_shorter = await self._compactor.recover(failure, self._retries)
        if not is_shorter and await self._host.extension.recover(failure, retries_left):
            return True
        is_shorter = is_shorter or await self._compactor.shorten(failure)
        is_shorter = is_shorter or await self._compactor.try_shorter(
            failure, self._retries
        )
        if not is_shorter:
            return False
        self._host.log.forget_missing_calls()
        return True

    async def _end_of(
        self, work: Callable[["SessionTurn"], Awaitable[None]]
    ) -> BaseException | None:
        """Do the work inside `around_turn` of the extensions. Returns what ended it, and raises nothing."""
        end: BaseException | None = None
        try:
            async with self._host.extension.around_turn(self.start):
                try:
                    await work(self)
                except BaseException as error:
                    # The turn fails even if an extension suppresses it.
                    end = error
                    raise
        except BaseException as error:  # noqa: BLE001
            end = error
        if end is None:
            return None
        return single_error(end)

    async def _outcome(self, end: BaseException | None) -> TurnOutcome:
        """Ask the extensions for their facts. Whatever is raised here ends the turn, if nothing has before."""
        self._is_over = True
        facts: Mapping[str, Any] = {}
        try:
            await self._be_cancelled()
            facts = checked_facts(self._host.extension.turn_facts())
            if isinstance(end, TurnSkipped):
                self._host.warn(str(end))
                facts = {
                    **facts,
                    "exit_code": end.exit_code,
                    "prompt_refused": str(end),
                }
        except BaseException as error:  # noqa: BLE001
            end = error if end is None else end
        return TurnOutcome(end, self.ending, facts)

    def _result(self, outcome: TurnOutcome) -> TurnResult:
        """Raises what ended the turn if it is a bug, or a cancellation by others than `end`."""
        facts = outcome.facts
        if outcome.bug is not None:
            raise outcome.bug
        is_cancelled = isinstance(outcome.end, asyncio.CancelledError)
        if self._is_ended:
            self._task.uncancel()
        by_others = self._task.cancelling() > self._cancellations
        if by_others or (is_cancelled and not self._is_ended):
            raise asyncio.CancelledError
        exit_code: int = facts.get("exit_code") or (
            ExitCode.GATE if self._overridden else 0
        )
        error = outcome.error
        if error is not None:
            # Of gates, the most serious one counts; any other error is stronger than they are.
            is_gate = ExitCode.GATE <= error.exit_code <= ExitCode.SANDBOX
            exit_code = max(error.exit_code, exit_code if is_gate else 0)
        denied = self._denied.calls > 0
        usage = self._host.log.usage
        return TurnResult(self._last_message, usage, error, denied, exit_code)

    async def _be_cancelled(self) -> None:
        """Let the cancellation of `end` arrive, if the turn has awaited nothing since.

        Before Python 3.13, `uncancel` does not take back one that has not arrived: the caller's next `await` would get
        it. See https://github.com/python/cpython/issues/116720.
        """
        if self._is_ended:
            await asyncio.sleep(0)

    async def _begin(self) -> None:
        """Record the prompt. It is kept even if the turn fails, unless it is refused.

        Raises:
            CodexError: an extension ended the turn, or refused the prompt.
            StreamError: the history must be compacted, and the provider cannot be reached.
        """
        host = self._host
        prompt = self.start.prompt
        self.takes_steering = True
        notes: Sequence[Note] = ()
        is_refused = False
        try:
            if prompt is not None:
                notes = await self._notes_of(prompt)
            text = "" if prompt is None else prompt.text
            await self._compactor.make_room(self._retries, pending=text)
        except PromptRefused:
            is_refused = True
            raise
        finally:
            if not is_refused:
                host.log.begin_turn(host.settings, host.extension.context)
                if prompt is not None:
                    self._record_prompt(prompt, notes)

    async def _send(self, prompt: UserPrompt) -> None:
        """Record a steered prompt, unless an extension refuses it."""
        host = self._host
        try:
            notes = await self._notes_of(prompt)
        except PromptRefused as error:
            host.warn(str(error))
            host.emit(events.SteeringRefused(prompt.text))
            return
        self._record_prompt(prompt, notes)
        item = event_items.UserMessage(
            id=host.next_live_id(), text=prompt.text, images=prompt.images
        )
        host.emit(events.ItemCompleted(item))

    async def _notes_of(self, prompt: UserPrompt) -> Sequence[Note]:
        settings = self._host.settings
        # Twice the usual number of characters in a token: a prompt that may fit is sent.
        tokens = len(prompt.text) // 8
        window = settings.known_window
        if window is not None and tokens > window:
            text = f"The prompt is too long: it has at least about {tokens:,} tokens, and the context window"
            text += f" of {settings.model} has {window:,}."
            raise PromptRefused(
                text, code="context_length_exceeded", exit_code=ExitCode.USAGE
            )
        return await self._host.extension.before_prompt(prompt)

    def _record_prompt(self, prompt: UserPrompt, notes: Sequence[Note]) -> None:
        host = self._host
        host.log.prompt(prompt, notes, host.settings.image_rule, host.warn)

    async def _extensions_continue(self) -> bool:
        host = self._host
        wanted = await host.extension.before_stop(
            TurnStop(self.start, self._last_message)
        )
        if isinstance(wanted, Note):
            host.log.tell([wanted])
            return True
        # The user may have steered the turn meanwhile.
        if wanted is not None and not host.steered:
            self._overridden = wanted
            rounds = f"as often as allowed ({wanted.rounds})"
            host.warn(
                f"The agent was kept going {rounds}, and the turn ends: {wanted.reason}"
            )
        return bool(host.steered)
