"""Serves the account for requests to the model, and the models that can be chosen."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.app.logout import remove_login
from codex_py.app.plan_account import PlanAccount, account_key
from codex_py.app.plan_models import plan_models
from codex_py.app.settings import described_models
from codex_py.app.stored_login import checked_key, store_key
from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.account.chatgpt_logins import ChatGPTLogins
from codex_py.frontends.app_server.account.plan_facts import plan_type, rate_limits
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.threads.open_threads import OpenThreads
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.json_fields import JsonObject
from codex_py.streams.standard import tell


class AccountMethods(MethodGroup):
    """Answers `account/…` and `model/list`."""

    def __init__(self, server: Server, threads: OpenThreads) -> None:
        super().__init__(server, threads)
        self._logins = ChatGPTLogins(server.environment, server.later)

    async def aclose(self) -> None:
        """End the running login."""
        await self._logins.stop()

    @serves("account/read", params.AccountRead)
    async def read(self, asked: params.AccountRead) -> Fields:
        """Describe the account. As in Codex, only the provider `openai` needs an account."""
        config = self.server.configuration()
        is_needed = config.model_provider == "openai"
        key = None
        if is_needed:
            key = account_key(config, self.server.environment)
        answer: Fields = {"account": None, "requiresOpenaiAuth": is_needed}
        if key is not None and key.is_token:
            plan = PlanAccount(config, self.server.environment, key)
            if asked.refresh_token:
                await plan.renew()
            tokens = plan.tokens
            answer["userId"] = tokens.user_id
            answer["account"] = {
                "type": "chatgpt",
                "email": tokens.email,
                "planType": plan_type(tokens.plan),
            }
        elif key is not None:
            answer["account"] = {"type": "apiKey"}
        return answer

    @serves("account/login/start", params.Login)
    async def login(self, asked: params.Login) -> Fields:
        config = self.server.configuration()
        if asked.type == "chatgpt":
            return await self._logins.start_in_browser(config)
        if asked.type == "chatgptDeviceCode":
            return await self._logins.start_with_code(config)
        key = asked.api_key.strip()
        if not key:
            raise RpcError(INVALID_REQUEST, "the API key is empty")
        checked = checked_key(key)
        await self._logins.stop()
        store_key(config, checked)
        done = {"loginId": None, "success": True, "error": None}
        self.server.later("account/login/completed", done)
        self.server.later("account/updated", {"authMode": "apikey", "planType": None})
        return {"type": "apiKey"}

    @serves("account/login/cancel", params.LoginCancel)
    async def cancel(self, asked: params.LoginCancel) -> Fields:
        """Cancel a login with ChatGPT. A login with a key is over at once."""
        try:
            login_id = str(UUID(asked.login_id))
        except ValueError:
            # The words are Codex's.
            problem = f"invalid login id: {asked.login_id}"
            raise RpcError(INVALID_REQUEST, problem) from None
        if self._logins.cancel(login_id):
            return {"status": "canceled"}
        return {"status": "notFound"}

    @serves("account/logout", params.Nothing)
    async def logout(self, _: params.Nothing) -> Fields:
        await self._logins.stop()
        await asyncio.to_thread(
            remove_login, self.server.configuration(), self.server.environment, tell
        )
        self.server.later("account/updated", {"authMode": None, "planType": None})
        return {}

    @serves("account/rateLimits/read", params.RateLimitsRead)
    async def limits(self, asked: params.RateLimitsRead) -> Fields:
        """Tell how much of the plan is used up."""
        config = self.server.configuration()
        key = account_key(config, self.server.environment)
        # The words are Codex's.
        if key is None:
            problem = "codex account authentication required to read rate limits"
            raise RpcError(INVALID_REQUEST, problem)
        if not key.is_token:
            problem = "chatgpt authentication required to read rate limits"
            raise RpcError(INVALID_REQUEST, problem)
        account = PlanAccount(config, self.server.environment, key)
        usage = await account.usage()
        credits: JsonObject | None = None
        if not asked.exclude_reset_credit_details:
            credits = await account.reset_credits()
        return rate_limits(usage, credits)

    @serves("model/list", params.ModelList)
    async def models(self, asked: params.ModelList) -> Fields:
        """List a page of the models that can be chosen."""
        config = self.server.configuration()
        environment = self.server.environment
        plan = await plan_models(config, environment)
        models = described_models(config, environment, plan)
        start = int(asked.cursor)
        end = start + asked.limit
        page = [_model(entry, config.model) for entry in models[start:end]]
        next_cursor = None
        if end < len(models):
            next_cursor = str(end)
        return {"data": page, "nextCursor": next_cursor}


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
