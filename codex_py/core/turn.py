"""One turn: the model answers, calls run, their outputs go back, until a response has no call.

Everything arrives as an argument; this module names no feature.
"""

import asyncio
from collections.abc import Sequence

from codex_py.core.compact import Compactor
from codex_py.core.response import Response
from codex_py.core.retry import RetryBudget, recover
from codex_py.core.running_turn import RunningTurn
from codex_py.core.session_state import SessionState
from codex_py.errors import ExitCode, ModelError, PromptRefused, TurnLimit
from codex_py.protocol import event_items, events
from codex_py.protocol.extension import TurnStop
from codex_py.protocol.prompts import Note, UserPrompt
from codex_py.protocol.stream import Prompt


class Turn:
    """The requests of one turn, from its prompt to the response that calls nothing.

    Args:
        running: the same turn, as the session sees it.
    """

    def __init__(
        self,
        session: SessionState,
        running: RunningTurn,
        compactor: Compactor,
        retries: RetryBudget,
    ) -> None:
        self._session = session
        self._running = running
        self._compactor = compactor
        self._retries = retries

    async def run(self) -> None:
        """Record the prompt, and send requests until the model calls nothing more.

        When cancelled, every call has its output in the history.

        Raises:
            PromptRefused: an extension refused the prompt. Nothing was recorded.
            ModelError: the provider failed for good, or the budget of retries is spent.
            CodexError: the limit of responses was reached, or an extension ended the turn.
        """
        log = self._session.log
        was_unfinished = log.is_unfinished
        log.is_unfinished = True
        try:
            open_call = log.take_open_call()
            if open_call is not None:
                # Nothing may come between a call and its output.
                await Response(self._session).answer(open_call)
                log.ran.clear()
            await self._begin()
            await self._send_requests()
            await self._running.be_cancelled()
        except asyncio.CancelledError:
            log.abort(self._running.ending)
            raise
        except PromptRefused:
            log.is_unfinished = was_unfinished
            raise
        log.is_unfinished = False

    async def _begin(self) -> None:
        """Record the prompt. It is kept even if the turn fails, unless it is refused.

        Raises:
            CodexError: an extension ended the turn, or refused the prompt.
            StreamError: the history must be compacted, and the provider cannot be reached.
        """
        prompt = self._running.start.prompt
        self._running.takes_steering = True
        notes: Sequence[Note] = ()
        try:
            if prompt is not None:
                notes = await self._notes_of(prompt)
            pending = "" if prompt is None else prompt.text
            await self._compactor.make_room(self._retries, pending=pending)
        except PromptRefused:
            raise
        except BaseException:
            self._record_beginning(prompt, notes)
            raise
        self._record_beginning(prompt, notes)

    def _record_beginning(
        self, prompt: UserPrompt | None, notes: Sequence[Note]
    ) -> None:
        """Append the context that changed, and then the prompt with its notes."""
        session = self._session
        session.log.begin_turn(session.settings, session.extension.context)
        if prompt is not None:
            self._record_prompt(prompt, notes)

    async def _send_requests(self) -> None:
        """Send requests until a response calls nothing, and no extension continues the turn.

        A response that failed counts too, if the next request is a changed one.
        """
        max_responses = self._session.settings.max_responses
        responses = 0
        while responses < max_responses:
            prompt = await self._next_prompt()
            response = Response(self._session)
            failure = await response.run(prompt)
            if failure is not None:
                is_changed = await recover(
                    failure, self._retries, self._remedy, self._session
                )
                if not is_changed:
                    continue
            responses += 1
            self._retries.renew()
            if failure is not None:
                continue
            self._session.log.ran.clear()
            if not await self._should_continue(follow_up=response.follow_up):
                return
        raise TurnLimit(f"the turn was stopped after {max_responses} responses")

    async def _next_prompt(self) -> Prompt:
        """The next request. Every call has its output by now, so notes and prompts may be added."""
        session = self._session
        log = session.log
        log.send_notes()
        while session.steered:
            await self._send_steered(session.steered[0])
            del session.steered[0]
        log.tell(await session.extension.before_request())
        log.tell_change(session.settings)
        return log.request(session.settings, self._running.start.output_schema)

    async def _send_steered(self, prompt: UserPrompt) -> None:
        """Record a steered prompt, unless an extension refuses it."""
        session = self._session
        try:
            notes = await self._notes_of(prompt)
        except PromptRefused as error:
            session.warn(str(error))
            session.emit(events.SteeringRefused(prompt.text))
            return
        self._record_prompt(prompt, notes)
        item = event_items.UserMessage(
            id=session.next_live_id(), text=prompt.text, images=prompt.images
        )
        session.emit(events.ItemCompleted(item))

    async def _notes_of(self, prompt: UserPrompt) -> Sequence[Note]:
        """The notes that extensions add to a prompt.

        Raises a `PromptRefused` if an extension refuses the prompt, or the window cannot hold it.
        """
        settings = self._session.settings
        # Twice the usual number of characters in a token: a prompt that may fit is sent.
        tokens = len(prompt.text) // 8
        window = settings.known_window
        if window is not None and tokens > window:
            raise PromptRefused(
                f"The prompt is too long: it has at least about {tokens:,} tokens, and the context"
                f" window of {settings.model} has {window:,}.",
                code="context_length_exceeded",
                exit_code=ExitCode.USAGE,
            )
        return await self._session.extension.before_prompt(prompt)

    def _record_prompt(
        self,
        prompt: UserPrompt,
        notes: Sequence[Note],
    ) -> None:
        session = self._session
        session.log.prompt(prompt, notes, session.settings.image_rule, session.warn)

    async def _remedy(self, failure: ModelError, retries_left: int) -> bool:
        """Compact, shorten, or let an extension change the next request.

        True if the request is worth sending.
        """
        compactor = self._compactor
        is_shorter = await compactor.recover(failure, self._retries)
        extension = self._session.extension
        if not is_shorter and await extension.recover(failure, retries_left):
            return True
        is_shorter = is_shorter or await compactor.shorten(failure)
        is_shorter = is_shorter or await compactor.try_shorter(failure, self._retries)
        if not is_shorter:
            return False
        self._session.log.forget_missing_calls()
        return True

    async def _should_continue(self, *, follow_up: bool) -> bool:
        """True if another request should be sent. A full history is compacted first.

        Every call has its output by now.

        `follow_up`: the response asks for another request.
        """
        is_wanted = follow_up or self._session.steered
        if not (is_wanted or await self._extensions_continue()):
            self._running.takes_steering = False
            return False
        await self._compactor.make_room(self._retries)
        return True

    async def _extensions_continue(self) -> bool:
        """Ask the extensions whether the turn may end. True if it continues."""
        session = self._session
        stop = TurnStop(self._running.start, self._running.last_message)
        wanted = await session.extension.before_stop(stop)
        if isinstance(wanted, Note):
            session.log.tell([wanted])
            return True
        # The user may have steered the turn meanwhile.
        if session.steered:
            return True
        if wanted is not None:
            self._running.overridden = wanted
            session.warn(
                f"The agent was kept going as often as allowed ({wanted.rounds}), and the turn"
                f" ends: {wanted.reason}"
            )
        return False
