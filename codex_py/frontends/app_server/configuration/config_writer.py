"""Writes the user's `config.toml` for a client, unless no session could start with it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from codex_py.config.config import Config
from codex_py.config.edit import edit_config
from codex_py.errors import ConfigError
from codex_py.frontends.app_server.configuration.config_edits import (
    edited,
    invalid,
    require_unpinned,
    written,
)
from codex_py.frontends.app_server.configuration.config_params import ConfigEdit
from codex_py.frontends.app_server.server import Server
from codex_py.frontends.app_server.turn_items.items import Fields


def write_settings(
    server: Server, edits: Sequence[ConfigEdit], expected_version: str | None = None
) -> Fields:
    """Make changes, and return the answer to the request.

    Raises the errors of `edited` and of `write_user_file`.
    """

    def change(text: str, path: Path) -> str:
        return edited(text, path, edits, expected_version)

    config = write_user_file(server, change, edits)
    return written(server.home / "config.toml", config, edits)


def write_user_file(
    server: Server,
    change: Callable[[str, Path], str],
    edits: Sequence[ConfigEdit] = (),
) -> Config:
    """Change the user's file, and return the configuration after that.

    Args:
        change: see `edit_config`; it may raise an `RpcError` too.
        edits: the changes, which may not set a feature against the requirements.

    Raises:
        RpcError: the configuration could not be used then; the file is unchanged.
        ConfigError: the file cannot be read or written.
    """
    after: list[Config] = []

    def checked(text: str, path: Path) -> str:
        text = change(text, path)
        try:
            config = server.user_configuration(text)
            config.require_enforced()
        except ConfigError as error:
            raise invalid(error) from error
        require_unpinned(config, edits)
        after.append(config)
        return text

    edit_config(server.home, checked)
    return after[0]
