"""`codex-py login` with ChatGPT. The words are those of Codex 0.171 where it has them."""

import asyncio
from collections.abc import Mapping
from typing import Final

from codex_py.app.chatgpt_login import SignIn
from codex_py.app.login_screen import (
    TerminalLogin,
    find_browsers_safely,
    has_browser,
)
from codex_py.config.config import Config
from codex_py.errors import CodexError, ExitCode
from codex_py.streams.escape_key import escape_ends_lines
from codex_py.streams.standard import tell

_INTERRUPTED: Final = (
    "Signing in was interrupted. Nothing was stored, and a login that was there stays."
)
_PERSONAL: Final = "at-"
_STDIN: Final = 0


def sign_in(
    config: Config,
    environment: Mapping[str, str],
    *,
    issuer: str | None,
    token: str | None,
    with_code: bool,
) -> int:
    """Store a personal access token, or let the user sign in. Returns the exit code.

    Args:
        issuer: the address of another issuer than OpenAI's.
        token: the personal access token, if there is one.
        with_code: the user types a code on any device, instead of using a browser here.
    """
    if token is not None and not token.startswith(_PERSONAL):
        raise CodexError(
            f"This is no personal access token, which begins with {_PERSONAL!r}: other tokens are used"
            " from the environment variable CODEX_ACCESS_TOKEN, and are not stored.",
            code="login",
        )
    login = SignIn(config, environment, issuer)
    if token is not None:
        running = login.with_access_token(token)
    elif with_code:
        running = login.with_code(_show_code)
    else:
        find_browsers_safely(config, environment)
        running = _sign_in_with_browser(login, environment)
    try:
        asyncio.run(running)
    except KeyboardInterrupt:
        if not login.is_stored:
            tell(_INTERRUPTED)
            return ExitCode.INTERRUPTED
    tell("Successfully logged in")
    return ExitCode.DONE


async def _sign_in_with_browser(login: SignIn, environment: Mapping[str, str]) -> None:
    """Let the user sign in in a browser on this machine."""

    def show(address: str) -> None:
        tell(
            "Sign in on the page that opens in your browser. If none opens, open this URL:\n\n"
            f"{address}\n\n"
            "On a remote or headless machine? Use `codex-py login --device-auth` instead."
        )

    screen = TerminalLogin(
        show,
        opens_browser=has_browser(environment),
        how_to_paste="Or paste here the address that a browser elsewhere shows in the end.",
    )
    with escape_ends_lines(_STDIN):
        await login.with_browser(screen)


def _show_code(address: str, code: str) -> None:
    tell(
        "Follow these steps to sign in with ChatGPT using device code authorization:\n\n"
        "1. Open this link in your browser and sign in to your account\n"
        f"   {address}\n\n"
        "2. Enter this one-time code (expires in 15 minutes)\n"
        f"   {code}\n\n"
        "Continue only if you started this login in codex-py. If a website or another person gave you"
        " this code, cancel."
    )
