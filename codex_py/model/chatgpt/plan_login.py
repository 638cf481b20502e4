"""The login with ChatGPT that the requests of a session use. It is renewed before it expires.

A refresh token counts once. So renewals happen one at a time across all processes: under a lock in
the home the file is read again, and if another program has renewed the login meanwhile, its tokens
are used. New tokens are written before they are used.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from codex_py.errors import ConfigError, ExitCode, ModelError, StreamError, cause
from codex_py.model.auth import ProviderKey, holds_tokens, stored_fields, token_key
from codex_py.model.chatgpt.issuer import REUSED, SIGN_IN_AGAIN, Issuer, LoginOver
from codex_py.model.chatgpt.limits import plan_use
from codex_py.model.chatgpt.login_file import LoginFile
from codex_py.model.chatgpt.tokens import Tokens, tokens_in, tokens_of, with_tokens
from codex_py.protocol.finishing import finishing
from codex_py.protocol.json_fields import JsonObject
from codex_py.protocol.stream import PlanUse

_RENEWAL: Final = "the renewal of the login with ChatGPT"
_OTHER_PROGRAM_S: Final = 2.0
"""The wait for a program that does not know the lock, and has used our refresh token, to write."""
_POLL_S: Final = 0.05


GivenUp: TypeAlias = Callable[[], bool]
"""True as soon as nobody waits for the tokens any more."""


class PlanLogin:
    """A `TokenSource` for the login in `auth.json`."""

    def __init__(
        self,
        path: Path,
        environment: Mapping[str, str],
        *,
        warn: Callable[[str], None] = lambda _: None,
        issuer: Issuer | None = None,
    ) -> None:
        """
        Args:
            path: that of `auth.json`.
            environment: has the proxies, and `CODEX_REFRESH_TOKEN_URL_OVERRIDE`.
            warn: shows the user a sentence. Called from any thread.
        """
        self._file = LoginFile(path)
        self._issuer = issuer or Issuer(environment)
        self._warn = warn
        self._mutex = threading.Lock()
        """Held by the thread that reads, renews or writes."""
        self._tokens: Tokens | None = None
        """The tokens in use; None before the first request."""
        self._version: object = None
        """The version of the file from which the tokens are."""
        self._unwritten: JsonObject | None = None
        """An answer of the issuer that could not be written; it is tried again."""
        self._replaced = ""
        """The refresh token that `_unwritten` replaces."""
        self._over: tuple[str, LoginOver] | None = None
        """The refresh token that was refused, and the error."""

    async def key(self) -> ProviderKey:
        """Return the token for the next request, renewed if it is old. See `TokenSource`."""
        tokens = self._tokens
        is_known = tokens is not None and self._file.version == self._version
        if (
            tokens is None
            or not is_known
            or tokens.is_old
            or self._unwritten is not None
        ):
            tokens = await _in_thread(self._current)
        return self._key_of(tokens)

    async def after_refusal(self, refused: ProviderKey) -> ProviderKey:
        """Return the token for one more try after the server has refused a token.

        If the file has another one meanwhile, it is returned; otherwise the login is renewed.
        """
        tokens = await _in_thread(partial(self._other_than, refused.value))
        return self._key_of(tokens)

    def plan_use(self, headers: Mapping[str, str]) -> PlanUse:
        """Return what the headers of an answer say about the plan. See `TokenSource`."""
        tokens = self._tokens
        plan = None
        if tokens is not None:
            plan = tokens.plan
        return plan_use(plan, headers)

    def _key_of(self, tokens: Tokens) -> ProviderKey:
        return token_key(tokens.access_token, self._file.path, tokens.account_id)

    def _current(self, given_up: GivenUp) -> Tokens:
        """The tokens to use now. Blocks."""
        with self._mutex:
            self._write_late(given_up)
            tokens = self._tokens
            version = self._file.version
            # Somebody may have signed in to another account, or out.
            is_changed = version != self._version and self._unwritten is None
            if tokens is None or is_changed:
                tokens = self._stored()
                self._version = version
            if tokens.is_old:
                tokens = self._renewed_if_possible(tokens, given_up)
            self._tokens = tokens
            return tokens

    def _other_than(self, refused: str, given_up: GivenUp) -> Tokens:
        """Tokens with another access token than the refused one. Blocks."""
        with self._mutex:
            tokens = self._tokens
            if tokens is None or tokens.access_token == refused:
                tokens = self._stored()
            if tokens.access_token == refused:
                tokens = self._renewed(tokens, given_up)
            self._tokens = tokens
            return tokens

    def _stored(self) -> Tokens:
        """The tokens in the file. Raises a `ModelError` if there are none any more."""
        fields = stored_fields(self._file.path)
        tokens = tokens_in(fields)
        if tokens is None or not holds_tokens(fields):
            raise ModelError(
                f"{self._file.path} holds no login with ChatGPT any more: {SIGN_IN_AGAIN}",
                code="login_over",
                exit_code=ExitCode.AUTHENTICATION,
            )
        return tokens

    def _renewed_if_possible(self, tokens: Tokens, given_up: GivenUp) -> Tokens:
        """Renewed tokens. If that fails for now, the old ones as long as they have not expired."""
        try:
            return self._renewed(tokens, given_up)
        except (StreamError, ConfigError):
            if tokens.has_expired:
                raise
            return tokens

    def _renewed(self, used: Tokens, given_up: GivenUp) -> Tokens:
        """Renew the login, unless another program has done it meanwhile.

        `used`: the tokens that are old, or that the server has refused.
        """
        try:
            with self._file.locked(given_up):
                stored = self._stored()
                if _can_replace(stored, used):
                    return stored
                return self._renew(stored)
        except LoginOver as error:
            other = None
            if error.reason == REUSED:
                other = self._written_by_another(used)
            if other is None:
                raise
            return other
        except TimeoutError as error:
            stored = self._stored()
            if _can_replace(stored, used):
                return stored
            raise StreamError(
                f"the login with ChatGPT is being renewed by another process: {error.strerror}",
                code="login_not_renewed",
                exit_code=ExitCode.TEMPORARY,
            ) from error
        except OSError as error:
            raise ConfigError(
                f"the login with ChatGPT has to be renewed, and was not, because {self._file.path}"
                f" cannot be written: {error.strerror}"
            ) from error

    def _renew(self, stored: Tokens) -> Tokens:
        """Renew the stored login, and write it. Called with the lock.

        Raises:
            OSError: there is no room for new tokens. No renewal was sent.
        """
        if not stored.refresh_token:
            raise LoginOver("it cannot be renewed")
        if self._over is not None:
            refused, error = self._over
            if refused == stored.refresh_token:
                raise error
        answer: JsonObject | None = None
        try:
            with finishing(_RENEWAL), self._file.reserved() as reserved:
                answer = asyncio.run(self._issuer.renew(stored.refresh_token))
                fields = stored_fields(self._file.path)
                other = tokens_in(fields)
                if other is not None and _can_replace(other, stored):
                    # Somebody has signed in anew meanwhile.
                    return other
                reserved.write(with_tokens(fields, answer))
        except LoginOver as error:
            self._over = (stored.refresh_token, error)
            raise
        except (OSError, ConfigError) as error:
            if answer is None:
                raise
            self._keep(answer, stored, error)
        return _merged(stored, answer)

    def _keep(
        self, answer: JsonObject, stored: Tokens, error: OSError | ConfigError
    ) -> None:
        """Keep new tokens in memory, because the file cannot be written."""
        self._unwritten = answer
        self._replaced = stored.refresh_token
        self._warn(
            f"The login with ChatGPT was renewed, but {self._file.path} cannot be written:"
            f" {cause(error)}. This process goes on with the new login, and tries again to write it;"
            " without it, you will have to sign in again."
        )

    def _write_late(self, given_up: GivenUp) -> None:
        """Write tokens that could not be written, unless the file has a newer login."""
        answer = self._unwritten
        if answer is None:
            return
        try:
            with self._file.locked(given_up):
                fields = stored_fields(self._file.path)
                stored = tokens_in(fields)
                if stored is not None and stored.refresh_token == self._replaced:
                    with self._file.reserved() as reserved:
                        reserved.write(with_tokens(fields, answer))
        except (OSError, ConfigError):
            return
        self._unwritten = None

    def _written_by_another(self, used: Tokens) -> Tokens | None:
        """The tokens of a program that has renewed the login without our lock.

        It may not have written them yet. None if none come.
        """
        deadline = time.monotonic() + _OTHER_PROGRAM_S
        while time.monotonic() < deadline:
            stored = self._stored()
            if _can_replace(stored, used):
                return stored
            time.sleep(_POLL_S)
        return None


async def _in_thread(work: Callable[[GivenUp], Tokens]) -> Tokens:
    """Run work in a thread, which gives up waiting for other processes if this is cancelled.

    A renewal that was begun is finished even then: losing new tokens would lose the login.
    """
    given_up = threading.Event()
    try:
        return await asyncio.to_thread(work, given_up.is_set)
    finally:
        given_up.set()


def _can_replace(stored: Tokens, used: Tokens) -> bool:
    """True if the stored access token is another one than the one that was used, and is not old."""
    return stored.access_token != used.access_token and not stored.is_old


def _merged(tokens: Tokens, answer: JsonObject) -> Tokens:
    """The tokens after an answer of the issuer."""
    return replace(tokens, **tokens_of(answer))
