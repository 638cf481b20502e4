"""Applies the changes of a client to the text of the user's `config.toml`."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.config.check import KeyPath, leaves, lookup
from codex_py.config.config import Config
from codex_py.config.edit import changed_text
from codex_py.config.files import parse_toml, require_shallow
from codex_py.config.hidden import hidden, restored
from codex_py.config.overrides import parse_key
from codex_py.errors import ConfigError
from codex_py.frontends.app_server.configuration.config_layers import (
    metadata,
    override_message,
    setting_layer,
    shown_layers,
    version,
)
from codex_py.frontends.app_server.configuration.config_params import (
    REMOVED,
    ConfigEdit,
)
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.json_fields import as_object
from codex_py.protocol.messages import encode_json

READ_ONLY: Final = "configLayerReadonly"
INVALID: Final = "configValidationError"
_CONFLICT: Final = "configVersionConflict"
_MAX_CHANGES: Final = 256
"""The number of keys that one request may change. Other programs wait for their turn meanwhile."""
_MAX_KEY: Final = 4_096
"""The length of a key in characters."""
_MAX_PARTS: Final = 32
"""The number of tables inside each other that a key may make."""
_TIMEOUT_S: Final = 5.0
"""The time for all changes of a request: half of what other programs wait for their turn."""
_MAX_VALUE: Final = 256 * 1024
"""The length of a value as JSON, in bytes."""
_MAX_INTEGER: Final = 2**63
_OLD_PROFILES: Final = {
    "profile": "`profile` is a legacy config selector",
    "profiles": "`profiles` contains legacy config profile tables",
}


def write_error(code: str, text: str) -> RpcError:
    """Return the error of a change that is refused, as Codex has it."""
    return RpcError(INVALID_REQUEST, text, {"config_write_error_code": code})


def edited(
    text: str,
    path: Path,
    edits: Sequence[ConfigEdit],
    expected_version: str | None,
) -> str:
    """Return the text of the user's file after these changes, one after another.

    Comments and the order of all other keys stay.

    Args:
        expected_version: the version that the client has read; None: any.

    Raises:
        RpcError: the file has another version, or a change is not possible.
        ConfigError: the file cannot be read.
    """
    values = parse_toml(text, path)
    if expected_version is not None and expected_version != version(values):
        raise write_error(
            _CONFLICT,
            "Configuration was modified since last read. Fetch latest version and retry.",
        )
    count = 0
    deadline = time.monotonic() + _TIMEOUT_S
    for edit in edits:
        for key, value in _changes(values, edit):
            count += 1
            if count > _MAX_CHANGES:
                problem = f"more than {_MAX_CHANGES} keys in one request"
                raise write_error(INVALID, problem)
            if time.monotonic() > deadline:
                problem = "the file is too long for so many changes in one request"
                raise write_error(INVALID, problem)
            try:
                text = changed_text(text, path, {key: value})
            except ConfigError as error:
                raise invalid(error) from error
        values = parse_toml(text, path)
    return text


def invalid(error: ConfigError) -> RpcError:
    """Return the error of a change that leads to a configuration with this mistake."""
    problem = str(error).removeprefix("Error loading config.toml: ")
    return write_error(INVALID, f"Invalid configuration: {problem}")


def _changes(
    values: Mapping[str, Any], edit: ConfigEdit
) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the keys that a change sets, with their values; None removes a key.

    Args:
        values: the values of the file.
    """
    key = edit_key(edit)
    new = edit.value
    if new is REMOVED:
        yield key, None
        return
    _require_toml(new)
    old = lookup(values, key)
    try:
        new = restored(new, old, key)
    except ConfigError as error:
        raise invalid(error) from error
    is_merged = isinstance(old, dict) and isinstance(edit.value, dict)
    if edit.merge_strategy == "replace" or not is_merged:
        yield key, new
        return
    # The other keys of the table keep their lines.
    for leaf in leaves(new, key):
        value = lookup(as_object(new), leaf[len(key) :])
        is_empty_table = value == {} and isinstance(lookup(values, leaf), dict)
        if not is_empty_table:
            yield leaf, value


def edit_key(edit: ConfigEdit) -> KeyPath:
    """Return the parts of the key of a change. Raises an `RpcError` if there is none."""
    # The words are Codex's.
    if not edit.key_path.strip():
        raise write_error(INVALID, "keyPath must not be empty")
    if len(edit.key_path) > _MAX_KEY:
        raise write_error(INVALID, f"keyPath has more than {_MAX_KEY} characters")
    key = parse_key(edit.key_path)
    if "" in key:
        raise write_error(INVALID, "keyPath segments must not be empty")
    if len(key) > _MAX_PARTS:
        raise write_error(INVALID, f"keyPath has more than {_MAX_PARTS} segments")
    old = _OLD_PROFILES.get(key[0])
    if old is not None:
        raise write_error(
            INVALID,
            f"{old} and can no longer be written; use `--profile <name>` with"
            " `<name>.config.toml` instead",
        )
    return key


def _require_toml(value: Any) -> None:
    """Raise an `RpcError` if TOML has no such value."""
    try:
        require_shallow(value, "value")
    except ConfigError as error:
        raise invalid(error) from error
    if len(encode_json(value)) > _MAX_VALUE:
        raise write_error(INVALID, f"a value has more than {_MAX_VALUE:,} bytes")
    for part in _plain_values(value):
        if part is None:
            problem = "invalid type: null, expected any valid TOML value"
            raise write_error(INVALID, f"invalid value: {problem}")
        is_integer = isinstance(part, int)
        if is_integer and not -_MAX_INTEGER <= part < _MAX_INTEGER:
            raise write_error(INVALID, f"invalid value: {part} has more than 64 bits")


def _plain_values(value: Any) -> Iterator[Any]:
    """Yield the values in arrays and tables."""
    match value:
        case dict():
            for part in cast("dict[str, Any]", value).values():
                yield from _plain_values(part)
        case list():
            for part in cast("list[Any]", value):
                yield from _plain_values(part)
        case _:
            yield value


def require_unpinned(config: Config, edits: Sequence[ConfigEdit]) -> None:
    """Raise an `RpcError` if a change sets a feature that the administrator has set otherwise.

    Args:
        config: the configuration after the changes.
    """
    requirements = config.requirements
    pins = requirements.keys.features
    user = next(layer for layer in shown_layers(config) if layer.name == "user")
    for edit in edits:
        key = edit_key(edit)
        if key[0] != "features":
            continue
        for name, pin in pins.items():
            value = lookup(user.values, ("features", name))
            if isinstance(value, bool) and value is not pin:
                allowed = f"[{name}={str(pin).lower()}]"
                asked = f"`features.{name}={str(value).lower()}`"
                problem = f"{asked} is not in the allowed set {allowed}"
                raise write_error(
                    INVALID,
                    f"Invalid configuration: invalid value for `features`: {problem}"
                    f" (set by {requirements.file.path})",
                )


def written(path: Path, config: Config, edits: Sequence[ConfigEdit]) -> Fields:
    """Return the answer to a change that was written.

    Args:
        path: the file.
        config: the configuration after the changes.
    """
    layers = shown_layers(config)
    user = next(layer for layer in layers if layer.name == "user")
    found = None
    for edit in edits:
        key = edit_key(edit)
        winner = setting_layer(layers, key)
        if found is None and winner not in (None, user):
            found = {
                "message": override_message(winner),
                "overridingLayer": metadata(winner),
                "effectiveValue": hidden(lookup(config.layers.merged(), key), key),
            }
    return {
        "status": "okOverridden" if found else "ok",
        "version": metadata(user)["version"],
        "filePath": str(path),
        "overriddenMetadata": found,
    }
