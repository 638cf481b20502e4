"""The providers of models: `[model_providers.<id>]` in the configuration, and built-in ones.
LIGHT."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, get_args, get_origin
from urllib.parse import urlsplit

from codex_py import registry
from codex_py.errors import ConfigError, nearest
from codex_py.model.profile import Profile
from codex_py.protocol.addresses import shown_url
from codex_py.protocol.frozen import frozen
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS

WIRES: Final[Mapping[str, tuple[str, str]]] = {
    "responses": ("codex_py.model.responses.wire:ResponsesWire", "/responses"),
    "chat": ("codex_py.model.chat.wire:ChatWire", "/chat/completions"),
    "anthropic": ("codex_py.model.anthropic.wire:AnthropicWire", "/messages"),
    "text": ("codex_py.model.chat.wire:ChatWire", "/chat/completions"),
}
"""The class of each API, and the path that it appends to a base URL. `text` is `chat` for models
that cannot call tools; see `Profile.tools`."""
TEXT_TOOLS: Final = "codex_py.model.text.wire:TextToolsWire"
"""The wire that wraps another one for models that write their calls as text."""
_TYPE_NAMES = {
    bool: "boolean",
    str: "string",
    list[str]: "list",
    Mapping[str, Any]: "table",
}
_KEY_HEADERS = ("bearer", "x-api-key", "api-key")
_NO_TABLE: Mapping[str, Any] = MappingProxyType({})

OPENAI_URL: Final = "https://api.openai.com/v1"
CHATGPT_URL: Final = "https://chatgpt.com/backend-api"
_OPENAI: Mapping[str, Any] = {
    "name": "OpenAI",
    "base_url": OPENAI_URL,
    "requires_openai_auth": True,
}
_LOCAL = {"ollama", "lmstudio"}
_CANNOT_BE_REDEFINED = {"openai", *_LOCAL}
_AS_CONFIGURED = (
    "env_key",
    "env_key_instructions",
    "query_params",
    "http_headers",
    "env_http_headers",
    "request_max_retries",
    "stream_max_retries",
    "stream_idle_timeout_ms",
    "requires_openai_auth",
)
"""Fields of `Provider` that are keys of the configuration, with the same types."""
_ABOUT_KEY = ("env_key", "env_key_instructions", "key_header")


@frozen
class TokenCommand:
    """A command that prints the key."""

    command: str
    args: tuple[str, ...] = ()
    cwd: Path | None = None
    timeout_ms: int = 5_000


@frozen(kw_only=True)
class Provider:
    """A provider of models, with its configuration checked."""

    id: str
    name: str
    base_url: str
    """An http or https URL without a slash at its end."""
    env_key: str | None = None
    env_key_place: str | None = None
    """The file and the line that set `env_key`, if the user did."""
    env_key_instructions: str | None = None
    bearer_token: str | None = None
    auth: TokenCommand | None = None
    wire_api: str = "responses"
    """A key of `WIRES`, or the name of a wire of an installed package."""
    key_header: Literal["bearer", "x-api-key", "api-key"] = "bearer"
    """The header that carries the key: `Authorization: Bearer`, or a header with only the key as
    its value."""
    profile: Profile = field(default_factory=Profile)
    query_params: Mapping[str, str] = field(default_factory=dict[str, str])
    http_headers: Mapping[str, str] = field(default_factory=dict[str, str])
    env_http_headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Maps headers to the environment variables with their values."""
    request_max_retries: int | None = None
    """None if the configuration does not set it."""
    stream_max_retries: int | None = None
    """None if the configuration does not set it."""
    stream_idle_timeout_ms: int = 300_000
    requires_openai_auth: bool = False
    """True: the key comes from the same places as OpenAI's."""
    tokens_url: str | None = None
    """The base URL for requests with the tokens of a ChatGPT plan; None: they are not sent to this
    provider."""
    warning: str | None = None
    """A warning for the user of a session, in one sentence."""

    @property
    def shown_url(self) -> str:
        return shown_url(self.base_url)

    def for_tokens(self) -> "Provider":
        """Return this provider as requests with the token of a ChatGPT plan ask it.

        Its endpoint wants `instructions`, and refuses a limit on the output.
        """
        left_out = [*self.profile.left_out, "max_output_tokens"]
        profile = replace(self.profile, base_prompt="instructions", left_out=left_out)
        return replace(self, base_url=self.tokens_url or self.base_url, profile=profile)


def resolve_provider(
    provider_id: str,
    tables: Mapping[str, Mapping[str, Any]],
    *,
    openai_base_url: str | None = None,
    chatgpt_base_url: str | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Provider:
    """Resolve the provider with this id.

    Args:
        tables: `model_providers` of the configuration, with checked types.
        openai_base_url: the setting of this name; if None, `OPENAI_BASE_URL` of `environment`
            counts.
        chatgpt_base_url: the setting of this name.

    Raises:
        ConfigError: there is no such provider, or its configuration cannot be used.
    """
    where = ("model_providers", provider_id)
    table = tables.get(provider_id)
    if provider_id in BUILT_IN_PROVIDERS:
        if table is not None and provider_id in _CANNOT_BE_REDEFINED:
            # Codex refuses it too: two meanings of one name could send a key to the wrong place.
            raise _mistake(
                where,
                f": `{provider_id}` is built in and cannot be redefined; "
                f"choose another id, for example `{provider_id}-custom`",
            )
        table = _built_in(provider_id, table or _NO_TABLE, environment)
        if provider_id == "openai":
            url = openai_base_url or environment.get("OPENAI_BASE_URL")
            table["base_url"] = url or table["base_url"]
    if table is None:
        known = ", ".join(sorted({*BUILT_IN_PROVIDERS, *tables}))
        raise ConfigError(
            f"Model provider `{provider_id}` not found; known are: {known}"
        )
    wire_api = _wire_api(table.get("wire_api", "responses"), (*where, "wire_api"))
    base_url = _base_url(table.get("base_url"), wire_api, where)
    tokens_url: str | None = None
    if provider_id == "openai":
        tokens_url = _tokens_url(
            base_url, openai_base_url, chatgpt_base_url, environment
        )
    elif table.get("requires_openai_auth"):
        tokens_url = base_url
    return Provider(
        id=provider_id,
        name=table.get("name") or provider_id,
        base_url=base_url,
        tokens_url=tokens_url,
        bearer_token=table.get("experimental_bearer_token"),
        auth=_token_command(table.get("auth"), where),
        wire_api=wire_api,
        key_header=_key_header(table, wire_api, where),
        profile=_profile(table.get("profile", {}), wire_api, (*where, "profile")),
        **{name: table[name] for name in _AS_CONFIGURED if name in table},
    )


def _tokens_url(
    base_url: str,
    openai_base_url: str | None,
    chatgpt_base_url: str | None,
    environment: Mapping[str, str],
) -> str | None:
    """The base URL of OpenAI's provider for tokens; None if a variable moves the provider.

    `OPENAI_BASE_URL` names a server that takes keys, and Codex does not read it: a login must not go
    there.
    """
    if openai_base_url:
        return base_url
    if environment.get("OPENAI_BASE_URL"):
        return None
    return f"{chatgpt_url(chatgpt_base_url)}/codex"


def chatgpt_url(setting: str | None) -> str:
    """Return the address of ChatGPT, without a slash at its end.

    Args:
        setting: the setting `chatgpt_base_url`.

    Raises:
        ConfigError: the setting is no address.
    """
    if setting is None:
        return CHATGPT_URL
    url = setting.strip().rstrip("/")
    if not _is_web_address(url) or "@" in url:
        raise _mistake(("chatgpt_base_url",), " is no http:// or https:// address")
    return url


def key_variable(
    provider_id: str, tables: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """The environment variable with a provider's key; None if it needs none, or has several."""
    own = tables.get(provider_id, _NO_TABLE).get("env_key")
    if own or provider_id == "openai" or provider_id not in BUILT_IN_PROVIDERS:
        return own
    return _tables()[provider_id].get("env_key")


def _built_in(
    provider_id: str,
    own: Mapping[str, Any],
    environment: Mapping[str, str],
) -> dict[str, Any]:
    """The table of a built-in provider, overridden by the user's `own` fields."""
    table = dict(_OPENAI if provider_id == "openai" else _tables()[provider_id])
    has_other_key = own.get("auth") or own.get("experimental_bearer_token")
    if has_other_key and not own.get("env_key"):
        # The user's key has another source, and is sent in the usual header.
        for name in _ABOUT_KEY:
            table.pop(name, None)
    if "base_url" in own and table.get("wire_api") == "chat":
        # A table in the shared file must mean the same as in Codex, which supports only the
        # Responses API.
        table["wire_api"] = "responses"
    profile = dict(table.get("profile", {}))
    profile.update(own.get("profile", {}))
    table |= {**own, "profile": profile}
    if provider_id in _LOCAL:
        table["base_url"] = _local_url(environment) or table["base_url"]
    if table.get("endpoint_env") and not table.get("base_url"):
        table["base_url"] = _endpoint_url(provider_id, table, environment)
    return table


def _local_url(environment: Mapping[str, str]) -> str | None:
    """The address of a local server according to the variables of Codex; None if they name none."""
    url = environment.get("CODEX_OSS_BASE_URL", "").strip()
    if url:
        return url
    port = environment.get("CODEX_OSS_PORT", "").strip()
    if port.isdecimal():
        return f"http://localhost:{port}/v1"
    return None


def _endpoint_url(
    provider_id: str,
    table: Mapping[str, Any],
    environment: Mapping[str, str],
) -> str:
    """The address of a provider whose users have addresses of their own, from a variable.

    Raises a `ConfigError` if the variable is not set.
    """
    variable = table["endpoint_env"]
    endpoint = environment.get(variable, "").strip().rstrip("/")
    if not endpoint:
        raise ConfigError(
            f"{table['name']} has no fixed address: set {variable}, or"
            f" `model_providers.{provider_id}.base_url`; the model is the name of a deployment"
        )
    path: str = table["endpoint_path"]
    if endpoint.endswith(path):
        return endpoint
    return endpoint + path


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    """The built-in providers besides OpenAI."""
    path = Path(__file__).with_name("providers.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _mistake(where: Sequence[str], text: str) -> ConfigError:
    """The error for a key, given by its path; `text` goes on after the key."""
    return ConfigError(f"{'.'.join(where)}{text}", key=where)


def _one_of(
    values: Iterable[str],
    value: str,
    where: Sequence[str],
) -> Any:
    """The value, if it is one of `values`."""
    if value not in values:
        raise _mistake(
            where, f": {value!r} is not supported; use one of {', '.join(values)}"
        )
    return value


def _wire_api(value: str, where: Sequence[str]) -> str:
    """The value, if it is the name of an API of ours or of an installed package."""
    if value in WIRES:
        return value
    if registry.find(registry.WIRES, value) is not None:
        return value
    known = [*WIRES, *registry.installed_names(registry.WIRES)]
    text = (
        f": {value!r} is not supported; use one of {', '.join(known)}, or install the package that"
        " adds it"
    )
    near = nearest(value, known)
    if near is not None:
        text += f"; did you mean {near!r}?"
    raise _mistake(where, text)


def _key_header(
    table: Mapping[str, Any],
    wire_api: str,
    where: Sequence[str],
) -> Any:
    default = "x-api-key" if wire_api == "anthropic" else "bearer"
    header = table.get("key_header", default)
    return _one_of(_KEY_HEADERS, header, (*where, "key_header"))


def _profile(
    table: Mapping[str, Any],
    wire_api: str,
    where: Sequence[str],
) -> Profile:
    """The profile in a table, with checked names and types."""
    values: dict[str, Any] = {}
    if wire_api == "text":
        values["tools"] = "text"
    values.update(table)
    defaults = {each.name: each for each in fields(Profile)}
    for name, value in values.items():
        if name not in defaults:
            raise _mistake(
                (*where, name), f": no such setting; known are {', '.join(defaults)}"
            )
        kind: Any = defaults[name].type
        if get_origin(kind) is Literal:
            _one_of(get_args(kind), value, (*where, name))
        elif not isinstance(value, get_origin(kind) or kind):
            raise _mistake((*where, name), f": {value!r} is not a {_TYPE_NAMES[kind]}")
    try:
        json.dumps(values.get("extra_body"), allow_nan=False)
    except (TypeError, ValueError) as error:
        text = ": JSON has no dates, no nan and no inf"
        raise _mistake((*where, "extra_body"), text) from error
    return Profile(**values)


def _base_url(
    value: str | None,
    wire_api: str,
    where: Sequence[str],
) -> str:
    """The address without the endpoint that may have been pasted with it."""
    where = (*where, "base_url")
    value = (value or "").strip()
    if not value:
        raise _mistake(where, " is missing")
    if not _is_web_address(value):
        # The text before an @ may be a password.
        shown = "this" if "@" in value else repr(value)
        raise _mistake(where, f": {shown} is no http:// or https:// address")
    if wire_api not in WIRES:
        return value
    value = value.rstrip("/")
    _, own_endpoint = WIRES[wire_api]
    for wire, (_, endpoint) in WIRES.items():
        if not value.endswith(endpoint):
            continue
        if endpoint != own_endpoint:
            raise _mistake(
                where,
                f": {endpoint} is asked by the `wire_api` {wire!r}, and this one is"
                f" {wire_api!r}",
            )
        return value.removesuffix(endpoint)
    # Anthropic's SDKs append `/v1/messages`, so addresses written for them have no `/v1`.
    has_version = re.search(r"/v\d\w*$", value) is not None
    if wire_api == "anthropic" and not has_version:
        return f"{value}/v1"
    return value


def _is_web_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        if not parts.hostname or parts.port == 0:
            return False
    except ValueError:
        return False
    return parts.scheme in {"http", "https"}


def _token_command(
    table: Mapping[str, Any] | None, where: Sequence[str]
) -> TokenCommand | None:
    """The command that prints the key, from the table `auth`."""
    if table is None:
        return None
    if not table.get("command"):
        raise _mistake((*where, "auth", "command"), " is missing")
    cwd = table.get("cwd")
    return TokenCommand(
        command=table["command"],
        args=tuple(table.get("args", ())),
        cwd=None if cwd is None else Path(cwd),
        timeout_ms=table.get("timeout_ms", 5_000),
    )
