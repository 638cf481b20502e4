"""Tells which account pays for requests to OpenAI, and how much of a ChatGPT plan is used up.

Part of the composition root.
"""

from collections.abc import Mapping

from codex_py.app.model import named_provider, provider_key
from codex_py.config.config import Config
from codex_py.errors import ModelError, StreamError
from codex_py.model.auth import ProviderKey, TokenSource, stored_fields
from codex_py.model.chatgpt.sources import token_source
from codex_py.model.chatgpt.tokens import Tokens, tokens_in
from codex_py.model.chatgpt.usage import plan_reset_credits, plan_usage
from codex_py.model.program_names import own_names
from codex_py.model.providers import chatgpt_url
from codex_py.protocol.json_fields import JsonObject


def account_key(config: Config, environment: Mapping[str, str]) -> ProviderKey | None:
    """Return the key or the token for requests to OpenAI; None if there is none.

    Raises:
        ConfigError: `auth.json` cannot be read, or the provider is configured wrongly.
    """
    provider = named_provider(config, "openai", environment)
    try:
        return provider_key(config, provider, environment)
    except ModelError:
        return None


class PlanAccount:
    """The account that a token of ChatGPT belongs to.

    Args:
        key: the token, which requests are sent with.
    """

    def __init__(
        self, config: Config, environment: Mapping[str, str], key: ProviderKey
    ) -> None:
        self._config = config
        self._environment = environment
        self._key = key

    @property
    def tokens(self) -> Tokens:
        """The tokens of the account, as they are stored now.

        Raises:
            ConfigError: `auth.json` cannot be read.
        """
        stored: Tokens | None = None
        if self._key.login_file is not None:
            stored = tokens_in(stored_fields(self._key.login_file))
        return stored or Tokens(self._key.value)

    async def renew(self) -> None:
        """Renew the login now, if it can be renewed. If that fails for now, the login stays as it is.

        Raises:
            ModelError: the login is over.
            ConfigError: `auth.json` cannot be read or written.
        """
        if self._key.login_file is None:
            return
        try:
            await self._source().after_refusal(self._key)
        except StreamError:
            # It is renewed before the next request.
            return

    async def usage(self) -> JsonObject:
        """Ask ChatGPT for the usage of the plan. See `plan_usage`."""
        return await plan_usage(
            self._address, self._source(), own_names(), self._environment
        )

    async def reset_credits(self) -> JsonObject | None:
        """Ask ChatGPT for the credits that reset limits. See `plan_reset_credits`."""
        return await plan_reset_credits(
            self._address, self._source(), own_names(), self._environment
        )

    @property
    def _address(self) -> str:
        return chatgpt_url(self._config.settings.chatgpt_base_url)

    def _source(self) -> TokenSource:
        workspaces = self._config.settings.forced_chatgpt_workspace_id
        return token_source(self._key, self._environment, workspaces=workspaces)
