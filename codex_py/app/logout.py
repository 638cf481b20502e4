"""Removes a login, and ends one with ChatGPT at the issuer.

Part of the composition root.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from codex_py.app.stored_login import locked_login_file, login_path
from codex_py.config.config import Config
from codex_py.errors import ConfigError, ModelError
from codex_py.model.auth import stored_fields
from codex_py.model.chatgpt.issuer import Issuer
from codex_py.model.chatgpt.login_file import LoginFile
from codex_py.model.chatgpt.tokens import tokens_in
from codex_py.protocol.addresses import shown_url

_REVOKE_TIMEOUT_S: Final = 10.0


def remove_login(
    config: Config, environment: Mapping[str, str], warn: Callable[[str], None]
) -> bool:
    """Remove `auth.json`, whatever kind of login it holds. Returns False if there was no login.

    If it is a link, the file that it leads to is removed too.

    Then the issuer of a login with ChatGPT is told that it is over, for up to 10 s. `warn` shows the
    user a sentence if that fails.

    Raises:
        ConfigError: the configuration names another store, or the file cannot be removed.
    """
    if not login_path(config).exists():
        return False
    fields: Mapping[str, Any] = {}
    with locked_login_file(config) as path:
        with suppress(ConfigError):
            fields = stored_fields(path)
        LoginFile(path).remove()
    if tokens_in(fields) is not None:
        problem = asyncio.run(end_login(Issuer(environment), fields))
        if problem:
            warn(
                "The login was removed here, but ChatGPT was not told that it is over, so a copy of it"
                f" would still work: {problem}"
            )
    return True


async def end_login(issuer: Issuer, fields: Mapping[str, Any]) -> str:
    """End a login at the issuer, for up to 10 s.

    Args:
        fields: the contents that `auth.json` had.

    Returns why the login was not ended, as a clause; an empty text if it was, or if there was none.
    """
    tokens = tokens_in(fields)
    if tokens is None:
        return ""
    if not issuer.has_name(tokens.issuer):
        # Its tokens are nobody else's business.
        return f"it is a login with {shown_url(tokens.issuer)!r}, which was not asked"
    token = tokens.refresh_token
    kind = "refresh_token"
    if not token:
        token = tokens.access_token
        kind = "access_token"
    try:
        async with asyncio.timeout(_REVOKE_TIMEOUT_S):
            await issuer.revoke(token, kind)
    except TimeoutError:
        return f"it did not answer in {_REVOKE_TIMEOUT_S:g} s"
    except ModelError as error:
        return str(error)
    return ""
