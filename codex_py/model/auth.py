"""Finds the key of a provider. The key is never written, logged or put into a message."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias, cast

from codex_py.errors import ConfigError, ExitCode, ModelError
from codex_py.filesystem.reading import read_whole
from codex_py.model.providers import Provider, TokenCommand
from codex_py.protocol.frozen import frozen

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


def find_key(
    provider: Provider,
    *,
    environment: Mapping[str, str],
    home: Path,
    start: StartTokenCommand,
) -> ProviderKey | None:
    """Find the key to send; None if the provider needs none.

    The sources are `env_key`, `experimental_bearer_token`, `auth`, and for OpenAI `CODEX_API_KEY`,
    `OPENAI_API_KEY` and `auth.json` of `home`, in this order. Blocks while a command of `auth`
    runs.

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
    key = (
        _from_variable("CODEX_API_KEY", environment)
        or _from_variable("OPENAI_API_KEY", environment)
        or _from_auth_file(home / "auth.json")
    )
    if key is None:
        if "OPENAI_API_KEY" in environment:
            state = " (it is set, but empty)"
        else:
            state = ""
        raise _missing(
            f"No API key for {provider.name}: set the environment variable OPENAI_API_KEY{state},"
            " or run `codex-py login --with-api-key`. `codex-py doctor` checks the setup."
        )
    return key


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


def _from_auth_file(path: Path) -> ProviderKey | None:
    fields = stored_fields(path)
    value = fields.get("OPENAI_API_KEY")
    if isinstance(value, str) and value.strip():
        return _key(value, str(path))
    if fields.get("tokens"):
        raise _missing(
            f"{path} holds a ChatGPT login, which this program does not use: "
            "set the environment variable OPENAI_API_KEY."
        )
    return None


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
        raise ModelError(
            f"The key from {source} holds characters that no key can have.",
            code="bad_key",
            exit_code=ExitCode.AUTHENTICATION,
        )
    return ProviderKey(stripped, source)


def _missing(message: str) -> ModelError:
    return ModelError(message, code="missing_key", exit_code=ExitCode.AUTHENTICATION)
