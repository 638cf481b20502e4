"""Gives the tokens of ChatGPT for requests: from a login that is renewed, or from a token that a user
or an administrator has handed out."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from codex_py.errors import ExitCode, ModelError
from codex_py.model.auth import ProviderKey, TokenSource
from codex_py.model.chatgpt.issuer import Issuer
from codex_py.model.chatgpt.limits import plan_use
from codex_py.model.chatgpt.plan_login import PlanLogin
from codex_py.model.chatgpt.tokens import Tokens, claims, workspace_ids
from codex_py.protocol.json_fields import text_field
from codex_py.protocol.stream import PlanUse

_PERSONAL: Final = "at-"
"""The beginning of a personal access token, which says nothing about its account."""


def token_source(
    key: ProviderKey,
    environment: Mapping[str, str],
    warn: Callable[[str], None] = lambda _: None,
    workspaces: str | tuple[str, ...] | None = None,
) -> TokenSource:
    """Return what gives the tokens in place of a key that `find_key` has found.

    Args:
        environment: has the proxies, and variables that move the issuer.
        warn: shows the user a sentence. Called from any thread.
        workspaces: the setting `forced_chatgpt_workspace_id`.
    """
    if key.login_file is not None:
        source: TokenSource = PlanLogin(key.login_file, environment, warn=warn)
    else:
        source = AccessToken(key, Issuer(environment))
    allowed = workspace_ids(workspaces)
    if allowed:
        return _OfWorkspaces(source, allowed)
    return source


class _OfWorkspaces:
    """A `TokenSource` that gives the tokens of another one if they belong to some workspaces."""

    def __init__(self, source: TokenSource, workspaces: Sequence[str]) -> None:
        self._source = source
        self._workspaces = workspaces

    async def key(self) -> ProviderKey:
        return self._checked(await self._source.key())

    async def after_refusal(self, refused: ProviderKey) -> ProviderKey:
        return self._checked(await self._source.after_refusal(refused))

    def plan_use(self, headers: Mapping[str, str]) -> PlanUse:
        return self._source.plan_use(headers)

    def _checked(self, key: ProviderKey) -> ProviderKey:
        if key.account_id in self._workspaces:
            return key
        allowed = ", ".join(self._workspaces)
        raise ModelError(
            f"Login is restricted to workspace id(s) {allowed} (`forced_chatgpt_workspace_id`), and"
            f" {key.source} belongs to {key.account_id or 'another one'}: sign in again with"
            " `codex-py login`",
            code="forbidden_workspace",
            exit_code=ExitCode.AUTHENTICATION,
        )


class AccessToken:
    """A `TokenSource` for a token that cannot be renewed."""

    def __init__(self, key: ProviderKey, issuer: Issuer) -> None:
        self._key = key
        self._issuer = issuer
        self._lock = asyncio.Lock()
        """Held while the issuer is asked for the account."""

    async def key(self) -> ProviderKey:
        """Return the token, with the account that it belongs to. See `TokenSource`."""
        async with self._lock:
            if self._key.account_id is None:
                account_id = await self._account_id()
                self._key = replace(self._key, account_id=account_id)
        return self._key

    async def after_refusal(self, refused: ProviderKey) -> ProviderKey:
        raise _refused(refused)

    def plan_use(self, headers: Mapping[str, str]) -> PlanUse:
        return plan_use(Tokens(self._key.value).plan, headers)

    async def _account_id(self) -> str | None:
        token = self._key.value
        if not token.startswith(_PERSONAL):
            if "agent_private_key" in claims(token):
                raise ModelError(
                    f"The token from {self._key.source} is the identity of an agent, which this"
                    " program does not use: sign in, or use a personal access token.",
                    code="missing_key",
                    exit_code=ExitCode.AUTHENTICATION,
                )
            return Tokens(token).account_id
        status, answer = await self._issuer.owner(token)
        if status == HTTPStatus.UNAUTHORIZED:
            raise _refused(self._key)
        return text_field(answer, "chatgpt_account_id") or None


def _refused(key: ProviderKey) -> ModelError:
    return ModelError(
        f"ChatGPT does not accept the token from {key.source} any more: replace it.",
        code="authentication",
        exit_code=ExitCode.AUTHENTICATION,
        status=HTTPStatus.UNAUTHORIZED,
    )
