"""Finds the files that define hooks, and reads the hooks of each by event. LIGHT.

Hooks are defined in `hooks.json`, in `[hooks]` tables and in Claude Code's settings.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from codex_py.config.check import KeyPath, dotted, problems
from codex_py.config.config import Config
from codex_py.config.declared.hook_document import ClaudeSettings, HookDocument
from codex_py.config.files import read_text
from codex_py.config.hook_names import CLAUDE_OPTIONS, wrong_names
from codex_py.config.hook_places import HOOKS_FILE, hooks_enabled
from codex_py.config.layers import Layer
from codex_py.config.paths import folders_between, user_home
from codex_py.config.plugins import plugin_variables
from codex_py.config.project_trust import Trusted
from codex_py.filesystem.git import main_work_tree
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import unique_fields

_OVERRIDES: Final = Path("/<session-flags>/config.toml")
"""The path that stands for `-c`, as in the `[hooks.state]` of Codex 0.171."""


@frozen
class HookFile:
    """A file that may define hooks: a JSON file, or a layer of the configuration."""

    path: Path
    text: str | None = None
    """The text of a JSON file; None: the file is still to be read, if it exists."""
    layer: Layer | None = None
    """The layer whose `[hooks]` table, already checked, is used instead of a file."""
    root: Path | None = None
    """No link may lead the reader out of this folder."""
    key: Path | None = None
    """The path in `[hooks.state]`, if it differs from `path`: for a file in a linked worktree, the
    path in the main work tree."""
    is_managed: bool = False
    """True if the file is the administrator's: its hooks do not need the user's trust."""
    claude: Path | None = None
    """Set if the file may be meant for Claude Code: the project's folder, or the working directory
    if there is no project."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that the commands of the file get besides the session's."""
    origin: str = "user"
    """The name of the layer that the file belongs to; see `Layer.name`."""


@frozen
class HookEvents:
    groups: Mapping[str, Any]
    """The groups of each event, as lists of tables. Those of known events have the right types."""
    misspelt: Sequence[str]
    """A sentence for each unknown name that seems to mean a known one. Such a hook does not run, so
    actions that it refuses may run."""
    unsupported: Sequence[str]
    """A sentence for each other unknown name."""


def hook_files(config: Config, environment: Mapping[str, str]) -> Iterator[HookFile]:
    """Yield the files that may define hooks, the weakest layer first, as Codex 0.171 orders them.

    A project's files are included only if it is trusted, with the texts that were checked. Settings
    of Claude Code have no such check: only the trust in each single hook counts.
    """
    yield from _tables(config, "requirements")
    if not hooks_enabled(config):
        return
    managed_only = config.requirements.keys.allow_managed_hooks_only is True
    for file in _files(config, environment):
        if file.is_managed or not managed_only:
            yield file


def _files(config: Config, environment: Mapping[str, str]) -> Iterator[HookFile]:
    """Yield the files of all layers but the requirements."""
    claude = None
    if config.settings.hooks.claude is True:
        claude = user_home(environment) / ".claude"
    folder = config.project_root or config.cwd
    yield HookFile(config.layers.system / HOOKS_FILE, is_managed=True, origin="system")
    yield from _tables(config, "system")
    for plugin in config.plugins:
        variables = plugin_variables(plugin.root)
        for path, text in plugin.hooks.items():
            yield HookFile(
                path, text, claude=folder, environment=variables, origin="plugin"
            )
    yield HookFile(config.layers.home / HOOKS_FILE)
    yield from _tables(config, "user", "own", "profile")
    if claude is not None:
        yield HookFile(claude / "settings.json", claude=folder)
    if isinstance(config.project_trust, Trusted):
        yield from _project_files(config, config.project_trust.files, claude)
    yield from _tables(config, "-c", "managed")


def _project_files(
    config: Config,
    texts: Mapping[Path, str],
    claude: Path | None,
) -> Iterator[HookFile]:
    """Yield the files of a trusted project.

    Args:
        claude: the user's folder for Claude Code, which is not read as a project's. None: no
            settings of Claude Code are read.
    """
    # Use the folders of the configuration: the session may work elsewhere, in a worktree of its
    # own.
    folders = folders_between(config.layers.project_root, config.layers.cwd)
    root = folders[0]
    main = main_work_tree(root) or root
    for folder in folders:
        files: list[HookFile] = []
        path = folder / ".codex" / HOOKS_FILE
        if path in texts:
            files.append(HookFile(path, texts[path]))
        files += _tables(config, "project", folder=path.parent)
        settings = folder / ".claude"
        if claude is not None and settings != claude:
            for name in ("settings.json", "settings.local.json"):
                files.append(HookFile(settings / name, root=root, claude=root))
        for file in files:
            key = main / file.path.relative_to(root)
            yield replace(file, key=key, origin="project")


def _tables(
    config: Config, *names: str, folder: Path | None = None
) -> Iterator[HookFile]:
    """Yield the `[hooks]` tables of the layers of these names, the weakest first.

    Args:
        folder: if given, the only folder from whose files tables are taken.
    """
    for layer in reversed(config.layers.layers):
        if layer.name not in names or "hooks" not in layer.values:
            continue
        path = layer.path or _OVERRIDES
        if folder is None or folder == path.parent:
            is_managed = layer.name in {"system", "managed", "requirements"}
            yield HookFile(path, layer=layer, is_managed=is_managed, origin=layer.name)


def read_events(file: HookFile) -> HookEvents:
    """Read the hooks that a file defines.

    No name in a file for Claude Code counts as misspelt, because Claude Code may know more names.

    Raises:
        ConfigError: the file cannot be read.
        ValueError: the file is damaged, or something in it is of the wrong type.
    """
    is_for_claude = file.claude is not None
    text = file.text
    if file.layer is None and text is None:
        text = read_text(file.path, root=file.root)
    groups: Mapping[str, Any] = {}
    if file.layer is not None:
        groups = file.layer.values["hooks"]
    elif text is not None:
        groups = _groups(text, is_for_claude=is_for_claude)
    if is_for_claude:
        wrong_ones = wrong_names(groups, left_out_with=CLAUDE_OPTIONS)
    else:
        wrong_ones = wrong_names(groups)
    misspelt: list[str] = []
    unsupported: list[str] = []
    for wrong in wrong_ones:
        sentence = f"{_place(file, text or '', wrong.key)}: {wrong.text}"
        if wrong.is_meant and not is_for_claude:
            misspelt.append(sentence)
        else:
            unsupported.append(sentence)
    return HookEvents(groups, misspelt, unsupported)


def _groups(text: str, *, is_for_claude: bool) -> Mapping[str, Any]:
    """Parse a JSON file with hooks.

    Raises:
        ValueError: see `read_events`.
    """
    try:
        document = json.loads(text, object_pairs_hook=_without_nulls)
        # JSON can spell a lone surrogate, which is an error here.
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
    # Claude Code has this switch in its settings.
    if document.get("disableAllHooks") is True:
        return {}
    return document.get("hooks", {})


def _place(
    file: HookFile,
    text: str,
    key: KeyPath,
) -> str:
    """The file and the line of a name in the table of hooks.

    In JSON, it is the first line on which the parts of the key follow each other.
    """
    if file.layer is not None:
        return file.layer.where(("hooks", *key))
    end = 0
    for part in key:
        if not part.isdecimal():
            end = max(end, text.find(json.dumps(part), end))
    line = text.count("\n", 0, end) + 1
    return f"{file.path}:{line}"


def _without_nulls(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object without its `null` values. Raises as `unique_fields`."""
    fields = unique_fields(pairs)
    return {name: value for name, value in fields.items() if value is not None}
