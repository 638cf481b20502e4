"""The params of the methods about the configuration, with the names of Codex 0.171."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Literal, cast

from codex_py.frontends.app_server.params import Params, ThreadId
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import as_object

REMOVED: Final = object()
"""The value of a change that removes a key: null in the request."""


def _with_removals(data: Any) -> Any:
    """Put `REMOVED` in place of null: a field that is null counts as missing."""
    table = as_object(data)
    if "value" in table and table["value"] is None:
        return {**table, "value": REMOVED}
    return data


@frozen(kw_only=True)
class ConfigRead(Params):
    cwd: str | None = None
    include_layers: bool = False


@frozen(kw_only=True)
class ConfigEdit(Params):
    """A change of one key of the user's file."""

    key_path: str
    value: Any
    """A JSON value, or `REMOVED`."""
    merge_strategy: Literal["replace", "upsert"]


@frozen(kw_only=True)
class ValueWrite(ConfigEdit):
    file_path: str | None = None
    expected_version: str | None = None

    @staticmethod
    def prepared(data: Any) -> Any:
        return _with_removals(data)


@frozen(kw_only=True)
class BatchWrite(Params):
    edits: list[ConfigEdit]
    file_path: str | None = None
    expected_version: str | None = None
    reload_user_config: bool = False

    @staticmethod
    def prepared(data: Any) -> Any:
        table = as_object(data)
        edits = table.get("edits")
        if isinstance(edits, list):
            marked = list(map(_with_removals, cast("list[Any]", edits)))
            return {**table, "edits": marked}
        return data


@frozen(kw_only=True)
class Page(Params):
    """A part of a list: its place, and the number of its entries."""

    cursor: str | None = None
    limit: int | None = None


@frozen(kw_only=True)
class ProfileList(Page):
    cwd: str | None = None


@frozen(kw_only=True)
class FeatureList(Page):
    thread_id: ThreadId | None = None


@frozen(kw_only=True)
class SkillRoots(Params):
    extra_roots: list[str]


@frozen(kw_only=True)
class SkillsList(Params):
    cwds: list[str] = field(default_factory=list[str])
    force_reload: bool = False


@frozen(kw_only=True)
class HooksList(Params):
    cwds: list[str] = field(default_factory=list[str])
    thread_id: ThreadId | None = None


@frozen(kw_only=True)
class SkillWrite(Params):
    enabled: bool
    name: str | None = None
    path: str | None = None


@frozen(kw_only=True)
class DefaultProvider(Params):
    provider_id: str


@frozen(kw_only=True)
class FeatureSwitches(Params):
    enablement: Mapping[str, bool]


@frozen(kw_only=True)
class ProviderPatch(Params):
    """Settings of a provider. Those that are left out stay as they are."""

    type: Literal["customGateway"]
    provider_id: str | None = None
    """The id of the provider; None makes a new one."""
    name: str | None = None
    base_url: Any = None
    """A text, or `REMOVED`."""
    env_key: Any = None
    """A text, or `REMOVED`."""


@frozen(kw_only=True)
class ProviderWrite(Params):
    settings: ProviderPatch

    @staticmethod
    def prepared(data: Any) -> Any:
        table = as_object(data)
        settings = table.get("settings")
        if not isinstance(settings, dict):
            return data
        marked = as_object(cast("Any", settings)).copy()
        for name in ("baseUrl", "envKey"):
            if name in marked and marked[name] is None:
                marked[name] = REMOVED
        return {**table, "settings": marked}
