"""Goes on with a turn whose provider fails or refuses something; see `model_chain`, which is loaded then. LIGHT."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final

from codex_py.app.model import configured_provider
from codex_py.app.options import SessionSetup
from codex_py.errors import ModelError
from codex_py.protocol.extension import Extension, Thread
from codex_py.protocol.stream import ModelStream, Prompt, ResponseEvent

_NOTHING: Final = Extension()


class Recovery:
    """Passes on to a `ModelChain`, once there is one."""

    def __init__(self, setup: SessionSetup) -> None:
        self._setup = setup
        self._chain = None
        self._prompt: Prompt | None = None

    def __call__(self, thread: Thread) -> Extension:
        """Raises a `ConfigError` if there is no such provider, or a fallback is configured wrongly."""
        self._thread = thread
        config = self._setup.config
        provider = configured_provider(config, self._setup.environment)
        if config.model_fallbacks or provider.profile.tools == "text":
            self._loaded()
        return Extension(
            wrap_model=self._wrap_model,
            recover=self._recover,
            before_request=lambda: self._now.before_request(),
            before_stop=lambda stop: self._now.before_stop(stop),
            around_compaction=lambda compaction: self._now.around_compaction(
                compaction
            ),
            turn_facts=lambda: self._now.turn_facts(),
        )

    @property
    def in_use(self) -> tuple[str, str]:
        """The provider and the model that get the next request."""
        settings = self._thread.settings
        if self._chain:
            return self._chain.in_use
        return (settings.provider, settings.model)

    @property
    def _now(self):
        """The chain, or what does nothing as long as there is none."""
        return self._chain or _NOTHING

    def _loaded(self):
        if self._chain is None:
            from codex_py.app.features.model_chain import ModelChain  # 5 ms

            self._chain = ModelChain(self._setup, self._thread)
        return self._chain

    def _wrap_model(self, model: ModelStream) -> ModelStream:
        """Send a request to the model in use, without what its server refuses."""

        def stream(
            prompt: Prompt,
        ) -> AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]:
            self._prompt = prompt
            if self._chain:
                return self._chain.stream(model, prompt)
            return model(prompt)

        return stream

    async def _recover(self, error: ModelError, retries_left: int) -> bool:
        prompt = self._prompt
        return prompt is not None and self._loaded().recover(
            error, retries_left, prompt
        )
