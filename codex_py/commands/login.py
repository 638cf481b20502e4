"""`codex-py login` with an API key, `login status` and `logout`. Messages, streams and exit codes
are those of Codex 0.171."""

import os
from collections.abc import Mapping, Sequence
from typing import Final

from codex_py.app.stored_login import (
    checked_key,
    is_signed_in,
    remove_login,
    store_key,
    stored_login,
)
from codex_py.command_line.subcommand import command_config, command_parser
from codex_py.config.config import Config
from codex_py.errors import CodexError, ExitCode, UsageError
from codex_py.streams.standard import read_all, tell

_MAX_KEY_BYTES: Final = 65_536
_CHECKED_LATER: Final = "Authentication is checked when you send a request."
_OTHER_LOGIN: Final = (
    "The login in auth.json is of a kind that codex-py cannot use: set OPENAI_API_KEY, or run"
    " `codex-py logout` and log in with an API key."
)


def run_login(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Store the key from standard input, or print the login. Returns the exit code."""
    parser = command_parser(
        "--with-api-key", "--with-access-token", "--device-auth", "word"
    )
    options = parser.parse_args(list(argv))
    if options.word not in {None, "status"}:
        raise UsageError(f"unknown command `login {options.word}`. Use `login status`.")
    if options.word is None and not options.with_api_key:
        raise UsageError(
            "signing in with ChatGPT is not supported yet: sign in with Codex, whose login is used here, or"
            " pipe an API key into `codex-py login --with-api-key`"
        )
    config = command_config(options, environment, warns=False)
    if options.word == "status":
        return _print_status(config)
    store_key(config, _key_from_stdin())
    tell(f"API key saved. {_CHECKED_LATER}")
    return ExitCode.DONE


def _print_status(config: Config) -> int:
    """Print the login. Returns the exit code, which is 0 if there is one that can be used."""
    if is_signed_in(config):
        tell("Logged in using ChatGPT")
        return ExitCode.DONE
    login = stored_login(config)
    if login is None:
        tell("Not logged in")
        return ExitCode.TURN_FAILED
    if not login:
        tell(_OTHER_LOGIN)
        return ExitCode.TURN_FAILED
    tell(f"API key configured - {login}\n{_CHECKED_LATER}")
    return ExitCode.DONE


def run_logout(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Remove the login. Returns the exit code."""
    options = command_parser().parse_args(list(argv))
    config = command_config(options, environment, warns=False)
    if remove_login(config):
        tell("Successfully logged out")
    else:
        tell("Not logged in")
    return ExitCode.DONE


def _key_from_stdin() -> str:
    if os.isatty(0):
        raise CodexError(
            "--with-api-key expects the API key on stdin. Try piping it, e.g."
            " `printenv OPENAI_API_KEY | codex-py login --with-api-key`.",
            code="login",
        )
    tell("Reading API key from stdin...")
    try:
        text = read_all(0, _check_size).decode("latin-1").strip()
    except OSError as error:
        problem = f"standard input cannot be read: {error.strerror}"
        raise CodexError(problem, code="login") from error
    if not text:
        raise CodexError("No API key provided via stdin.", code="login")
    return checked_key(text)


def _check_size(size: int) -> None:
    if size > _MAX_KEY_BYTES:
        raise CodexError("This is no API key: it is too long.", code="login")
