"""Reads the layers of the configuration, checks each, and puts them in order.

The order is that of Codex, the strongest first:

1. the options of the command line in `_OPTIONS`
2. the administrator's `managed_config.toml`
3. other options of the command line, then `-c` overrides
4. the files of a trusted project, the nearest to the working directory first
5. a profile
6. the user's file for this program alone, `$CODEX_HOME/codex-py/config.toml`
7. the user's file
8. the system's file
9. the MCP servers of plugins

The administrator's requirements stand above all: see `requirements`.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast, get_args

from codex_py.config.check import (
    KeyPath,
    Problem,
    dotted,
    lookup,
    may_protect,
    problems,
    remedy,
)
from codex_py.config.declared.claimed import is_of_package
from codex_py.config.declared.section import key_of, names_of
from codex_py.config.declared.settings import Settings
from codex_py.config.files import parse_toml, read_text
from codex_py.config.lines import key_lines
from codex_py.config.overrides import parse_overrides
from codex_py.config.paths import codex_home, folders_between, project_root, user_home
from codex_py.config.plugins import Plugin, Plugins, plugin_names
from codex_py.config.project_trust import (
    Changed,
    ProjectTrust,
    Trust,
    Trusted,
    Untrusted,
    project_trust,
    trust_level,
)
from codex_py.errors import ConfigError, OptionError
from codex_py.protocol.annotations import Kind, form, kind_at
from codex_py.protocol.frozen import frozen

SYSTEM_FOLDER: Final = Path("/etc/codex")
"""The folder of the administrator's settings for all users of the machine."""

_MAX_NAMED: Final = 20
"""The most unknown settings that a warning names."""
_OPTIONS: Final = frozenset(
    {
        "model",
        "model_provider",
        "sandbox_mode",
        "approval_policy",
        "default_permissions",
        "approvals_reviewer",
    }
)
"""Settings whose command-line options win over the administrator's `managed_config.toml`, as in
Codex."""


@frozen
class Layer:
    """The settings of one file, or of the command line."""

    name: str
    """`managed`, `command line`, `-c`, `project`, `profile`, `own`, `user`, `system` or `plugin`."""
    values: Mapping[str, Any]
    """Checked values, with absolute paths."""
    path: Path | None = None
    """The file; None for the command line."""
    text: str = ""
    """The text of the file."""

    @property
    def settings(self) -> Settings:
        return Settings(self.values)

    def sets(self, key: KeyPath) -> bool:
        return lookup(self.values, key) is not None

    def error(self, message: str) -> ConfigError:
        """An error about this layer; for options, with the exit code of a wrong command line."""
        if self.name == "command line":
            return OptionError(message)
        return ConfigError(message)

    def where(self, key: KeyPath) -> str:
        """The place that sets a key: `/home/u/.codex/config.toml:3`, or the layer's name."""
        if self.path is None:
            return self.name
        lines = key_lines(self.text)
        for length in range(len(key), 0, -1):
            line = lines.get(key[:length])
            if line is not None:
                return f"{self.path}:{line}"
        return str(self.path)


@frozen
class Layers:
    """All layers of a session, with the folders and the trust that they depend on."""

    home: Path
    """`$CODEX_HOME`."""
    system: Path
    """The administrator's folder."""
    cwd: Path
    project_root: Path | None
    trust: Trust | None
    project_trust: ProjectTrust
    layers: tuple[Layer, ...]
    """The layers, the strongest first, without empty ones."""
    warnings: tuple[str, ...]
    """Warnings of one sentence each."""
    plugins: tuple[Plugin, ...] = ()
    """Plugins, sorted by name."""
    user_home: Path = Path("/")

    def merged(self) -> dict[str, Any]:
        return merge(self.layers)

    def where(self, key: KeyPath) -> str:
        """The place of a key in the strongest layer that sets it."""
        return next(layer.where(key) for layer in self.layers if layer.sets(key))

    def located(self, error: ConfigError) -> ConfigError:
        """Put the place of the setting, or of the table that lacks it, before the error's message.

        The result is an `OptionError` if an option sets the key.
        """
        if not error.key:
            return error
        owning_table = error.key[:2]
        for key in (error.key, owning_table):
            for layer in self.layers:
                if layer.sets(key):
                    return layer.error(f"{layer.where(key)}: {error}")
        return error


def merge(layers: Sequence[Layer]) -> dict[str, Any]:
    """Merge the layers, given strongest first, into one table.

    Tables are merged; other values are replaced.
    """
    values: dict[str, Any] = {}
    for layer in reversed(layers):
        values = merged(values, layer.values)
    return values


def read_layers(
    *,
    cwd: Path,
    environment: Mapping[str, str],
    overrides: Sequence[str] = (),
    flags: Mapping[str, Any] | None = None,
    profile: str | None = None,
    ignore_user_config: bool = False,
    strict: bool = False,
    system: Path = SYSTEM_FOLDER,
    with_project: bool = True,
    user_text: str | None = None,
) -> Layers:
    """Read every layer and check it.

    Args:
        with_project: False leaves the files and the trust of the project out.
        user_text: the text to read in place of the user's file.

    Raises:
        ConfigError: a file cannot be used, a value is of the wrong type, the profile does not exist,
            or, with `strict`, a key is unknown.
    """
    cwd = Path(os.path.realpath(cwd))
    home = codex_home(environment)
    reader = _Reader(user_home(environment), strict=strict)

    given = flags or {}
    first_flags = {name: given[name] for name in given if name in _OPTIONS}
    other_flags = {name: given[name] for name in given if name not in _OPTIONS}
    strong = [
        reader.layer("command line", first_flags, cwd),
        *reader.file("managed", system / "managed_config.toml"),
        reader.layer("command line", other_flags, cwd),
        reader.layer("-c", parse_overrides(overrides), cwd),
    ]
    weak: list[Layer] = []
    if not ignore_user_config:
        weak += reader.file("own", home / "codex-py" / "config.toml")
        weak += reader.file("user", home / "config.toml", user_text)
    weak += reader.file("system", system / "config.toml")
    _refuse_old_profiles(home, (*strong, *weak), profile)
    if profile is not None:
        weak.insert(0, _profile(reader, home, profile))

    # A project must not decide where its root is, or whether it is trusted.
    own = merge((*strong, *weak))
    markers = own.get("project_root_markers", Settings.project_root_markers)
    root = project_root(cwd, markers)
    trust = None
    trusted_files: ProjectTrust = Untrusted(())
    project: list[Layer] = []
    if with_project:
        trust = trust_level(own.get("projects", {}), cwd, root)
        folders = folders_between(root, cwd)
        trusted_files = project_trust(trust, home, folders)
        project = _project(reader, home, folders[0], trusted_files, own)

    layers = [*strong, *project, *weak]
    plugins = Plugins()
    if not ignore_user_config and lookup(own, ("features", "plugins")) is not False:
        plugins = _found_plugins(home)
    reader.warnings += plugins.warnings
    layers += reader.plugins(plugins.found, layers)
    return Layers(
        home=home,
        system=system,
        cwd=cwd,
        project_root=root,
        trust=trust,
        project_trust=trusted_files,
        layers=tuple(layer for layer in layers if layer.values),
        warnings=tuple(reader.warnings),
        plugins=plugins.found,
        user_home=user_home(environment),
    )


def _found_plugins(home: Path) -> Plugins:
    """Read the plugins; most users have none."""
    if not plugin_names(home):
        return Plugins()
    from codex_py.config.plugin_files import find_plugins  # 2 ms

    return find_plugins(home)


class _Reader:
    """Reads layers, the strongest first, and gathers warnings about them."""

    def __init__(
        self,
        user_home: Path,
        *,
        strict: bool,
    ) -> None:
        self.warnings: list[str] = []
        self._user_home = user_home
        self._strict = strict
        self._accepted: set[str] = set()
        """The names in `allow_unenforced` of the layers read so far; stronger layers are read
        first."""

    def file(
        self,
        name: str,
        path: Path,
        text: str | None = None,
    ) -> list[Layer]:
        """Read the layer of a file; an empty list if there is no such file.

        Args:
            text: the text to use in place of the file.
        """
        if text is None:
            text = read_text(path)
        if text is None:
            return []
        return [self.layer(name, parse_toml(text, path), path.parent, path, text)]

    def layer(
        self,
        name: str,
        values: Mapping[str, Any],
        base: Path,
        path: Path | None = None,
        text: str = "",
    ) -> Layer:
        """Check the values of a layer.

        Args:
            base: the folder that relative paths begin at.

        Raises:
            ConfigError: see `read_layers`.
        """
        layer = Layer(name, values, path, text)
        found = problems(values)
        # A value of another type is reported as one of the problems.
        accepted = values.get("allow_unenforced")
        if isinstance(accepted, list):
            self._accepted.update(cast("list[str]", accepted))
        for problem in found:
            self._require_acceptable(problem, layer)
        if found:
            self.warnings.append(_ignored(layer, [problem.key for problem in found]))
        absolute: dict[str, Any] = _absolute(values, Settings, base, self._user_home)
        return replace(layer, values=absolute)

    def _require_acceptable(
        self,
        problem: Problem,
        layer: Layer,
    ) -> None:
        """Raise a `ConfigError` unless the problem is an unknown key that may be ignored."""
        # A misspelt rule of the administrator's would hold for nobody, and the warning would reach
        # only users.
        is_strict = self._strict or layer.name == "managed"
        is_accepted = dotted(problem.key) in self._accepted
        may_be_ignored = is_accepted or not may_protect(problem.key)
        if problem.unknown and may_be_ignored and not is_strict:
            return
        from codex_py.config.setting_errors import refusal  # 1 ms

        where = layer.where(problem.key)
        raise layer.error(refusal(problem, where, may_accept=not is_strict))

    def plugins(
        self,
        plugins: Sequence[Plugin],
        stronger: Sequence[Layer],
    ) -> list[Layer]:
        """The layers of plugins, with their MCP servers whose names are not taken."""
        layers: list[Layer] = []
        for plugin in plugins:
            configured = merge([*stronger, *layers]).get("mcp_servers", {})
            free: dict[str, Any] = {}
            for name, server in plugin.servers.items():
                # A table without an address or a command is no server of its own: it only adds
                # settings to the plugin's server.
                other = configured.get(name, {})
                if "command" in other or "url" in other:
                    self.warnings.append(
                        f"The MCP server {name} of the plugin {plugin.name} is not used: another one"
                        " has its name."
                    )
                else:
                    free[name] = server
            values = {"mcp_servers": free} if free else {}
            layers.append(self.layer("plugin", values, plugin.root, plugin.root))
        return layers


def _ignored(layer: Layer, keys: Sequence[KeyPath]) -> str:
    """A warning about the unknown keys of a layer."""
    # Finding the intended key takes time, and a project may have thousands of unknown keys.
    names = ", ".join(_unknown(layer, key) for key in keys[:_MAX_NAMED])
    if len(keys) > _MAX_NAMED:
        names += f" and {len(keys) - _MAX_NAMED} more"
    if len(keys) == 1:
        count = "an unknown setting"
    else:
        count = f"{len(keys)} unknown settings"
    return f"Ignored {count} in {layer.path or layer.name}: {names}."


def _unknown(layer: Layer, key: KeyPath) -> str:
    """The key, with its line and the key that may be meant."""
    notes: list[str] = []
    if layer.path is not None:
        notes.append("line " + layer.where(key).rpartition(":")[2])
    hint = remedy(key)
    if hint is not None:
        notes.append(hint)
    if notes:
        return f"`{dotted(key)}` ({'; '.join(notes)})"
    return f"`{dotted(key)}`"


def _profile(
    reader: _Reader,
    home: Path,
    name: str,
) -> Layer:
    """Read a profile. Raises an `OptionError` if there is none of this name."""
    if not re.fullmatch(r"[\w-]+", name):
        raise OptionError(
            f"invalid profile {name!r}: -p is followed by a plain name such as `work`; a prompt needs"
            " no option"
        )
    path = home / f"{name}.config.toml"
    found = reader.file("profile", path)
    if not found:
        # Codex would continue without the profile, and so with other settings than the user asked
        # for.
        raise OptionError(f"profile {name!r} was not found: there is no {path}")
    return found[0]


def _refuse_old_profiles(
    home: Path,
    layers: Sequence[Layer],
    name: str | None,
) -> None:
    """Raise a `ConfigError` if a layer selects a profile, or defines the one that is asked for.

    Args:
        name: the value of `--profile`.
    """
    for layer in layers:
        selected = layer.values.get("profile")
        if name is None and selected is not None:
            raise ConfigError(
                f"{layer.where(('profile',))}: `profile` is no longer supported; use"
                f" `--profile {selected}` with {home / f'{selected}.config.toml'} instead"
            )
        if name is None:
            continue
        if selected is not None:
            old_key = ("profile",)
        elif name in layer.values.get("profiles", {}):
            old_key = ("profiles", name)
        else:
            continue
        raise ConfigError(
            f"`--profile {name}` cannot be used while {layer.where(old_key)} holds"
            f" `{dotted(old_key)}`; move those settings into {home / f'{name}.config.toml'}"
        )


def _project(
    reader: _Reader,
    home: Path,
    root: Path,
    trust: ProjectTrust,
    own: Mapping[str, Any],
) -> list[Layer]:
    """Read a trusted project's layers, nearest first. Any other project gets a warning only.

    Args:
        own: the values of all other layers.
    """
    match trust:
        case Trusted(files):
            layers: list[Layer] = []
            for path, text in reversed(list(files.items())):
                if path.name == "config.toml":
                    values = _allowed(reader, parse_toml(text, path), path, own)
                    layer = reader.layer("project", values, path.parent, path, text)
                    layers.append(layer)
            return layers
        case Changed(files):
            changed = ", ".join(map(str, files))
            reader.warnings.append(
                f"This project's own settings, rules and hooks are not used: {changed} changed since"
                " the project was trusted; look at the change, and trust it with"
                " `codex-py exec --trust`."
            )
        case Untrusted(files) if files:
            reader.warnings.append(
                f"Ignored {', '.join(map(str, files))}: this project is not trusted; to trust it,"
                f' set `{dotted(("projects", str(root)))}.trust_level = "trusted"` in'
                f" {home / 'config.toml'}."
            )
        case _:
            pass
    return []


def _allowed(
    reader: _Reader, values: Mapping[str, Any], path: Path, own: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Leave out the settings in a project's file that only the user may set, with a warning."""
    refused = [key for key in values if not _is_for_projects(key, own)]
    if refused:
        keys = ", ".join(f"`{key}`" for key in refused)
        these = "this" if len(refused) == 1 else "these"
        reader.warnings.append(
            f"Ignored {keys} in {path}: a project may not set {these}."
        )
    if lookup(values, ("budget", "loop_guard")) is False:
        reader.warnings.append(
            f"Ignored `budget.loop_guard` in {path}: a project may only tighten a limit."
        )
    return {key: value for key, value in values.items() if key not in refused}


def _is_for_projects(name: str, own: Mapping[str, Any]) -> bool:
    """True if a project may set a key of the top level.

    The class of a package's table says so. It is loaded only if the user's own configuration has
    the table, because a project does not decide which packages are loaded.
    """
    is_declared = name in own or name in names_of(Settings)
    if not is_declared and is_of_package(name):
        return False
    known = key_of(Settings, name)
    return known is None or known.in_project


def merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables; the values of `high` win."""
    values = dict(low)
    for key, value in high.items():
        below = values.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            values[key] = merged(
                cast("dict[str, Any]", below), cast("dict[str, Any]", value)
            )
        else:
            values[key] = value
    return values


def _absolute(
    value: Any,
    kind: "Kind | None",
    base: Path,
    user_home: Path,
) -> Any:
    """Make each path in the value absolute. `~` is the user's home.

    Args:
        kind: the declared type of the value.
        base: the folder that relative paths begin at.
    """
    match form(kind):
        case "plain" if kind is Path:
            first, _, rest = value.partition("/")
            if first == "~":
                return str(user_home / rest)
            return str(base / value)
        case "fields" | "mapping" if isinstance(value, Mapping):
            table = cast("Mapping[str, Any]", value)
            return {
                name: _absolute(part, kind_at(kind, name), base, user_home)
                for name, part in table.items()
            }
        case "array":
            (element, _) = get_args(kind)
            return [_absolute(part, element, base, user_home) for part in value]
        case _:
            return value
