"""What is kept of a login to a server, and where."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field


class Login(BaseModel):
    """Tokens, and what it takes to renew them. None of it is shown where this is printed."""

    model_config = ConfigDict(frozen=True)

    access_token: str = Field(repr=False)
    refresh_token: str | None = Field(default=None, repr=False)
    expires_at: float | None = None
    """Seconds since 1970; None where the server did not say."""
    scope: str | None = None
    token_endpoint: str
    resource: str | None = None
    """What the tokens are for; RFC 8707."""
    client: dict[str, Any] = Field(repr=False)
    """Who we are to the authorization server: `OAuthClientInformationFull` of the SDK."""


class LoginStore(Protocol):
    """Keeps one login: that to one address under one name. It may block, and raise `ConfigError`."""

    def read(self) -> str | None:
        """What was written last; None if nothing is kept."""
        ...

    def write(self, text: str) -> None:
        """Replaces it as a whole. Others who look see what was or what is."""
        ...

    def remove(self) -> bool:
        """Whether there was anything to remove."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Programs that renew this login take turns, for a token that renews it works once."""
        ...


def stored_login(store: LoginStore) -> Login | None:
    """None where nothing is kept, or nothing that can be read: both ask for a new login.

    Raises:
        ConfigError: it cannot be looked at.
    """
    text = store.read()
    if text is None:
        return None
    try:
        return Login.model_validate_json(text)
    except ValueError:
        return None
