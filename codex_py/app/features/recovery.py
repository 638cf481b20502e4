"""Goes on with a turn whose provider fails or refuses something; see `model_chain`, which is loaded then. LIGHT."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from codex_py.app.loading import load
from codex_py.app.model import configured_provider
from codex_py.app.options import SessionSetup
from codex_py.errors import ModelError
from codex_py.protocol.extension import Compaction, Extension, Thread, TurnStop
from codex_py.protocol.prompts import Note
from codex_py.protocol.stream import ModelStream, Prompt, ResponseEvent


class Recovery:
    def __init__(self, setup: SessionSetup) -> None:
        """
        Raises:
            ConfigError: there is no such provider, or a fallback is configured wrongly.
        """
        self._setup = setup
        self._provider = configured_provider(setup.config, setup.environment)
        if setup.config.model_fallbacks:
            load("codex_py.app.features.model_chain:fallbacks")(setup)

    def __call__(self, thread: Thread) -> Extension:
        self._recovery = recovery = _ThreadRecovery(self._setup, thread)
        if self._setup.config.model_fallbacks or self._provider.profile.tools == "text":
            recovery.load()
        return Extension(
            wrap_model=recovery.wrap_model,
            recover=recovery.recover,
            before_request=recovery.before_request,
            before_stop=recovery.before_stop,
            around_compaction=recovery.around_compaction,
            turn_facts=recovery.turn_facts,
        )

    @property
    def in_use(self) -> tuple[str, str]:
        """The provider and the model that get the next request."""
        return self._recovery.in_use


class _ThreadRecovery:
    """Passes on to a chain of models, once there is one."""

    def __init__(self, setup: SessionSetup, thread: Thread) -> None:
        self._setup = setup
        self._thread = thread
        self._chain: Any = None
        self._prompt: Prompt | None = None

    def load(self) -> Any:
        if self._chain is None:
            make = load("codex_py.app.features.model_chain:ModelChain")
            self._chain = make(self._setup, self._thread)
        return self._chain

    @property
    def in_use(self) -> tuple[str, str]:
        settings = self._thread.settings
        return (settings.provider, settings.model) if self._chain is None else self._chain.in_use

    def wrap_model(self, model: ModelStream) -> ModelStream:
        def stream(prompt: Prompt) -> AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]:
            self._prompt = prompt
            return model(prompt) if self._chain is None else self._chain.stream(model, prompt)

        return stream

    async def recover(self, error: ModelError, retries_left: int) -> bool:
        if self._prompt is None:
            return False
        return self.load().recover(error, retries_left, self._prompt)

    async def before_request(self) -> Sequence[Note]:
        return () if self._chain is None else self._chain.before_request()

    async def before_stop(self, _: TurnStop) -> Note | None:
        return None if self._chain is None else self._chain.before_stop()

    @asynccontextmanager
    async def around_compaction(self, _: Compaction) -> AsyncGenerator[None]:
        # A summary calls nothing.
        with nullcontext() if self._chain is None else self._chain.strikes.ignored():
            yield

    def turn_facts(self) -> Mapping[str, Any]:
        return {} if self._chain is None else self._chain.turn_facts()
