"""Finds the model servers of this machine, and the models that they list.

Only `--oss` and `codex-py providers` ask these servers.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from codex_py.app.model import named_provider, provider_key
from codex_py.config.config import Config
from codex_py.config.model_name import split_model
from codex_py.errors import ConfigError, ExitCode, ModelError
from codex_py.http.encoding import DamagedBody, Unpacker, is_packed, unreadable
from codex_py.model.auth import ProviderKey
from codex_py.model.providers import Provider
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import object_field
from codex_py.protocol.provider_ids import LOCAL_PROVIDERS

_TIMEOUT_S = 1.0
"""The limit for the connection, and for each piece of an answer."""
_ANSWER_S = 3.0
"""The limit for the whole body."""
_MAX_BYTES = 4_000_000
_USUAL_MODELS = {"ollama": "gpt-oss:20b", "lmstudio": "openai/gpt-oss-20b"}
"""The models that Codex uses."""
_START = {
    "ollama": "`ollama serve`, and get a model with `ollama pull gpt-oss:20b`",
    "lmstudio": "`lms server start`, and load a model",
    "llamacpp": "`llama-server --jinja -m MODEL.gguf`",
    "vllm": "`vllm serve MODEL`",
}


@frozen
class LocalModel:
    """A model that a server lists."""

    id: str
    window: int | None = None
    """The window in tokens, if the server tells it."""


def local_settings(
    config: Config,
    wanted: str | None,
    model: str | None,
    environment: Mapping[str, str],
) -> dict[str, Any]:
    """Return the settings, as in `config.toml`, that select a model of a server on this machine.

    Args:
        wanted: the id of the server; None: the first one that runs.
        model: None: the model that Codex uses, if the server has it, else the first one that it
            lists.

    Raises:
        ConfigError: the server is unknown.
        ModelError: no server runs, or the server has no model.
    """
    wanted, model = _without_prefix(wanted, model)
    if wanted is not None and wanted not in LOCAL_PROVIDERS:
        raise ConfigError(
            f"`oss_provider`: {wanted!r} is no local provider; use one of"
            f" {', '.join(LOCAL_PROVIDERS)}"
        )
    if wanted is not None and model is not None:
        return {"model_provider": wanted, "model": model}
    failures: list[str] = []
    names = LOCAL_PROVIDERS if wanted is None else [wanted]
    for name in names:
        provider = named_provider(config, name, environment)
        try:
            listed = listed_models(provider, config, environment)
        except ModelError as error:
            failures.append(str(error))
            continue
        chosen = _chosen(name, model, listed)
        if chosen is not None:
            return _selecting(name, chosen, config)
        failures.append(f"{provider.name} has no model")
    start = "start one, or say which with -m"
    if wanted is not None:
        start = f"start it with {_START[wanted]}"
    raise ModelError(
        f"no model server was found on this machine: {'; '.join(failures)}; {start}",
        code="connection",
        exit_code=ExitCode.UNAVAILABLE,
    )


def _without_prefix(
    wanted: str | None, model: str | None
) -> tuple[str | None, str | None]:
    """The server and the model, which may name its server: `ollama/gpt-oss:20b`.

    Arguments are those of `local_settings`. The prefix belongs to the model's own name if another
    server is wanted.
    """
    server_and_model = split_model(model or "", LOCAL_PROVIDERS)
    if server_and_model is None:
        return wanted, model
    server, _ = server_and_model
    if wanted is not None and wanted != server:
        return wanted, model
    return server_and_model


def _selecting(server: str, model: LocalModel, config: Config) -> dict[str, Any]:
    """The settings that select a model, with its window unless one is configured."""
    settings: dict[str, Any] = {"model_provider": server, "model": model.id}
    if model.window is not None and config.model_context_window is None:
        settings["model_context_window"] = model.window
    return settings


def listed_models(
    provider: Provider, config: Config, environment: Mapping[str, str]
) -> Sequence[LocalModel]:
    """Ask a server which models it has. Blocks for a second or two at most if it is silent.

    Raises:
        ModelError: the server does not answer, or is not a model server; the message names it.
    """
    key = provider_key(config, provider, environment)
    try:
        status, encoding, body = _answer(provider, key)
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error)
        reason = reason or type(error).__name__
        raise _unavailable(
            f"{provider.name} does not answer at {_at(provider)} ({reason})"
        ) from error
    reason = unreadable(encoding)
    if reason is not None:
        raise _unavailable(
            f"{provider.name} at {_at(provider)} cannot be read: {reason}"
        )
    if status in {401, 403}:
        raise _unavailable(
            f"{provider.name} at {_at(provider)} wants a key (status {status})"
        )
    models = None
    if status == 200:
        models = _models(body, encoding)
    if models is None:
        raise _unavailable(
            f"what answers at {_at(provider)} is no {provider.name} (status {status})"
        )
    return models


def _models(body: bytes, encoding: str | None) -> Sequence[LocalModel] | None:
    """The models that an answer lists; None if it is not the answer of a model server."""
    try:
        if is_packed(encoding):
            body = _unpacked(body, encoding)
        data: Any = json.loads(body)
        return [_model(entry) for entry in data["data"]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _answer(
    provider: Provider, key: ProviderKey | None
) -> tuple[int, str | None, bytes]:
    """Ask a server for its models. Returns the status, the content encoding and the body.

    Raises an `OSError` or an `HTTPException`.
    """
    url = urlsplit(f"{provider.base_url}/models")
    headers: dict[str, str] = {}
    if key is not None:
        headers["authorization"] = f"Bearer {key.value}"
    make = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = make(str(url.hostname), url.port, timeout=_TIMEOUT_S)
    with closing(connection):
        connection.request("GET", quote(url.path, safe="/%"), headers=headers)
        response = connection.getresponse()
        encoding = response.getheader("content-encoding")
        return response.status, encoding, _body(response)


def _body(response: HTTPResponse) -> bytes:
    """Read the body. Raises a `TimeoutError` if the server takes too long to send it."""
    deadline = time.monotonic() + _ANSWER_S
    body = b""
    while len(body) < _MAX_BYTES:
        piece = response.read1(_MAX_BYTES)
        if not piece:
            break
        body += piece
        if time.monotonic() > deadline:
            raise TimeoutError("timed out")
    return body


def _unpacked(body: bytes, encoding: str | None) -> bytes:
    """Unpack a body. Raises a `ValueError` if it cannot be unpacked, or is too large."""
    content = b""
    for piece in Unpacker(encoding).feed(body):
        content += piece
        if len(content) > _MAX_BYTES:
            raise DamagedBody("the answer is too large")
    return content


def _model(entry: Mapping[str, Any]) -> LocalModel:
    """The model of an entry; vLLM and llama.cpp tell its window under different names."""
    window = entry.get("max_model_len") or object_field(entry, "meta").get("n_ctx")
    if not isinstance(window, int) or window <= 0:
        window = None
    return LocalModel(str(entry["id"]), window)


def _chosen(
    name: str, model: str | None, models: Sequence[LocalModel]
) -> LocalModel | None:
    """The model to use; None if the server lists none and none was named.

    For `name` and `model`, see `local_settings`.
    """
    # A model for embeddings cannot answer.
    answering = [each for each in models if "embed" not in each.id.lower()]
    preferred = _USUAL_MODELS.get(name) if model is None else model
    for each in answering:
        if each.id == preferred:
            return each
    if model is not None:
        # The server may have more models than it lists: some load a model when it is asked for.
        return LocalModel(model)
    return answering[0] if answering else None


def _at(provider: Provider) -> str:
    """The address of a server, without its path."""
    parts = urlsplit(provider.base_url)
    address = f"{parts.scheme}://{parts.hostname}"
    if parts.port:
        return f"{address}:{parts.port}"
    return address


def _unavailable(text: str) -> ModelError:
    return ModelError(text, code="connection", exit_code=ExitCode.UNAVAILABLE)
