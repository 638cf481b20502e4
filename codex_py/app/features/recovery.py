"""The models that may answer a thread: its own model, and `model_fallbacks`. LIGHT.

If a request fails for good, the next suitable model continues with the same history, in the middle
of the turn. A server that refuses a part of the request is asked again without that part; see
`refusals`.
"""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codex_py.app.features.text_tools import FormatStrikes
from codex_py.app.model import configured_provider
from codex_py.app.options import SessionSetup
from codex_py.app.settings import turn_settings
from codex_py.errors import CodexError, ConfigError, ModelError, StreamError
from codex_py.model.catalog import model_info
from codex_py.model.client import UnavailableClient
from codex_py.model.providers import Provider
from codex_py.protocol.extension import Compaction, Extension, Thread, TurnStop
from codex_py.protocol.prompts import Note
from codex_py.protocol.settings import TurnSettings
from codex_py.protocol.stream import (
    ModelClient,
    ModelStream,
    Prompt,
    ResponseEvent,
    ToolChoice,
)
from codex_py.protocol.tools import ToolSpec
from codex_py.tools.offered import own_names

if TYPE_CHECKING:
    from codex_py.app.features.refusals import Refusals

_FIRST_AGAIN_S = 300.0
"""The time after which the first provider is tried again, if it does not name one."""
_TOO_LONG = "context_length_exceeded"


def fallbacks(setup: SessionSetup) -> list[tuple[Provider, str]]:
    """Return the providers of `model_fallbacks`, and the model of each.

    Raises:
        ConfigError: there is no such provider, or it is configured wrongly.
    """
    found: list[tuple[Provider, str]] = []
    for name, model in setup.config.model_fallbacks:
        config = replace(setup.config, model_provider=name, model=model)
        try:
            provider = configured_provider(config, setup.environment)
        except ConfigError as error:
            raise ConfigError(
                f"model_fallbacks: {error}", key=("model_fallbacks",)
            ) from error
        found.append((provider, model))
    return found


class _Link:
    """One model of the chain.

    Args:
        model: None for the thread's own model, with the thread's own client.
    """

    def __init__(self, provider: Provider, model: str | None) -> None:
        self.provider = provider
        self.model = model
        self.client: ModelStream | None = None
        """Sends the requests; None: the thread's own client does, or the link was never used."""
        self.settings: TurnSettings | None = None
        """The settings for this model; None for the thread's own, or before the first use."""
        self.refusals: Refusals | None = None
        """The parts of requests that its server refuses; None while it has refused nothing."""
        self.stated_window: int | None = None
        """The tokens that the model takes, as its server said when it refused a request."""


class ModelChain:
    """Lets a thread continue when its provider fails or refuses something.

    The links of the chain are the thread's own model, and then the fallbacks in their order.
    """

    _thread: Thread
    """The thread; set when the session is made, as the links are."""
    _links: list[_Link]
    _link: _Link
    """The link in use."""

    def __init__(self, setup: SessionSetup) -> None:
        self._setup = setup
        self._prompt: Prompt | None = None
        """The last request, before it was adapted to the model in use."""
        self._current = 0
        """The index of the link in use."""
        self._last_fallback = 0
        """The link that was in use before the first one was tried again; 0 if the first is not on
        trial."""
        self._first_again_at_s = 0.0
        """The time when the first link is tried again, on the clock of `time.monotonic()`."""
        self._failed_first_model = ""
        """The thread's model when the first link failed. If the user has chosen another model
        since, it is tried at once."""
        self._strikes = FormatStrikes()

    def __call__(self, thread: Thread) -> Extension:
        """Make the chain of the thread.

        Raises a `ConfigError` if there is no such provider, or a fallback is configured wrongly.
        """
        self._thread = thread
        first = configured_provider(self._setup.config, self._setup.environment)
        self._links = [_Link(first, None)]
        if self._setup.config.model_fallbacks:
            for provider, model in fallbacks(self._setup):
                self._links.append(_Link(provider, model))
        self._link = self._links[0]
        return Extension(
            wrap_model=self._wrap_model,
            recover=self._recover,
            before_request=self._before_request,
            before_stop=self._before_stop,
            around_compaction=self._around_compaction,
            turn_facts=self._turn_facts,
        )

    def _wrap_model(self, model: ModelStream) -> ModelStream:
        """Send a request to the model in use, without what its server refuses."""

        def stream(
            prompt: Prompt,
        ) -> AbstractAsyncContextManager[AsyncIterator[ResponseEvent]]:
            self._prompt = prompt
            link = self._link
            prompt = self._adapted(prompt, link)
            if link.settings is not None:
                problem = _too_small(prompt, link.settings)
                if problem is not None:
                    raise ModelError(f"{self._name(link)}: {problem}", code=_TOO_LONG)
            response = (link.client or model)(prompt)
            if self._writes_calls:
                return self._strikes.watched(response)
            return response

        return stream

    async def _recover(self, error: ModelError, retries_left: int) -> bool:
        """Make the next request succeed: change it, or send it to another model.

        Returns False if neither works. While retries are left, another model gets the request only
        if the first one is on trial.
        """
        prompt = self._prompt
        if prompt is None:
            return False
        if self._remedy(error, prompt):
            return True
        if error.limit_tokens is not None:
            self._link.stated_window = error.limit_tokens
        is_on_trial = self._last_fallback > 0
        is_retried = retries_left > 0 and not is_on_trial
        if is_retried or not error.another_may_answer:
            return False
        # If the trial of the first link fails, the chain continues where it was before.
        next_place = self._last_fallback if is_on_trial else self._current + 1
        for place in range(next_place, len(self._links)):
            link = self._links[place]
            problem = self._problem(link, error, prompt)
            if problem is None:
                self._replace_failed(place, error)
                return True
            self._thread.warn(f"{self._name(link)} cannot go on: {problem}")
        return False

    def _replace_failed(self, place: int, error: ModelError) -> None:
        """Go on with the link at this place, and tell the user why."""
        if self._current == 0:
            self._let_first_rest(error)
        failed = self._link
        self._use(place)
        self._last_fallback = 0
        self._thread.warn(
            f"provider {failed.provider.id} failed: {error}; going on with {self._name(self._link)}"
        )

    async def _before_request(self) -> Sequence[Note]:
        """Try the first link again if it is time, and tell the model of a call it wrote wrongly."""
        is_due = time.monotonic() >= self._first_again_at_s
        has_other_model = self._thread.settings.model != self._failed_first_model
        if self._current and (is_due or has_other_model):
            self._last_fallback = self._current
            self._use(0)
            self._thread.warn(f"trying {self._name(self._link)} again")
        else:
            # If the first link was on trial, its request has succeeded in the meantime.
            self._last_fallback = 0
        if not self._writes_calls:
            return ()
        note = self._strikes.note(is_end=False)
        return () if note is None else (note,)

    async def _before_stop(self, _: TurnStop) -> Note | None:
        if self._writes_calls:
            return self._strikes.note(is_end=True)
        return None

    def _around_compaction(self, _: Compaction) -> AbstractAsyncContextManager[None]:
        # A summary has no calls.
        return self._strikes.ignored()

    @property
    def in_use(self) -> tuple[str, str]:
        """The provider and the model that get the next request."""
        model = self._link.model or self._thread.settings.model
        return self._link.provider.id, model

    def _turn_facts(self) -> Mapping[str, Any]:
        if len(self._links) == 1:
            return {}
        provider, model = self.in_use
        return {"model": model, "provider": provider}

    def _use(self, place: int) -> None:
        """Send the next requests to the link at this place of the chain."""
        self._current = place
        self._link = self._links[place]

    @property
    def _writes_calls(self) -> bool:
        """True if the model in use writes its calls as text."""
        return self._link.provider.profile.tools == "text"

    def _name(self, link: _Link) -> str:
        return f"{link.provider.id}/{link.model or self._thread.settings.model}"

    def _let_first_rest(self, error: ModelError) -> None:
        """Set the time at which the first provider is tried again."""
        wait_s = None
        if isinstance(error, StreamError):
            wait_s = error.retry_after_s
        has_failed_again = self._last_fallback > 0
        if wait_s is None or has_failed_again:
            # A server that always asks for a second would be tried before each request.
            wait_s = max(wait_s or 0.0, _FIRST_AGAIN_S)
        self._first_again_at_s = time.monotonic() + wait_s
        self._failed_first_model = self._thread.settings.model

    def _remedy(self, error: ModelError, prompt: Prompt) -> bool:
        """Change the requests to the provider in use so that it accepts them.

        Returns False if no change is known.
        """
        link = self._link
        if link.refusals is None:
            link.refusals = _refusals(link.provider)
        refusals = link.refusals
        may_write_calls = self._may_write_calls(prompt)
        change = refusals.learn(error, prompt, may_write_calls=may_write_calls)
        if change is None:
            return False
        if refusals.provider is not link.provider:
            link.provider = refusals.provider
            link.client = self._connect(link.provider).stream
        self._thread.warn(f"provider {link.provider.id} {change}: {error}")
        return True

    def _may_write_calls(self, prompt: Prompt) -> bool:
        """True if calls may be written as text.

        A model that is known to call tools would only get worse.
        """
        link = self._link
        model = link.model or self._thread.settings.model
        info = model_info(model, self._setup.config.settings.model_catalog_json)
        calls_tools = info.known and link.provider.wire_api == "responses"
        return bool(prompt.tools) and not calls_tools

    def _connect(self, provider: Provider) -> ModelClient:
        assert self._setup.connect is not None
        return self._setup.connect(provider)

    def _problem(
        self,
        link: _Link,
        error: ModelError,
        prompt: Prompt,
    ) -> str | None:
        """Return the reason why a link cannot continue with a request; None if it can.

        Afterwards, a link that can continue has its settings and its client.
        """
        try:
            settings = self._settings(link)
            link.settings = settings
            if link.client is None:
                client = self._connect(link.provider)
                if isinstance(client, UnavailableClient):
                    return str(client.error)
                link.client = client.stream
        except CodexError as failure:
            return str(failure)
        if error.is_too_long and self._is_no_larger(link):
            return "its context window is not larger"
        if prompt.has_images and not _takes_images(link, settings):
            return "it takes no images"
        return _too_small(self._adapted(prompt, link), settings)

    def _settings(self, link: _Link) -> TurnSettings:
        """Return the settings of a turn with the model of a fallback."""
        assert link.model is not None
        # These settings belong to the configured model.
        config = replace(
            self._setup.config,
            model_context_window=None,
            model_max_output_tokens=None,
            model_auto_compact_token_limit=None,
        )
        setup = replace(self._setup, config=config)
        choices = replace(self._thread.settings.choices, model=link.model)
        return turn_settings(setup, link.provider, choices)

    def _is_no_larger(self, link: _Link) -> bool:
        """True if a link's window is known to be no larger than the window in use.

        A guess excludes nothing.
        """
        window = self._window(link)
        window_in_use = self._window(self._link)
        if window is None or window_in_use is None:
            return False
        return window <= window_in_use

    def _window(self, link: _Link) -> int | None:
        """Return the whole window of a link in tokens; None if it is unknown."""
        if link.stated_window is not None:
            return link.stated_window
        config = self._setup.config
        if link.model is None and config.model_context_window is not None:
            return config.model_context_window
        model = link.model or self._thread.settings.model
        info = model_info(model, config.settings.model_catalog_json)
        return info.context_window if info.known else None

    def _adapted(self, prompt: Prompt, link: _Link) -> Prompt:
        """Adapt a request of the thread to the model of a link."""
        if link.settings is not None:
            prompt = self._for_another_model(prompt, link, link.settings)
        if link.refusals is not None:
            prompt = link.refusals.adapted(prompt)
        return prompt

    def _for_another_model(
        self, prompt: Prompt, link: _Link, settings: TurnSettings
    ) -> Prompt:
        """Return a request of the thread with the settings of another model."""
        max_output = settings.max_output_tokens
        asked = prompt.max_output_tokens
        if asked and asked != self._thread.settings.max_output_tokens:
            # An extension asks for a shorter answer.
            max_output = min(asked, max_output or asked)
        is_same_provider = link.provider.id == self._links[0].provider.id
        prompt = replace(
            prompt,
            model=settings.model,
            reasoning=settings.reasoning,
            verbosity=settings.verbosity,
            max_output_tokens=max_output,
            abilities=settings.abilities,
            parallel_tool_calls=settings.parallel_tool_calls,
            service_tier=settings.service_tier if is_same_provider else None,
        )
        if not prompt.tools:
            return prompt
        tools = self._tools_for(prompt, settings)
        names = {spec.name for spec in tools}
        chosen = tuple(name for name in prompt.tool_choice.names if name in names)
        choice = ToolChoice(prompt.tool_choice.mode, chosen)
        return replace(prompt, tools=tools, tool_choice=choice)

    def _tools_for(
        self,
        prompt: Prompt,
        settings: TurnSettings,
    ) -> list[ToolSpec]:
        """Return our own tools in the form for another model, and the other tools of the request.

        A tool of our own that the request leaves out stays left out.
        """
        offered = {spec.name for spec in prompt.tools}
        own = {spec.name for spec in self._thread.settings.tools}
        own.intersection_update(own_names())
        left_out = own - offered
        tools = [spec for spec in settings.tools if spec.name not in left_out]
        tools += [spec for spec in prompt.tools if spec.name not in own]
        return tools


def _refusals(provider: Provider) -> "Refusals":
    from codex_py.app.features.refusals import Refusals  # 4 ms

    return Refusals(provider)


def _takes_images(link: _Link, settings: TurnSettings) -> bool:
    """True if neither the model, nor its provider's profile, nor its server excludes images."""
    if not settings.abilities.images or link.provider.profile.text_content_only:
        return False
    return link.refusals is None or link.refusals.takes_images


def model_in_use(thread: Thread) -> tuple[str, str]:
    """Return the provider and the model that get the next request of a thread.

    They are those of a fallback, if one has taken over. Call it only once the session has started.
    """
    chain = thread.feature(ModelChain)
    assert chain is not None
    return chain.in_use


def _too_small(prompt: Prompt, settings: TurnSettings) -> str | None:
    """Return a sentence if the request does not fit into the context window; else None."""
    tokens = prompt.estimated_tokens
    window = settings.context_window
    if tokens <= window:
        return None
    return (
        f"its context window takes {window} tokens, the conversation has about {tokens}"
    )
