"""Tells which login to OpenAI there is, without asking anybody."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from codex_py.app.stored_login import (
    login_path,
    masked,
    stored_login,
)
from codex_py.config.config import Config
from codex_py.model.auth import ProviderKey, stored_fields, stored_key
from codex_py.model.chatgpt.tokens import Tokens, tokens_in, workspace_ids
from codex_py.protocol.frozen import frozen

CHECKED_LATER: Final = "Authentication is checked when you send a request."
_TOKEN_VARIABLE: Final = "CODEX_ACCESS_TOKEN"
_NOT_LOGGED_IN: Final = "Not logged in"
_OTHER_LOGIN: Final = (
    "The login in auth.json is of a kind that codex-py cannot use: set OPENAI_API_KEY, or run"
    " `codex-py logout` and log in with an API key."
)


@frozen
class LoginStatus:
    lines: tuple[str, ...]
    """Sentences for the user. The first one is Codex's, if it has the case."""
    is_usable: bool
    """True if requests can be sent with the login."""


@frozen
class PlanFacts:
    """What a token says about the ChatGPT plan that it belongs to."""

    plan: str
    """The name of the plan, such as `plus`; empty if the token does not say. Not safe for a
    terminal."""
    expires_at: float | None
    """The end of the token in seconds since 1970; None if it does not say."""
    has_expired: bool
    is_renewed: bool
    """True if the program renews the token with a request that needs it."""


def plan_facts(key: ProviderKey) -> PlanFacts:
    """Return what a token of ChatGPT says. Asks nobody.

    Raises:
        ConfigError: `auth.json` cannot be read.
    """
    tokens: Tokens | None = None
    if key.login_file is not None:
        tokens = tokens_in(stored_fields(key.login_file))
    tokens = tokens or Tokens(key.value)
    return PlanFacts(
        tokens.plan or "",
        tokens.expires_at,
        tokens.has_expired,
        is_renewed=bool(tokens.refresh_token),
    )


def login_status(config: Config, environment: Mapping[str, str]) -> LoginStatus:
    """Return the login that requests to OpenAI use, and what is known about it.

    Raises:
        ConfigError: the configuration names another store, or the file cannot be read.
        ModelError: the key or the token cannot be sent.
    """
    path = login_path(config)
    exported = environment.get(_TOKEN_VARIABLE, "").strip()
    if exported:
        key = ProviderKey(exported, f"environment variable {_TOKEN_VARIABLE}", True)
        status = _of_token(key, Tokens(exported), config)
        source = f"The token is that of the {key.source}."
        status = replace(status, lines=(*status.lines, source))
        return _with_variables(status, environment, ["CODEX_API_KEY"])
    fields = stored_fields(path)
    stored = stored_key(path)
    if stored is None:
        if stored_login(config) is None:
            return LoginStatus((_NOT_LOGGED_IN,), is_usable=False)
        return LoginStatus((_OTHER_LOGIN,), is_usable=False)
    if stored.is_token:
        tokens = tokens_in(fields)
        if tokens is None or stored.login_file is None:
            tokens = Tokens(stored.value)
        status = _of_token(stored, tokens, config)
        return _with_variables(status, environment, ["CODEX_API_KEY"])
    if config.settings.forced_login_method == "chatgpt":
        return _refused(
            "ChatGPT login is required (`forced_login_method`), and auth.json has an API key."
        )
    lines = (f"API key configured - {masked(stored.value)}", CHECKED_LATER)
    names = ["CODEX_API_KEY", "OPENAI_API_KEY"]
    return _with_variables(LoginStatus(lines, is_usable=True), environment, names)


def _of_token(key: ProviderKey, tokens: Tokens, config: Config) -> LoginStatus:
    """The status of a token of ChatGPT."""
    if config.settings.forced_login_method == "api":
        return _refused(
            "API key login is required (`forced_login_method`), and there is one with ChatGPT."
        )
    workspaces = workspace_ids(config.settings.forced_chatgpt_workspace_id)
    if workspaces and tokens.account_id and tokens.account_id not in workspaces:
        allowed = ", ".join(workspaces)
        return _refused(
            f"Login is restricted to workspace id(s) {allowed}, and this one belongs to"
            f" {tokens.account_id}."
        )
    lines = ["Logged in using ChatGPT"]
    if key.login_file is None and key.value.startswith("at-"):
        lines = ["Logged in using personal access token"]
    facts: dict[str, Any] = {
        "account": tokens.email,
        "plan": tokens.plan,
        "workspace": tokens.account_id,
    }
    known = [f"{name} {value}" for name, value in facts.items() if value]
    if known:
        told = "".join(filter(str.isprintable, ", ".join(known)))
        lines.append(f"{told[0].upper()}{told[1:]}.")
    return LoginStatus(tuple(lines), is_usable=True)


def _refused(reason: str) -> LoginStatus:
    return LoginStatus((_NOT_LOGGED_IN, reason), is_usable=False)


def _with_variables(
    status: LoginStatus, environment: Mapping[str, str], names: Sequence[str]
) -> LoginStatus:
    """The status with a sentence about the first variable whose key counts more."""
    for name in names:
        if environment.get(name, "").strip():
            told = f"The environment variable {name} is set, and counts more."
            return replace(status, lines=(*status.lines, told))
    return status
