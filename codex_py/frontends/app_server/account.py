"""Serves the account for requests to the model, and the models that can be chosen."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.app.logout import remove_login
from codex_py.app.settings import described_models
from codex_py.app.stored_login import checked_key, store_key, stored_login
from codex_py.config.config import Config
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.items import Fields
from codex_py.streams.standard import tell


class Account:
    """Answers the methods about the account and the models.

    Args:
        config: returns the current configuration.
        later: sends a notification after the answer to the running request.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        environment: Mapping[str, str],
        later: Callable[[str, Fields], None],
    ) -> None:
        self._config = config
        self._environment = environment
        self._later = later

    async def read(self, _: params.Nothing) -> Fields:
        """Describe the account. As in Codex, only the provider `openai` needs an account."""
        config = self._config()
        is_needed = config.model_provider == "openai"
        account = None
        if is_needed and self._has_key(config):
            account = {"type": "apiKey"}
        return {"account": account, "requiresOpenaiAuth": is_needed}

    async def login(self, asked: params.Login) -> Fields:
        key = asked.api_key.strip()
        if not key:
            raise RpcError(INVALID_REQUEST, "the API key is empty")
        store_key(self._config(), checked_key(key))
        done = {"loginId": None, "success": True, "error": None}
        self._later("account/login/completed", done)
        self._later("account/updated", {"authMode": "apikey", "planType": None})
        return {"type": "apiKey"}

    async def cancel(self, asked: params.LoginCancel) -> Fields:
        """Refuse: a login with a key is over at once."""
        raise RpcError(INVALID_REQUEST, f"no login is running: {asked.login_id}")

    async def logout(self, _: params.Nothing) -> Fields:
        await asyncio.to_thread(remove_login, self._config(), self._environment, tell)
        self._later("account/updated", {"authMode": None, "planType": None})
        return {}

    async def models(self, asked: params.ModelList) -> Fields:
        """List a page of the models that can be chosen."""
        config = self._config()
        models = described_models(config, self._environment)
        start = int(asked.cursor)
        end = start + asked.limit
        page = [_model(entry, config.model) for entry in models[start:end]]
        next_cursor = None
        if end < len(models):
            next_cursor = str(end)
        return {"data": page, "nextCursor": next_cursor}

    def _has_key(self, config: Config) -> bool:
        for name in ("CODEX_API_KEY", "OPENAI_API_KEY"):
            if self._environment.get(name):
                return True
        return stored_login(config) is not None


def _model(entry: Mapping[str, Any], default: str) -> Fields:
    """A model in the format of Codex. `default`: the name of the configured model."""
    efforts = [
        {"reasoningEffort": level["effort"], "description": level["description"]}
        for level in entry["supported_reasoning_levels"]
    ]
    return {
        "id": entry["slug"],
        "model": entry["slug"],
        "upgrade": None,
        "displayName": entry["display_name"],
        "description": "",
        "hidden": False,
        "supportedReasoningEfforts": efforts,
        "defaultReasoningEffort": entry["default_reasoning_level"] or "medium",
        "inputModalities": entry["input_modalities"],
        "supportsPersonality": False,
        "isDefault": entry["slug"] == default,
    }
