"""Finds where hooks are defined: `hooks.json` and `[hooks]` of each layer, and settings of Claude Code. LIGHT.

Reads the hooks of each such file by event.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from codex_py.config.check import KeyPath, dotted, problems
from codex_py.config.config import Config
from codex_py.config.declared.hook_document import ClaudeSettings, HookDocument
from codex_py.config.files import read_text
from codex_py.config.hook_names import CLAUDE_OPTIONS, wrong_names
from codex_py.config.layers import Layer
from codex_py.config.paths import folders_between, user_home
from codex_py.config.plugins import plugin_variables
from codex_py.config.project_trust import Trusted
from codex_py.filesystem.git import main_work_tree
from codex_py.protocol.frozen import frozen

_FILE: Final = "hooks.json"
_OVERRIDES: Final = Path("/<session-flags>/config.toml")
"""Stands for `-c`, as in the `[hooks.state]` of Codex 0.171."""


@frozen
class HookFile:
    path: Path
    text: str | None = None
    """Of a JSON file; None: read the file, if there is one."""
    layer: Layer | None = None
    """Its `[hooks]` table is meant, which is checked."""
    root: Path | None = None
    """No link may lead the reader out of this folder."""
    key: Path | None = None
    """The path in `[hooks.state]` if it is another: in a linked worktree, that of the file in the main work tree."""
    is_managed: bool = False
    """It is the administrator's: its hooks need no trust of the user."""
    claude: Path | None = None
    """For files that may be for Claude Code: the folder of the project, or the working directory for the user's."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that its commands get besides those of the session."""


@frozen
class HookEvents:
    groups: Mapping[str, Any]
    """By event; those of known events have the right types."""
    misspelt: Sequence[str]
    """A sentence for each name that seems to mean another, so what the hooks refuse may run."""
    unsupported: Sequence[str]
    """A sentence for each other name that is unknown here."""


def has_hooks(config: Config) -> bool:
    """False if no hook can be configured here. Cheap: it reads no file."""
    layers = config.layers
    trust = config.project_trust
    return bool(config.requirements.file.values.get("hooks")) or (
        _enabled(config)
        and (
            any(
                layer.values.get("hooks", {}).keys() - {"state"}
                for layer in layers.layers
            )
            or any(plugin.hooks for plugin in config.plugins)
            or any(
                os.path.lexists(folder / _FILE)
                for folder in (layers.home, layers.system)
            )
            or (
                isinstance(trust, Trusted)
                and any(path.name == _FILE for path in trust.files)
            )
        )
    )


def hook_files(config: Config, environment: Mapping[str, str]) -> Iterator[HookFile]:
    """The files that may define hooks, the weakest layer first, as Codex 0.171 orders them.

    Those of a project only if it is trusted, as they were when that was checked. Settings of Claude Code have no
    such check: their hooks are trusted one by one alone.
    """
    yield from _tables(config, "requirements")
    if not _enabled(config):
        return
    managed_only = config.requirements.keys.allow_managed_hooks_only is True
    for file in _files(config, environment):
        if file.is_managed or not managed_only:
            yield file


def _files(config: Config, environment: Mapping[str, str]) -> Iterator[HookFile]:
    is_asked_for = config.settings.hooks.claude is True
    if is_asked_for:
        claude = user_home(environment) / ".claude"
    else:
        claude = None
    folder = config.project_root or config.cwd
    yield HookFile(config.layers.system / _FILE, is_managed=True)
    yield from _tables(config, "system")
    for plugin in config.plugins:
        variables = plugin_variables(plugin.root)
        for path, text in plugin.hooks.items():
            yield HookFile(path, text, claude=folder, environment=variables)
    yield HookFile(config.layers.home / _FILE)
    yield from _tables(config, "user", "own", "profile")
    if claude is not None:
        yield HookFile(claude / "settings.json", claude=folder)
    if isinstance(config.project_trust, Trusted):
        yield from _of_project(config, config.project_trust.files, claude)
    yield from _tables(config, "-c", "managed")


def _of_project(
    config: Config, texts: Mapping[Path, str], claude: Path | None
) -> Iterator[HookFile]:
    """`claude`: the user's folder for Claude Code, which is not the project's too; None to read none of its
    settings."""
    # Of the configuration: the session itself may work elsewhere, in a worktree of its own.
    folders = folders_between(config.layers.project_root, config.layers.cwd)
    root = folders[0]
    main = main_work_tree(root) or root
    for folder in folders:
        path = folder / ".codex" / _FILE
        if path in texts:
            files = [HookFile(path, texts[path])]
        else:
            files = []
        files += _tables(config, "project", folder=path.parent)
        if claude not in {None, folder / ".claude"}:
            paths = (
                folder / ".claude" / name
                for name in ("settings.json", "settings.local.json")
            )
            files += [HookFile(path, root=root, claude=root) for path in paths]
        for file in files:
            yield replace(file, key=main / file.path.relative_to(root))


def _enabled(config: Config) -> bool:
    return all(
        config.features.get(name) is not False for name in ("hooks", "codex_hooks")
    )


def _tables(
    config: Config, *names: str, folder: Path | None = None
) -> Iterator[HookFile]:
    for layer in reversed(config.layers.layers):
        path = layer.path or _OVERRIDES
        if (
            layer.name in names
            and folder in {None, path.parent}
            and "hooks" in layer.values
        ):
            is_managed = layer.name in {"system", "managed", "requirements"}
            yield HookFile(path, layer=layer, is_managed=is_managed)


def read_events(file: HookFile) -> HookEvents:
    """What a file defines. No name in a file for Claude Code is misspelt: it may have more of them than are known
    here.

    Raises:
        ConfigError: the file cannot be read.
        ValueError: the file is damaged, or something in it is of the wrong type.
    """
    text = file.text
    if file.layer is not None:
        groups: Mapping[str, Any] = file.layer.values["hooks"]
    else:
        if text is None:
            text = read_text(file.path, root=file.root)
        if text is None:
            groups = {}
        else:
            groups = _groups(text, is_for_claude=file.claude is not None)
    if file.claude is None:
        wrong_ones = wrong_names(groups)
    else:
        wrong_ones = wrong_names(groups, left_out_with=CLAUDE_OPTIONS)
    misspelt: list[str] = []
    unsupported: list[str] = []
    for wrong in wrong_ones:
        sentence = f"{_place(file, text or '', wrong.key)}: {wrong.text}"
        if wrong.is_meant and file.claude is None:
            misspelt.append(sentence)
        else:
            unsupported.append(sentence)
    return HookEvents(groups, misspelt, unsupported)


def _groups(text: str, *, is_for_claude: bool) -> Mapping[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_unique)
        # A lone surrogate, which JSON can spell, is an error.
        json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if is_for_claude:
        mistakes = problems(document, ClaudeSettings)
    else:
        mistakes = problems(document, HookDocument)
    if mistakes:
        if mistakes[0].key:
            where = f"`{dotted(mistakes[0].key)}`"
        else:
            where = "it"
        raise ValueError(f"{where} {mistakes[0].text}")
    # The switch is a setting of Claude Code.
    if document.get("disableAllHooks") is True:
        return {}
    return document.get("hooks", {})


def _place(file: HookFile, text: str, key: KeyPath) -> str:
    """The file and the line of a name in the table of hooks; in JSON, where its parts first follow each other."""
    if file.layer is not None:
        return file.layer.where(("hooks", *key))
    end = 0
    for part in key:
        if not part.isdecimal():
            end = max(end, text.find(json.dumps(part), end))
    return f"{file.path}:{text.count(chr(10), 0, end) + 1}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. `null` is no value; of two values for one name, one would be lost silently."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("an object has two fields of one name")
    return {name: value for name, value in pairs if value is not None}
