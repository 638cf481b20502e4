"""A stored login to a server."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field


class Login(BaseModel):
    """Tokens, and the data to renew them. Secrets are left out of `repr`."""

    model_config = ConfigDict(frozen=True)

    access_token: str = Field(repr=False)
    refresh_token: str | None = Field(default=None, repr=False)
    expires_at: float | None = None
    """Seconds since 1970; None if the server did not say."""
    scope: str | None = None
    token_endpoint: str
    resource: str | None = None
    """The resource that the tokens are for; RFC 8707."""
    client: dict[str, Any] = Field(repr=False)
    """Our registration at the authorization server: `OAuthClientInformationFull` of the SDK."""


class LoginStore(Protocol):
    """Stores the login to one server at one address. Its methods may block and raise `ConfigError`."""

    def read(self) -> str | None:
        """The stored text, or None."""
        ...

    def write(self, text: str) -> None:
        """Replace the stored text atomically."""
        ...

    def remove(self) -> bool:
        """True if there was something to remove."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Hold a lock while the login is renewed, because a refresh token works only once."""
        ...


def stored_login(store: LoginStore) -> Login | None:
    """The stored login. None if there is none or it cannot be parsed: then a new login is needed.

    Raises:
        ConfigError: the store cannot be read.
    """
    text = store.read()
    if text is None:
        return None
    try:
        return Login.model_validate_json(text)
    except ValueError:
        return None
