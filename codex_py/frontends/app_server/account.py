"""Serves the account for requests to the model, and the models that can be chosen."""

from collections.abc import Callable, Mapping
from typing import Any

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.app.settings import described_models
from codex_py.app.stored_login import checked_key, remove_login, store_key, stored_login
from codex_py.config.config import Config
from codex_py.frontends.app_server import params


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
        later: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._config = config
        self._environment = environment
        self._later = later

    async def read(self, _: params.Nothing) -> dict[str, Any]:
        """Describe the account. As in Codex, a provider with its own key needs none."""
        config = self._config()
        is_needed = config.model_provider == "openai"
        if is_needed and self._has_key(config):
            account = {"type": "apiKey"}
        else:
            account = None
        return {"account": account, "requiresOpenaiAuth": is_needed}

    async def login(self, asked: params.Login) -> dict[str, Any]:
        key = asked.api_key.strip()
        if not key:
            raise RpcError(INVALID_REQUEST, "the API key is empty")
        store_key(self._config(), checked_key(key))
        done = {"loginId": None, "success": True, "error": None}
        self._later("account/login/completed", done)
        self._later("account/updated", {"authMode": "apikey", "planType": None})
        return {"type": "apiKey"}

    async def cancel(self, asked: params.LoginCancel) -> dict[str, Any]:
        raise RpcError(INVALID_REQUEST, f"no login is running: {asked.login_id}")

    async def logout(self, _: params.Nothing) -> dict[str, Any]:
        remove_login(self._config())
        self._later("account/updated", {"authMode": None, "planType": None})
        return {}

    async def models(self, asked: params.ModelList) -> dict[str, Any]:
        config = self._config()
        models = described_models(config, self._environment)
        start = int(asked.cursor)
        end = start + asked.limit
        data = [_model(entry, config.model) for entry in models[start:end]]
        return {"data": data, "nextCursor": str(end) if end < len(models) else None}

    def _has_key(self, config: Config) -> bool:
        names = ("CODEX_API_KEY", "OPENAI_API_KEY")
        return (
            any(map(self._environment.get, names)) or stored_login(config) is not None
        )


def _model(entry: Mapping[str, Any], default: str) -> dict[str, Any]:
    levels = entry["supported_reasoning_levels"]
    return {
        "id": entry["slug"],
        "model": entry["slug"],
        "upgrade": None,
        "displayName": entry["display_name"],
        "description": "",
        "hidden": False,
        "supportedReasoningEfforts": [
            {"reasoningEffort": each["effort"], "description": each["description"]}
            for each in levels
        ],
        "defaultReasoningEffort": entry["default_reasoning_level"] or "medium",
        "inputModalities": entry["input_modalities"],
        "supportsPersonality": False,
        "isDefault": entry["slug"] == default,
    }
