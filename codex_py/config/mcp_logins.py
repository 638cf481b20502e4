"""Stores logins to MCP servers in a private file or in the keyring of the system. LIGHT.

Each login has a folder in `$CODEX_HOME/codex-py/mcp-logins`, which a program locks while it renews
the login.
"""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codex_py.config.files import as_config_error, read_text, replace_text
from codex_py.config.mcp import StoreKind
from codex_py.errors import ConfigError
from codex_py.filesystem.private import locked, make_private

_SERVICE = "codex-py MCP login"
_LOCK_TIMEOUT_S = 60.0
"""The process that holds the lock may be waiting for a server."""


class StoredLogins:
    """The login to the server of one name at one URL. Implements `LoginStore` of `codex_py.mcp`."""

    def __init__(
        self,
        home: Path,
        kind: StoreKind,
        name: str,
        url: str,
    ) -> None:
        # The key has the address, so that tokens are never sent to a new server of the same name.
        self._key = f"{name}|{sha256(url.encode()).hexdigest()[:16]}"
        name_of_folder = sha256(self._key.encode()).hexdigest()
        self._folder = home / "codex-py" / "mcp-logins" / name_of_folder
        self._file = self._folder / "login.json"
        self._kind: StoreKind = kind

    def read(self) -> str | None:
        ring = self._keyring()
        if ring is not None:
            with self._tolerating():
                text = ring.get_password(_SERVICE, self._key)
                if text is not None:
                    return text
        if self._kind == "keyring":
            return None
        return read_text(self._file)

    def write(self, text: str) -> None:
        ring = self._keyring()
        if ring is not None:
            with self._tolerating():
                ring.set_password(_SERVICE, self._key, text)
                self._file.unlink(missing_ok=True)
                return
        with as_config_error(self._file, "written"):
            make_private(self._folder)
            replace_text(self._file, text)

    def remove(self) -> bool:
        found = False
        ring = self._keyring()
        if ring is not None:
            with self._tolerating():
                if ring.get_password(_SERVICE, self._key) is not None:
                    ring.delete_password(_SERVICE, self._key)
                    found = True
        with as_config_error(self._file, "removed"), suppress(FileNotFoundError):
            self._file.unlink()
            found = True
        return found

    @contextmanager
    def locked(self) -> Generator[None]:
        with ExitStack() as stack:
            with as_config_error(self._folder, "used"):
                make_private(self._folder)
                stack.enter_context(locked(self._folder, _LOCK_TIMEOUT_S))
            yield

    def _keyring(self) -> Any:
        """The module `keyring`; None if logins are in files.

        Raises:
            ConfigError: the user asks for the keyring, but the package is not installed.
        """
        if self._kind == "file":
            return None
        if find_spec("keyring") is not None:
            return import_module("keyring")
        if self._kind == "keyring":
            raise ConfigError(
                '`mcp_oauth_credentials_store = "keyring"` needs the Python package `keyring`'
            )
        return None

    @contextmanager
    def _tolerating(self) -> Generator[None]:
        """Suppress errors of the keyring if the file can be used instead.

        On many machines the keyring is locked.
        """
        try:
            yield
        except Exception as error:
            # The backends of the package may raise anything.
            if self._kind == "keyring":
                raise ConfigError(f"the keyring cannot be used: {error}") from error
