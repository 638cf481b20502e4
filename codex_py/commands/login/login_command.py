"""`codex-py login`, `login status` and `logout`. Messages, streams and exit codes are those of Codex
0.171."""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Final

from codex_py.app.login_status import CHECKED_LATER, login_status
from codex_py.app.logout import remove_login
from codex_py.app.stored_login import (
    checked_key,
    require_chatgpt,
    store_key,
)
from codex_py.command_line.subcommand import command_config, command_parser
from codex_py.commands.login.chatgpt import sign_in
from codex_py.config.config import Config
from codex_py.errors import CodexError, ExitCode, UsageError
from codex_py.streams.standard import read_all, tell

_MAX_KEY_BYTES: Final = 65_536
_WAYS: Final = ("--with-api-key", "--with-access-token", "--device-auth")

_KEY_FROM_STDIN: Final = (
    "`codex-py login --with-api-key` reads a key from standard input"
)


def run_login(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Sign in, store the key or the token from standard input, or print the login.

    Returns the exit code.
    """
    parser = command_parser(*_WAYS, "word")
    # Not in the help, as in Codex: another issuer than OpenAI's.
    parser.add_argument("--experimental_issuer", help=argparse.SUPPRESS)
    parser.advise({"--api-key": f"{_KEY_FROM_STDIN}."})
    options = parser.parse_args(list(argv))
    if options.word not in {None, "status"}:
        # The word may be a key, so it is not repeated.
        raise UsageError(f"`login` has no word but `status`; {_KEY_FROM_STDIN}")
    ways = [way for way in _WAYS if getattr(options, way[2:].replace("-", "_"))]
    if len(ways) > 1 or (ways and options.word):
        both = " and ".join([*ways, *filter(None, [options.word])])
        raise UsageError(f"{both} do not go together")
    config = command_config(options, environment, warns=False)
    if options.word == "status":
        return _print_status(config, environment)
    if ways == ["--with-api-key"]:
        store_key(config, _from_stdin("API key", "OPENAI_API_KEY"))
        tell(f"API key saved. {CHECKED_LATER}")
        return ExitCode.DONE
    token: str | None = None
    if ways == ["--with-access-token"]:
        token = _from_stdin("access token", "CODEX_ACCESS_TOKEN")
        require_chatgpt(config, "Access token")
    else:
        require_chatgpt(config, "ChatGPT")
    issuer: str | None = options.experimental_issuer
    return sign_in(
        config,
        environment,
        issuer=issuer and issuer.rstrip("/"),
        token=token,
        with_code=ways == ["--device-auth"],
    )


def _print_status(config: Config, environment: Mapping[str, str]) -> int:
    """Print the login. Returns the exit code, which is 0 if there is one that can be used."""
    status = login_status(config, environment)
    tell("\n".join(status.lines))
    if status.is_usable:
        return ExitCode.DONE
    return ExitCode.TURN_FAILED


def run_logout(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Remove the login. Returns the exit code."""
    options = command_parser().parse_args(list(argv))
    config = command_config(options, environment, warns=False)
    if remove_login(config, environment, lambda text: tell(f"Warning: {text}")):
        tell("Successfully logged out")
    else:
        tell("Not logged in")
    return ExitCode.DONE


def _from_stdin(what: str, variable: str) -> str:
    """Read a secret from standard input.

    Args:
        what: `API key` or `access token`.
        variable: the variable that often has it.
    """
    way = what.lower().replace(" ", "-")
    if os.isatty(0):
        raise CodexError(
            f"--with-{way} expects the {what} on stdin. Try piping it, e.g."
            f" `printenv {variable} | codex-py login --with-{way}`.",
            code="login",
        )
    tell(f"Reading {what} from stdin...")
    try:
        text = read_all(0, _check_size).decode("latin-1").strip()
    except OSError as error:
        problem = f"standard input cannot be read: {error.strerror}"
        raise CodexError(problem, code="login") from error
    if not text:
        raise CodexError(f"No {what} provided via stdin.", code="login")
    return checked_key(text, what)


def _check_size(size: int) -> None:
    if size > _MAX_KEY_BYTES:
        raise CodexError("This is no key or token: it is too long.", code="login")
