"""Answers the methods that list what the configuration offers."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.config.config import Config
from codex_py.config.declared.section import is_set
from codex_py.config.features import Feature, listed_features
from codex_py.config.hooks import Hook, find_hooks
from codex_py.config.permission_profiles import BUILT_IN, mode_of_profile
from codex_py.config.skills import Skill, find_skills
from codex_py.errors import CodexError, ConfigError
from codex_py.frontends.app_server.configuration import config_params
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.turn_items.items import Fields

_MAX_FOLDERS: Final = 64
"""The number of folders that one request may ask about."""
_STAGES: Final = {"experimental": "beta", "under development": "underDevelopment"}
"""Stages of features that have other names in the protocol."""
_SCOPES: Final = {"project": "repo", "bundled": "system", "system": "admin"}
"""The scopes of skills by the origin of their folders; all others are the user's."""
_SOURCES: Final = {
    "system": "system",
    "requirements": "system",
    "managed": "legacyManagedConfigFile",
    "project": "project",
    "plugin": "plugin",
    "-c": "sessionFlags",
    "command line": "sessionFlags",
}
"""The sources of hooks by the names of layers; all others are the user's."""

_NO_SKILLS: Final[Fields] = {"skills": []}
_NO_HOOKS: Final[Fields] = {"hooks": [], "warnings": []}


class ListMethods(MethodGroup):
    """Answers `permissionProfile/list`, `experimentalFeature/…`, `skills/…` and `hooks/list`."""

    @serves("permissionProfile/list", config_params.ProfileList)
    async def profiles(self, asked: config_params.ProfileList) -> Fields:
        """List the profiles, and which of them the administrator allows."""
        config = await asyncio.to_thread(self.server.configuration_of, asked.cwd)
        return _page(_profiles(config), asked, "permission profiles")

    @serves("experimentalFeature/list", config_params.FeatureList)
    async def features(self, asked: config_params.FeatureList) -> Fields:
        """List the features of Codex with their state, here or in an open thread."""
        if asked.thread_id is None:
            config = await asyncio.to_thread(self.server.user_configuration)
        else:
            config = self.threads.find(asked.thread_id).config
        found = list(map(_feature, listed_features(config)))
        return _page(found, asked, "feature flags")

    @serves("experimentalFeature/enablement/set", config_params.FeatureSwitches)
    async def switch_features(self, _: config_params.FeatureSwitches) -> Fields:
        """Change nothing, and say so: the features that Codex switches here are not ours."""
        return {"enablement": {}}

    @serves("skills/list", config_params.SkillsList)
    async def skills(self, asked: config_params.SkillsList) -> Fields:
        """List the skills of each folder. They are always read anew."""
        return await self._of_folders(asked.cwds, self._skills, _NO_SKILLS)

    @serves("skills/extraRoots/set", config_params.SkillRoots)
    async def set_skill_roots(self, asked: config_params.SkillRoots) -> Fields:
        """Set the further folders with skills, of threads that are opened from now on."""
        folders = tuple(map(Path, asked.extra_roots))
        if len(folders) > _MAX_FOLDERS:
            problem = f"more than {_MAX_FOLDERS} folders in one request"
            raise RpcError(INVALID_REQUEST, problem)
        for folder in folders:
            if not folder.is_absolute():
                problem = f"extraRoots: {str(folder)!r} is not absolute"
                raise RpcError(INVALID_REQUEST, problem)
        self.server.skill_folders = folders
        return {}

    @serves("hooks/list", config_params.HooksList)
    async def hooks(self, asked: config_params.HooksList) -> Fields:
        """List the hooks of each folder, or of an open thread."""
        if asked.thread_id is None:
            return await self._of_folders(asked.cwds, self._hooks, _NO_HOOKS)
        if asked.cwds:
            # The words are Codex's.
            problem = "specify either threadId or cwds"
            raise RpcError(INVALID_REQUEST, problem)
        config = self.threads.find(asked.thread_id).config
        entry = await asyncio.to_thread(self._hooks, config)
        return {"data": [{"cwd": str(config.cwd), **entry}]}

    async def _of_folders(
        self,
        cwds: Sequence[str],
        look: Callable[[Config], Fields],
        nothing: Fields,
    ) -> Fields:
        """Look at the configuration of each folder; without any, at that of the server's folder.

        A folder that is named twice is looked at once, and has two entries.

        Args:
            nothing: the entry of a folder whose configuration cannot be read.
        """
        if len(cwds) > _MAX_FOLDERS:
            problem = f"more than {_MAX_FOLDERS} folders in one request"
            raise RpcError(INVALID_REQUEST, problem)
        asked = cwds or (None,)
        entries = {
            cwd: await asyncio.to_thread(self._of_folder, cwd, look, nothing)
            for cwd in dict.fromkeys(asked)
        }
        return {"data": [entries[cwd] for cwd in asked]}

    def _of_folder(
        self,
        cwd: str | None,
        look: Callable[[Config], Fields],
        nothing: Fields,
    ) -> Fields:
        try:
            config = self.server.configuration(cwd)
        except CodexError as error:
            # The other folders are listed all the same.
            place = cwd or "."
            fault = {"path": place, "message": str(error)}
            return {"cwd": place, **nothing, "errors": [fault]}
        return {"cwd": cwd or str(config.cwd), **look(config)}

    def _skills(self, config: Config) -> Fields:
        found = find_skills(config, self.server.environment, with_disabled=True)
        faults = [
            {"path": str(path), "message": problem} for path, problem in found.faults
        ]
        return {"skills": list(map(_skill, found.found)), "errors": faults}

    def _hooks(self, config: Config) -> Fields:
        try:
            found = find_hooks(config, self.server.environment)
        except ConfigError as error:
            fault = {"path": str(config.cwd), "message": str(error)}
            return {**_NO_HOOKS, "errors": [fault]}
        return {
            "hooks": list(map(_hook, found.found)),
            "warnings": list(found.warnings),
            "errors": [],
        }


def _page(entries: list[Fields], asked: config_params.Page, what: str) -> Fields:
    """Return a page of a list. Errors have the words of Codex.

    Args:
        what: the entries, in words.
    """
    cursor = asked.cursor or "0"
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 9:
        raise RpcError(INVALID_REQUEST, f"invalid cursor: {cursor}")
    start = int(cursor)
    if start > len(entries):
        problem = f"cursor {start} exceeds total {what} {len(entries)}"
        raise RpcError(INVALID_REQUEST, problem)
    end = len(entries)
    if asked.limit is not None:
        end = min(end, start + max(asked.limit, 1))
    next_cursor = None
    if end < len(entries):
        next_cursor = str(end)
    return {"data": entries[start:end], "nextCursor": next_cursor}


def _profiles(config: Config) -> list[Fields]:
    tables: dict[str, Any] = config.layers.merged().get("permissions", {})
    found: list[Fields] = []
    for name in (*BUILT_IN, *sorted(tables)):
        description = tables.get(name, {}).get("description")
        is_allowed = _is_allowed(name, config)
        found.append({"id": name, "description": description, "allowed": is_allowed})
    return found


def _is_allowed(name: str, config: Config) -> bool:
    """True if the administrator allows a profile, and it has no mistake."""
    requirements = config.requirements
    keys = requirements.keys
    is_limited = is_set(keys, "allowed_permission_profiles")
    if is_limited and keys.allowed_permission_profiles.get(name) is not True:
        return False
    try:
        return mode_of_profile(name, config.layers) in requirements.modes
    except ConfigError:
        return False


def _feature(feature: Feature) -> Fields:
    return {
        "name": feature.name,
        "stage": _STAGES.get(feature.stage, feature.stage),
        "displayName": None,
        "description": None,
        "announcement": None,
        "enabled": feature.is_on,
        "defaultEnabled": feature.is_default,
    }


def _skill(skill: Skill) -> Fields:
    return {
        "name": skill.name,
        "description": skill.description,
        "path": str(skill.path),
        "scope": _SCOPES.get(skill.folder.origin, "user"),
        "enabled": skill.is_enabled,
        "pluginId": None,
    }


def _hook(hook: Hook) -> Fields:
    handler: Fields = {"handlerType": "command", "command": hook.command}
    handler["async"] = hook.is_async
    if hook.kind == "mcp_tool":
        handler = {
            "handlerType": "mcpTool",
            "server": hook.server,
            "tool": hook.tool,
        }
    return {
        "key": hook.key,
        "eventName": hook.event[0].lower() + hook.event[1:],
        **handler,
        "matcher": hook.matcher,
        "timeoutSec": int(hook.timeout_s),
        "statusMessage": hook.status_message,
        "additionalContextLimit": None,
        "sourcePath": str(hook.source),
        "source": _SOURCES.get(hook.origin, "user"),
        "pluginId": None,
        "environmentId": None,
        "displayOrder": hook.number,
        "enabled": hook.state != "disabled",
        "isManaged": hook.is_managed,
        "currentHash": hook.hash,
        "trustStatus": _trust(hook),
    }


def _trust(hook: Hook) -> str:
    if hook.is_managed:
        return "managed"
    if hook.trusted_hash is None:
        return "untrusted"
    if hook.trusted_hash == hook.hash:
        return "trusted"
    return "modified"
