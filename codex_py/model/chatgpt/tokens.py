"""The tokens of a login with ChatGPT, in the form in which `auth.json` holds them."""

import base64
import re
import time
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, Final

from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import (
    JsonObject,
    json_object,
    object_field,
    text_field,
)

_EARLY_S: Final = 60.0
"""The time before its expiry at which a token is renewed, because clocks differ and requests take
time."""
_MAX_TIME_S: Final = 1e12
"""The latest time that a token may name, in seconds since 1970. NaN is no time either."""
_MAX_TOKEN: Final = 65_536
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
"""What a header can carry as a token, or as the id of an account."""
_CLAIM: Final = "https://api.openai.com/auth"
"""The claim with what the issuer tells about the account."""
_PROFILE: Final = "https://api.openai.com/profile"
NAMES: Final = ("id_token", "access_token", "refresh_token")
"""The tokens of a login, by their names in `auth.json` and in the answers of the issuer."""


@frozen
class Tokens:
    """The tokens of one login. Secrets are left out of `repr`."""

    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    """Empty if the login cannot be renewed."""
    id_token: str = field(default="", repr=False)
    stored_account_id: str = ""
    """The account that `auth.json` names beside the tokens; empty if it names none."""

    @property
    def account_id(self) -> str | None:
        """The account that pays for requests; None if nothing names it."""
        named = self.stored_account_id or text_field(self._about, "chatgpt_account_id")
        return named or None

    @property
    def plan(self) -> str | None:
        """The name of the plan, such as `plus`; None if the issuer did not say."""
        return text_field(self._about, "chatgpt_plan_type") or None

    @property
    def user_id(self) -> str | None:
        """The id of the user; None if the issuer did not say."""
        return text_field(self._about, "chatgpt_user_id") or None

    @property
    def email(self) -> str | None:
        """The address of the account; None if the issuer did not say."""
        of_user = claims(self.id_token)
        named = text_field(of_user, "email")
        return named or text_field(object_field(of_user, _PROFILE), "email") or None

    @property
    def issuer(self) -> str:
        """The address of the issuer; empty if no token names it."""
        of_user = text_field(claims(self.id_token), "iss")
        return of_user or text_field(claims(self.access_token), "iss")

    @property
    def is_old(self) -> bool:
        """True if the access token has expired, or will soon. False if it does not say when."""
        expires_at = self.expires_at
        return expires_at is not None and time.time() > expires_at - _EARLY_S

    @property
    def has_expired(self) -> bool:
        expires_at = self.expires_at
        return expires_at is not None and time.time() > expires_at

    @property
    def expires_at(self) -> float | None:
        """The end of the access token in seconds since 1970; None if it does not say."""
        end = claims(self.access_token).get("exp")
        if isinstance(end, bool) or not isinstance(end, int | float):
            return None
        if abs(end) < _MAX_TIME_S:
            return end
        return None

    @property
    def _about(self) -> JsonObject:
        of_user = object_field(claims(self.id_token), _CLAIM)
        return of_user or object_field(claims(self.access_token), _CLAIM)


def workspace_ids(setting: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the workspaces in the setting `forced_chatgpt_workspace_id`; empty: all are allowed.

    A workspace is named by the id of its account.
    """
    if isinstance(setting, str):
        return (setting,)
    return setting or ()


def claims(token: str) -> JsonObject:
    """Return the claims of a JWT, whose signature is not checked; empty for any other text.

    Source: RFC 7519, 7.2.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        text = base64.urlsafe_b64decode(padded).decode()
    except ValueError:
        return {}
    return json_object(text)


def is_sendable(value: str) -> bool:
    """True if a header can carry this token, or this id of an account."""
    return len(value) <= _MAX_TOKEN and _TOKEN.fullmatch(value) is not None


def tokens_of(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the tokens in an answer of the issuer, by their names.

    Those that could not be sent are left out: stored, they would take the place of good ones.
    """
    found = {name: text_field(answer, name) for name in NAMES}
    return {name: token for name, token in found.items() if is_sendable(token)}


def tokens_in(fields: Mapping[str, Any]) -> Tokens | None:
    """Return the tokens in the contents of `auth.json`; None if there is no access token."""
    stored = object_field(fields, "tokens")
    access_token = text_field(stored, "access_token").strip()
    if not access_token:
        return None
    return Tokens(
        access_token,
        text_field(stored, "refresh_token").strip(),
        text_field(stored, "id_token").strip(),
        text_field(stored, "account_id").strip(),
    )


def with_tokens(fields: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of `auth.json` with the tokens of an answer of the issuer.

    What the answer leaves out stays, and so does what only other programs know.
    """
    stored = object_field(fields, "tokens")
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    last_refresh = now.replace("+00:00", "Z")
    return {
        **fields,
        "tokens": {**stored, **tokens_of(answer)},
        "last_refresh": last_refresh,
    }
