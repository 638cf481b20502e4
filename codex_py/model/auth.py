"""Finds the key of a provider. The key is never written, logged or put into a message."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, cast

from codex_py.errors import ConfigError, ExitCode, ModelError
from codex_py.filesystem.reading import read_whole
from codex_py.model.providers import Provider, TokenCommand
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import object_field, text_field
from codex_py.protocol.stream import PlanUse

_MAX_BYTES = 1 << 20
"""The limit for `auth.json`."""
_MAX_TOKEN_BYTES = 65_536
_BLANKS = "".join(map(chr, range(0x21))) + "\x7f\xa0\ufeff"
"""Blanks and control characters, which may surround a key."""

StartTokenCommand: TypeAlias = Callable[[TokenCommand], subprocess.Popen[bytes]]
"""Starts the command in a new process session, with its stdout as a pipe; raises the errors of
`Popen`."""


@frozen
class ProviderKey:
    value: str = field(repr=False)
    """The key as a header can carry it: printable characters of Latin-1, at least one."""
    source: str
    """The origin of the key for messages, such as `environment variable OPENAI_API_KEY`."""
    is_token: bool = False
    """True: it is no key but an access token of ChatGPT, which is sent to another endpoint."""
    account_id: str | None = None
    """The account that pays for the requests of a token; None if nothing names it."""
    login_file: Path | None = None
    """The file with the login that renews the token; None if it cannot be renewed."""


class TokenSource(Protocol):
    """Gives the access token of ChatGPT for each request. May be used by several tasks at once."""

    async def key(self) -> ProviderKey:
        """Return the token for the next request.

        Raises:
            ModelError: there is none that the server would accept.
            ConfigError: `auth.json` cannot be read or written.
        """
        ...

    async def after_refusal(self, refused: ProviderKey) -> ProviderKey:
        """Return another token after the server has refused one. Raises as `key` does."""
        ...

    def plan_use(self, headers: Mapping[str, str]) -> PlanUse:
        """Return what the headers of an answer say about the plan, whose tokens `key` gave."""
        ...


def find_key(
    provider: Provider,
    *,
    environment: Mapping[str, str],
    home: Path,
    start: StartTokenCommand,
    allowed: Literal["chatgpt", "api"] | None = None,
) -> ProviderKey | None:
    """Find the key to send; None if the provider needs none.

    The sources are `env_key`, `experimental_bearer_token`, `auth`, and for OpenAI `CODEX_API_KEY`,
    `CODEX_ACCESS_TOKEN`, a login with ChatGPT in `auth.json` of `home`, `OPENAI_API_KEY` and a key
    in `auth.json`, in this order. Blocks while a command of `auth` runs.

    Args:
        allowed: the only kind of login to OpenAI that may be used; None: both.

    Raises:
        ModelError: the key is missing (`missing_key`), or cannot be sent.
        ConfigError: `auth.json` cannot be read.
    """
    where = f"model_providers.{provider.id}"
    if provider.env_key is not None:
        key = _from_variable(provider.env_key, environment)
        if key is None:
            is_set = provider.env_key in environment
            raise _missing_variable(provider.env_key, provider, is_set=is_set)
        return key
    if provider.bearer_token is not None:
        return _key(provider.bearer_token, f"{where}.experimental_bearer_token")
    if provider.auth is not None:
        return _key(_printed_by(provider.auth, start), f"the command of {where}.auth")
    if not provider.requires_openai_auth:
        return None
    return _openai_key(provider, environment, home / "auth.json", allowed)


def _openai_key(
    provider: Provider,
    environment: Mapping[str, str],
    path: Path,
    allowed: Literal["chatgpt", "api"] | None,
) -> ProviderKey:
    """The first key or token of OpenAI that is allowed."""
    is_any_found = False
    for key in _openai_keys(provider, environment, path):
        if allowed is None or key.is_token == (allowed == "chatgpt"):
            return key
        is_any_found = True
    if is_any_found:
        raise _forbidden(wants_token=allowed == "chatgpt")
    if provider.tokens_url is None and holds_tokens(stored_fields(path)):
        raise _missing(
            f"{path} holds a ChatGPT login, which is not sent to the address in OPENAI_BASE_URL:"
            " set the environment variable OPENAI_API_KEY."
        )
    if "OPENAI_API_KEY" in environment:
        state = " (it is set, but empty)"
    else:
        state = ""
    raise _missing(
        f"No {_named(allowed)} for {provider.name}: {_ways_to_sign_in(allowed, state)}."
        " `codex-py doctor` checks the setup."
    )


def _named(allowed: Literal["chatgpt", "api"] | None) -> str:
    """What a request needs. `allowed`: the only kind that may be used; None for both."""
    if allowed == "chatgpt":
        return "ChatGPT login"
    if allowed == "api":
        return "API key"
    return "API key or ChatGPT login"


def _ways_to_sign_in(allowed: Literal["chatgpt", "api"] | None, state: str) -> str:
    """What the user can do. `state`: what is wrong with the variable that was set."""
    variable = f"set the environment variable OPENAI_API_KEY{state}"
    if allowed == "chatgpt":
        return "run `codex-py login`"
    if allowed == "api":
        return f"{variable}, or run `codex-py login --with-api-key`"
    return f"run `codex-py login`, or {variable}"


def _openai_keys(
    provider: Provider, environment: Mapping[str, str], path: Path
) -> Iterator[ProviderKey]:
    """Yield the keys and tokens of OpenAI, in the order of Codex 0.150.

    Codex does not read `OPENAI_API_KEY`. Here it counts less than a login with ChatGPT for the
    provider `openai`, and more than one for a provider of the user's own.
    """
    key = _from_variable("CODEX_API_KEY", environment)
    if key is not None:
        yield key
    takes_tokens = provider.tokens_url is not None
    token = _from_variable("CODEX_ACCESS_TOKEN", environment)
    if token is not None and takes_tokens:
        yield _token(token.value, token.source)
    exported = _from_variable("OPENAI_API_KEY", environment)
    is_of_another = exported is not None and provider.id != "openai"
    if exported is not None and is_of_another:
        yield exported
    stored: ProviderKey | None = None
    try:
        stored = stored_key(path)
    except (ConfigError, ModelError):
        if exported is None:
            raise
    if stored is not None and stored.is_token and takes_tokens:
        yield stored
    if exported is not None and not is_of_another:
        yield exported
    if stored is not None and not stored.is_token:
        yield stored


def _forbidden(*, wants_token: bool) -> ModelError:
    # The words are Codex's.
    if wants_token:
        problem = "ChatGPT login is required, but an API key is currently being used."
    else:
        problem = "API key login is required, but ChatGPT is currently being used."
    return _missing(f"{problem} See `forced_login_method`.")


def _missing_variable(
    name: str,
    provider: Provider,
    *,
    is_set: bool,
) -> ModelError:
    sentences = [f"Missing environment variable: `{name}`."]
    if is_set:
        sentences.append("It is set, but empty.")
    if provider.env_key_instructions:
        sentences.append(provider.env_key_instructions)
    user = f"the provider `{provider.id}`"
    if provider.env_key_place:
        user = f"{user} ({provider.env_key_place})"
    sentences.append(f"It holds the key of {user}; `codex-py doctor` checks the setup.")
    return _missing(" ".join(sentences))


def _from_variable(name: str, environment: Mapping[str, str]) -> ProviderKey | None:
    value = environment.get(name, "")
    if value.strip():
        return _key(value, f"environment variable {name}")
    return None


def stored_key(path: Path) -> ProviderKey | None:
    """Return the key or the token of `auth.json`; None if it holds none that can be used.

    Raises:
        ConfigError: the file cannot be read, or is not a JSON object.
        ModelError: it cannot be sent.
    """
    fields = stored_fields(path)
    if holds_tokens(fields):
        stored = object_field(fields, "tokens")
        account_id = text_field(stored, "account_id").strip()
        return token_key(stored["access_token"], path, account_id or None)
    token = text_field(fields, "personal_access_token")
    # Codex 0.171 writes no `auth_mode` beside it.
    is_used = text_field(fields, "auth_mode") in {"", "personalAccessToken"}
    if is_used and token.strip():
        return _token(token, str(path))
    value = fields.get("OPENAI_API_KEY")
    if isinstance(value, str) and value.strip():
        return _key(value, str(path))
    return None


def token_key(token: str, path: Path, account_id: str | None) -> ProviderKey:
    """Return a token of a login with ChatGPT. Raises a `ModelError` if it cannot be sent.

    `path`: that of `auth.json`.
    """
    key = _token(token, f"the ChatGPT login in {path}")
    if account_id is not None:
        # The id is sent beside the token.
        _token(account_id, f"the account of the ChatGPT login in {path}")
    return replace(key, account_id=account_id, login_file=path)


def holds_tokens(fields: Mapping[str, Any]) -> bool:
    """True if the tokens in the contents of `auth.json` count, and not the key beside them.

    The rules are those of Codex 0.150: without an `auth_mode`, a key counts more than tokens.
    """
    token = object_field(fields, "tokens").get("access_token")
    if not isinstance(token, str) or not token.strip():
        return False
    mode = text_field(fields, "auth_mode")
    if mode:
        return mode.startswith("chatgpt")
    return not text_field(fields, "OPENAI_API_KEY").strip()


def stored_fields(path: Path) -> Mapping[str, Any]:
    """Return the contents of `auth.json`; empty if there is no such file.

    Raises:
        ConfigError: the file cannot be read, or is not a JSON object.
    """
    try:
        data: Any = json.loads(read_whole(path, _MAX_BYTES))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        # The text of the error may quote the file.
        if isinstance(error, json.JSONDecodeError):
            line = f", line {error.lineno}"
        else:
            line = ""
        raise ConfigError(f"{path}{line}: not valid JSON") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: not a JSON object")
    return cast("dict[str, Any]", data)


def _printed_by(auth: TokenCommand, start: StartTokenCommand) -> str:
    """Run the command and return its output.

    If it does not exit in time, its whole process group is killed.
    """
    try:
        process = start(auth)
    except (OSError, ValueError) as error:
        raise unusable_command(auth, str(error)) from error
    with process:
        try:
            output, _ = process.communicate(timeout=auth.timeout_ms / 1000)
        except subprocess.TimeoutExpired as error:
            raise _missing(
                f"The command for the key, {auth.command!r}, gave none in {auth.timeout_ms} ms."
            ) from error
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    is_usable = bool(output.strip()) and len(output) <= _MAX_TOKEN_BYTES
    if process.returncode != 0 or not is_usable:
        raise _missing(
            f"The command for the key, {auth.command!r}, gave none "
            f"(exit code {process.returncode}, {len(output)} bytes)."
        )
    return output.decode("utf-8", "replace")


def unusable_command(auth: TokenCommand, why: str) -> ModelError:
    return _missing(f"The command for the key, {auth.command!r}, cannot run: {why}")


def _key(value: str, source: str) -> ProviderKey:
    # A key from a file often ends with a line break.
    stripped = value.strip(_BLANKS)
    if not re.fullmatch(r"[\x20-\x7e\xa1-\xff]+", stripped):
        raise _bad_key(source)
    return ProviderKey(stripped, source)


def _token(value: str, source: str) -> ProviderKey:
    """A token of ChatGPT, which is ASCII."""
    key = _key(value, source)
    if not key.value.isascii():
        raise _bad_key(source)
    return replace(key, is_token=True)


def _bad_key(source: str) -> ModelError:
    return ModelError(
        f"The key from {source} holds characters that no key can have.",
        code="bad_key",
        exit_code=ExitCode.AUTHENTICATION,
    )


def _missing(message: str) -> ModelError:
    return ModelError(message, code="missing_key", exit_code=ExitCode.AUTHENTICATION)
