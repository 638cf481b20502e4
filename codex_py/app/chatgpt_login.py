"""Makes and ends a login with ChatGPT, which `auth.json` keeps in the form of Codex.

Part of the composition root.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from codex_py.app.logout import end_login
from codex_py.app.stored_login import locked_login_file, login_path
from codex_py.config.config import Config
from codex_py.errors import CodexError, ConfigError
from codex_py.http.login_answers import LoginScreen
from codex_py.model.auth import stored_fields
from codex_py.model.chatgpt.issuer import Issuer, NoAnswer
from codex_py.model.chatgpt.login_file import LOCK_TIMEOUT_S, LoginFile
from codex_py.model.chatgpt.sign_in import (
    check_workspace,
    sign_in_with_browser,
    sign_in_with_code,
)
from codex_py.model.chatgpt.tokens import tokens_in, with_tokens, workspace_ids
from codex_py.protocol.json_fields import JsonObject, text_field

_ORIGINATOR: Final = "codex_py"
_ISSUER_VARIABLE: Final = "CODEX_APP_SERVER_LOGIN_ISSUER"
"""The variable of Codex that moves the issuer."""
_OF_ONE_LOGIN: Final = {
    "auth_mode",
    "OPENAI_API_KEY",
    "tokens",
    "last_refresh",
    "personal_access_token",
    "agent_identity",
}
"""The fields of `auth.json` that a new login replaces. What other programs keep beside them stays."""


class SignIn:
    """Makes a login with ChatGPT in a home. A login that it replaces is ended at the issuer.

    Each method raises a `CodexError` if the login failed. Then `auth.json` is as it was.

    Attributes:
        is_stored: True as soon as `auth.json` has the login.
        plan: the name of the plan of a stored login, such as `plus`; None if the issuer did not say.
    """

    def __init__(
        self, config: Config, environment: Mapping[str, str], issuer: str | None
    ) -> None:
        """
        Args:
            issuer: the address of another issuer than OpenAI's. If None,
                `CODEX_APP_SERVER_LOGIN_ISSUER` of `environment` may have one.

        Raises:
            ConfigError: the configuration names another store, or the home cannot be written.
        """
        # Better now than after the user has signed in.
        self._file = LoginFile(login_path(config))
        with locked_login_file(config), self._file.reserved():
            pass
        self._config = config
        self._workspaces = workspace_ids(config.settings.forced_chatgpt_workspace_id)
        moved = environment.get(_ISSUER_VARIABLE, "").strip().rstrip("/")
        self._issuer = Issuer(environment, issuer or moved or None)
        self.is_stored = False
        self.plan: str | None = None
        self._replaced: Mapping[str, Any] = {}
        """The contents of `auth.json` before the login."""

    async def with_browser(self, screen: LoginScreen) -> None:
        """Sign in on a page of the issuer that comes back to this machine."""
        await sign_in_with_browser(
            self._issuer,
            screen,
            self._store_tokens,
            originator=_ORIGINATOR,
            workspaces=self._workspaces,
        )
        await end_login(self._issuer, self._replaced)

    async def with_code(self, show: Callable[[str, str], None]) -> None:
        """Sign in on a page of the issuer that wants a code. `show` gets its address and the code."""
        await sign_in_with_code(
            self._issuer, show, self._store_tokens, workspaces=self._workspaces
        )
        await end_login(self._issuer, self._replaced)

    async def with_access_token(self, token: str) -> None:
        """Store a personal access token, if the issuer knows it."""
        try:
            status, facts = await self._issuer.owner(token)
        except NoAnswer as error:
            raise _not_stored(str(error)) from error
        if status != HTTPStatus.OK:
            raise _not_stored(f"the issuer does not know it (HTTP status {status})")
        check_workspace(text_field(facts, "chatgpt_account_id"), self._workspaces)
        # As in Codex, without an `auth_mode`.
        self._store({"OPENAI_API_KEY": None, "personal_access_token": token})
        await end_login(self._issuer, self._replaced)

    def _store_tokens(self, answer: JsonObject) -> None:
        fields: Mapping[str, Any] = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None}
        fields = with_tokens(fields, answer)
        tokens = tokens_in(fields)
        assert tokens is not None
        fields["tokens"]["account_id"] = tokens.account_id
        self._store(fields)
        self.plan = tokens.plan

    def _store(self, fields: Mapping[str, Any]) -> None:
        # The tokens would be lost with the wait.
        with locked_login_file(self._config, LOCK_TIMEOUT_S) as path:
            # A file that cannot be read is replaced.
            with suppress(ConfigError):
                self._replaced = stored_fields(path)
            with self._file.reserved() as reserved:
                kept = {
                    name: value
                    for name, value in self._replaced.items()
                    if name not in _OF_ONE_LOGIN
                }
                reserved.write({**fields, **kept})
        self.is_stored = True


def _not_stored(reason: str) -> CodexError:
    return CodexError(f"The access token was not stored: {reason}", code="login")
