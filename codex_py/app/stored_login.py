"""`auth.json`, the login that Codex shares with this program.

Its form and its lock are those of Codex 0.169.
"""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.config.files import LOCK_TIMEOUT_S, as_config_error, replace_text
from codex_py.errors import CodexError, ConfigError
from codex_py.filesystem.private import make_private
from codex_py.model.auth import stored_fields
from codex_py.model.chatgpt.login_file import LoginFile

_STORE_KEY: Final = "cli_auth_credentials_store"
# The characters of a key that are shown at its beginning and its end.
_SHOWN_START = 8
_SHOWN_END = 5


def stored_login(config: Config) -> str | None:
    """Return the API key in `auth.json`, masked.

    Returns an empty text for another kind of login, such as a login with ChatGPT, and None without
    a login.

    Raises:
        ConfigError: the configuration names another store, or the file cannot be read.
    """
    fields = stored_fields(login_path(config))
    key = fields.get("OPENAI_API_KEY")
    if isinstance(key, str) and key.strip():
        return masked(key.strip())
    if any(value for name, value in fields.items() if name != "auth_mode"):
        return ""
    return None


def require_chatgpt(config: Config, what: str) -> None:
    """Raise a `CodexError` if the configuration allows API keys alone.

    `what`: the refused login, such as `ChatGPT`.
    """
    if config.settings.forced_login_method == "api":
        # The wording is Codex's.
        raise CodexError(
            f"{what} login is disabled. Use API key login instead.", code="login"
        )


def checked_key(text: str, what: str = "API key") -> str:
    """Return the text. Raises a `CodexError` if no key, or no `what`, can have this form."""
    if re.fullmatch(r"[!-~]+", text):
        return text
    problem = "it holds blanks, several lines, or characters that no key can have."
    raise CodexError(f"This is no {what}: {problem}", code="login")


def store_key(config: Config, key: str) -> None:
    """Store an API key.

    It replaces an earlier key or a file that cannot be read, but no other kind of login.

    Raises:
        CodexError: API keys are forbidden, or there is a login with ChatGPT.
        ConfigError: the configuration names another store, or the file cannot be written.
    """
    if config.settings.forced_login_method == "chatgpt":
        # The wording is Codex's.
        raise CodexError(
            "API key login is disabled. Use ChatGPT login instead.", code="login"
        )
    with locked_login_file(config) as path:
        try:
            found = stored_login(config)
        except ConfigError:
            found = None
        if found == "":
            raise CodexError(
                f"{path} holds a login that is no API key, with ChatGPT for instance; to give it"
                " up, run `codex-py logout` first",
                code="login",
            )
        fields = {"auth_mode": "apikey", "OPENAI_API_KEY": key}
        replace_text(path, json.dumps(fields, indent=2), private=True)


def masked(key: str) -> str:
    """Return the two ends of a key: at most a third of it, and of a long key as much as Codex shows."""
    most = _SHOWN_START + _SHOWN_END
    if len(key) <= most:
        return "***"
    # A key that is shorter than three times `most` shows a third of itself.
    share = min(1.0, len(key) / 3 / most)
    start = int(_SHOWN_START * share)
    end = int(_SHOWN_END * share)
    return f"{key[:start]}***{key[len(key) - end :]}"


@contextmanager
def locked_login_file(
    config: Config, timeout_s: float = LOCK_TIMEOUT_S
) -> Generator[Path]:
    """Hold Codex's lock on the file. Raises a `ConfigError` if it cannot be written."""
    path = login_path(config)
    with as_config_error(path, "written"):
        make_private(config.home)
        with LoginFile(path).locked(timeout_s=timeout_s):
            yield path


def login_path(config: Config) -> Path:
    """Return the path of the file. Raises a `ConfigError` if the configuration names another store."""
    store = config.settings.cli_auth_credentials_store
    if store in {"keyring", "ephemeral"}:
        raise ConfigError(
            f"`{_STORE_KEY}` is {store!r}, and codex-py keeps keys in auth.json alone: set it to"
            ' "file", or set the environment variable OPENAI_API_KEY',
            key=(_STORE_KEY,),
        )
    return config.home / "auth.json"
