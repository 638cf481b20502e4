"""Runs one session of a client: its prompts, one after another, and the updates about them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from codex_py.app.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, JsonRpc, RpcError
from codex_py.app.options import SessionOptions
from codex_py.app.served_thread import ServedThread, ServedTurn
from codex_py.app.session import Session, TurnResult
from codex_py.app.settings import configured_choices, model_of_provider
from codex_py.app.thread import thread_items
from codex_py.config.config import Config
from codex_py.errors import CodexError, ExitCode, SessionError, UsageError
from codex_py.filesystem.denials import denials_of
from codex_py.filesystem.own_folder import own_folder
from codex_py.frontends.acp.files import EditorFiles
from codex_py.frontends.acp.mentions import unsaved_texts
from codex_py.frontends.acp.options import EditorOptions, models_of_provider
from codex_py.frontends.acp.prompts import (
    Commands,
    EditorPrompt,
    prompt_images,
    read_prompt,
)
from codex_py.frontends.acp.questions import ClientCapabilities, EditorQuestions
from codex_py.frontends.acp.terminals import EditorTerminals
from codex_py.frontends.acp.unprompted import UnpromptedSessions
from codex_py.frontends.acp.updates import Update, Updates
from codex_py.protocol import event_items, events
from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.prompts import user_prompt
from codex_py.streams.plain_text import cut

AUTH_REQUIRED: Final = -32000
"""ACP's error code for a session that needs a login."""
NOT_FOUND: Final = -32002
"""ACP's error code for a session that does not exist."""
_OUTPUT_INTERVAL_S: Final = 0.4
"""The time between two updates with live output."""
_TITLE: Final = 80
"""Limit for the title of a session, in characters."""


def rpc_error(error: CodexError) -> RpcError:
    """The JSON-RPC error for a `CodexError`."""
    match error:
        case CodexError(exit_code=ExitCode.AUTHENTICATION):
            code = AUTH_REQUIRED
        # Only a session that is not found is a mistake of usage.
        case SessionError(exit_code=ExitCode.USAGE):
            code = NOT_FOUND
        case UsageError():
            code = INVALID_PARAMS
        case _:
            code = INTERNAL_ERROR
    data = {"code": error.code, "retryable": error.retryable}
    return RpcError(code, str(error), data)


class EditorSession(ServedThread):
    """A session that a client has open. The updates about it wait until it is announced.

    Args:
        known_as: the client's id of the session; empty for a new session.

    Attributes:
        id: the client's id of the session; empty until a new session is open.
    """

    def __init__(
        self,
        rpc: JsonRpc,
        config: Config,
        options: SessionOptions,
        environment: Mapping[str, str],
        client: ClientCapabilities,
        unprompted: UnpromptedSessions,
        known_as: str = "",
    ) -> None:
        files = EditorFiles(
            rpc,
            can_read=client.can_read_files,
            can_write=client.can_write_files,
            folders=(config.cwd, *options.add_dirs),
        )
        if client.can_read_files or client.can_write_files:
            options = replace(options, open_texts=files)
        terminals = EditorTerminals(rpc, config)
        where = config.settings.acp.client_terminal
        if client.can_run_commands and where != "never":
            options = replace(
                options,
                starts_outside=terminals.hosting,
                leads_outside=where == "always",
            )
        super().__init__(options, environment)
        self._files = files
        self._terminals = terminals
        self.hold_notices()
        self.id = known_as
        self._rpc = rpc
        self._unprompted = unprompted
        self._config = config
        prefix = new_thread_id()[-6:]
        self._updates = Updates(prefix, config.cwd, has_notices=client.has_notices)
        self._questions = EditorQuestions(rpc, self._updates, self._send, client)
        self.approver = self._questions
        if client.has_forms or client.has_urls:
            self.elicitor = self._questions
        self._choices = configured_choices(config, options.add_dirs)
        models = models_of_provider(config, environment)
        self._offered = EditorOptions(config, self._choices, models, options.add_dirs)
        self._commands = Commands(config, environment)
        self._timer: asyncio.TimerHandle | None = None
        """Sends the live output; None while all of it is sent."""

    def configuration(self) -> Config:
        return self._config

    async def open(self) -> Session:
        session = await super().open()
        self.id = self.id or session.thread_id
        self._questions.session_id = self.id
        self._files.session_id = self.id
        self._terminals.session_id = self.id
        await asyncio.to_thread(self._commands.find)
        return session

    async def close(self) -> None:
        await super().close()
        await self._terminals.close()
        if self.options.new_id is not None:
            await asyncio.to_thread(self._unprompted.add, self.id)
        elif self.id:
            await asyncio.to_thread(self._unprompted.remove, self.id)

    async def replay(self) -> None:
        """Send the whole conversation so far."""
        session = self.session
        encoded = await asyncio.to_thread(session.initial_items)
        prompts = filter(user_prompt, encoded)
        for item in await asyncio.to_thread(thread_items, encoded):
            # The image files of a prompt are gone; the history contains the images.
            if isinstance(item, event_items.UserMessage):
                prompt = next(prompts, None)
                images = []
                if prompt is not None:
                    images = prompt_images(prompt)
                updates = self._updates.prompt(item.text, images)
            else:
                updates = self._updates.item(item)
            for update in updates:
                self._notify(update)
            await self._rpc.drained()

    def announce(self) -> None:
        """Send the waiting updates, after the answer that the caller is about to return.

        That answer tells the client about the session.
        """
        self._send([self._commands.update()])
        if self.session.has_begun:
            self._send(self._updates.of(self.session.token_usage))
        self.release_notices()

    def state(self) -> dict[str, Any]:
        """The options and their values, for the answer to a request that opens the session."""
        choices = self._choices
        options = self._offered.shown(choices)
        modes = self._offered.modes(choices)
        return {"configOptions": options, "modes": modes}

    async def prompt(self, blocks: Sequence[Any]) -> str:
        """Run a turn after all earlier ones. It can be cancelled from the start.

        Returns:
            The stop reason of ACP.

        Raises:
            RpcError: the turn failed, or a part of the prompt cannot be used.
        """
        prompt = read_prompt(blocks)
        turn = self.begin(lambda: self._turn(prompt))
        return await _stop_reason(turn)

    def choose(self, option: str, value: str) -> list[dict[str, Any]]:
        """Change an option for the turns that begin from now on. Returns all options.

        Raises:
            RpcError: the option or its value is unknown.
        """
        choices = self._offered.chosen(self._choices, option, value)
        if not self.session.is_running:
            self.session.change(choices)
        self._choices = choices
        options = self._offered.shown(choices)
        mode = self._offered.modes(choices)["currentModeId"]
        self._send([{"sessionUpdate": "current_mode_update", "currentModeId": mode}])
        self._send(
            [{"sessionUpdate": "config_option_update", "configOptions": options}]
        )
        return options

    def show(self, event: events.Event) -> None:
        self._send(self._updates.of(event))
        if self._updates.has_output and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_OUTPUT_INTERVAL_S, self._show_output)

    async def _turn(self, prompt: EditorPrompt) -> TurnResult | None:
        """Run a turn, and close the calls that it leaves open.

        Returns None for a command that was answered without the model.
        """
        answer = await self._commands.answer(prompt, self.session)
        if answer is not None:
            self._send([self._updates.answer(answer)])
            return None
        try:
            prompt = await self._commands.expanded(prompt, self.session)
            self._choose_for_turn(prompt.model)
            if prompt.compacts:
                return await self.session.compact()
            return await self._run(prompt)
        finally:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._send(self._updates.end())

    def _choose_for_turn(self, model: str | None) -> None:
        """Give the session the client's choices. `model`: the turn's own; None if it has none."""
        choices = self._choices
        if model is not None:
            model = model_of_provider(self._config, model)
            choices = replace(choices, model=model, reasoning_effort=None)
        if choices != self.session.settings.choices:
            self.session.change(choices)

    async def _with_unsaved(self, prompt: EditorPrompt) -> EditorPrompt:
        """Add the text of linked files that is not saved."""
        if not prompt.links or not self._files.can_read:
            return prompt
        rules = self.session.settings.sandbox_policy.files
        passages = await unsaved_texts(
            prompt.links, self._files, denials_of(rules).refuses
        )
        context = "\n".join([part for part in (prompt.context, *passages) if part])
        return replace(prompt, context=context)

    async def _run(self, prompt: EditorPrompt) -> TurnResult:
        """Run a turn. The files of images exist until it ends."""
        session = self.session
        prompt = await self._with_unsaved(prompt)
        if not session.has_begun:
            title = cut(" ".join(prompt.said.split()), _TITLE)
            self._send([{"sessionUpdate": "session_info_update", "title": title}])
        if not prompt.images:
            return await session.run_turn(prompt.text)
        with own_folder(self._config.home, "images") as folder:
            images: list[Path] = []
            for number, data in enumerate(prompt.images, 1):
                image = folder / f"image-{number}"
                await asyncio.to_thread(image.write_bytes, data)
                images.append(image)
            return await session.run_turn(prompt.text, images=images)

    def _show_output(self) -> None:
        self._timer = None
        for update in self._updates.output():
            self._notify(update, is_live=True)

    def _send(self, updates: Iterable[Update]) -> None:
        for update in updates:
            self.tell(partial(self._notify, update))

    def _notify(self, update: Update, *, is_live: bool = False) -> None:
        params = {"sessionId": self.id, "update": update}
        self._rpc.notify("session/update", params, is_live=is_live)


async def _stop_reason(turn: ServedTurn[TurnResult | None]) -> str:
    """Wait for the end of a turn, and return the stop reason of ACP.

    Raises:
        RpcError: the turn failed.
    """
    error: CodexError | None = None
    try:
        result = await turn.ended()
        if result is not None:
            error = result.error
    except CodexError as failure:
        error = failure
    if error is None:
        return "end_turn"
    if error.exit_code == ExitCode.TURN_LIMIT:
        return "max_turn_requests"
    if error.code == "aborted":
        return "cancelled"
    raise rpc_error(error)
