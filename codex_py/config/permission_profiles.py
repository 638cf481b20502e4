"""Permission profiles: `[permissions.NAME]` and `default_permissions`.

The keys and their precedence are those of Codex 0.169. Three things differ: `sandbox_mode` of a
stronger layer changes only the write access and keeps the denials; an unknown special name stops
the start; and `{a,b}` in a pattern matches either.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from codex_py.config.layers import Layer, Layers
from codex_py.errors import ConfigError
from codex_py.filesystem.git import main_work_tree
from codex_py.protocol.approval import SandboxMode, SandboxPolicy
from codex_py.protocol.file_rules import NO_RULES, Access, FileRules
from codex_py.protocol.frozen import frozen

_FULL_ACCESS: Final = ":danger-full-access"
BUILT_IN: Final[dict[str, SandboxMode]] = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    _FULL_ACCESS: "danger-full-access",
}
"""The built-in values of `default_permissions`, which generalise the sandbox modes."""
_ROOTS: Final = ":workspace_roots"
_SPECIAL: Final = {_ROOTS, ":root", ":minimal", ":tmpdir", ":slash_tmp"}
_TABLES: Final = {"description", "extends", "workspace_roots", "filesystem", "network"}
_WILDCARD: Final = re.compile(r"[*?\[]|\{[^{}]*,[^{}]*\}")
"""Matches the first part of a pattern that does not stand for itself."""
_CHOICES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
"""Matches `{a,b}`."""
SECRETS: Final = (
    "**/.env*",
    "*.pem",
    "*/*.pem",
    "*/*/*.pem",
    "~/.ssh",
    "**/id_rsa*",
    "**/id_dsa*",
    "**/id_ecdsa*",
    "**/id_ed25519*",
)
"""The patterns that `protection.secrets` denies. Certificates of installed packages lie deeper than
three folders."""

_Entries = dict[tuple[str, str], Access]
"""The access to each place: a special name such as `:tmpdir` and a path below it, `.` for itself;
or an empty text and a path of its own."""


@frozen(kw_only=True)
class PermissionProfile:
    """A profile, with all inherited entries."""

    name: str
    entries: tuple[tuple[tuple[str, str], Access], ...] = ()
    roots: tuple[Path, ...] = ()
    """Workspace roots besides the working directory."""
    scan_depth: int | None = None
    network: bool = False
    user_home: Path = Path("/")
    decides: bool = True
    """True if the profile decides the write access. False if a stronger `sandbox_mode` does; the
    rest of the profile holds all the same."""

    @property
    def reads_all(self) -> bool:
        return self._access_to(":root") in {"read", "write"}

    @property
    def writes_roots(self) -> bool:
        return self._access_to(_ROOTS) == "write"

    @property
    def mode(self) -> SandboxMode:
        if "write" in dict(self.entries).values():
            return "workspace-write"
        return "read-only"

    def _access_to(self, special_name: str) -> Access | None:
        return dict(self.entries).get((special_name, "."))

    def rules(self, roots: Iterable[Path]) -> FileRules:
        """Return the denials, and the read-only or open paths below them.

        Args:
            roots: the workspace roots.
        """
        found = FileRules(scan_depth=self.scan_depth)
        for (base, name), access in self.entries:
            if base in {"", _ROOTS}:
                found = found.plus(_rule(name, access, roots, self.user_home))
        return found

    def policy(self, roots: Sequence[Path]) -> SandboxPolicy:
        """Return the write access of commands, without the rules."""
        writable: list[Path] = []
        if self.writes_roots:
            writable += roots
        for (base, name), access in self.entries:
            if access == "write" and base in {"", _ROOTS} and name != ".":
                rule = _rule(name, access, roots, self.user_home)
                writable += [path for path, _ in rule.entries]
        if self._access_to(":root") == "write":
            writable.append(Path("/"))
        return SandboxPolicy(
            "workspace-write",
            tuple(dict.fromkeys(writable)),
            self.network,
            exclude_tmpdir_env_var=self._access_to(":tmpdir") != "write",
            exclude_slash_tmp=self._access_to(":slash_tmp") != "write",
        )


def chosen_permissions(
    layers: Layers,
) -> tuple[SandboxMode | None, PermissionProfile | None]:
    """Return the sandbox mode and the permission profile.

    The mode is None if nothing sets one. The profile is None if none is chosen, or a built-in one.

    Raises:
        ConfigError: profiles are defined but none is chosen, or the chosen one, or one that it
            extends, has a mistake. Without the error, access that the profile denies would be
            allowed.
    """
    values = layers.merged()
    mode = values.get("sandbox_mode")
    name, decides = chosen_profile(layers)
    if name is None:
        if mode is None and values.get("permissions"):
            raise ConfigError(
                "config defines `[permissions]` profiles but does not set `default_permissions`",
                key=("permissions",),
            )
        return mode, None
    if name in BUILT_IN:
        profile = None
        own_mode = BUILT_IN[name]
    else:
        profile = _resolved(name, layers, decides=decides)
        own_mode = profile.mode
    if decides:
        return own_mode, profile
    return mode, profile


def mode_of_profile(name: str, layers: Layers) -> SandboxMode | None:
    """Return the sandbox mode of a profile, chosen or not.

    Raises:
        ConfigError: there is no such profile, or it has a mistake.
    """
    choice = Layer("command line", {"default_permissions": name})
    mode, _ = chosen_permissions(replace(layers, layers=(choice, *layers.layers)))
    return mode


def chosen_profile(layers: Layers) -> tuple[str | None, bool]:
    """Return the name of the chosen profile, and True if it decides the write access.

    Within one layer, a profile wins over `sandbox_mode`.
    """
    decides = True
    for layer in layers.layers:
        if "default_permissions" in layer.values:
            return layer.values["default_permissions"], decides
        decides = decides and "sandbox_mode" not in layer.values
    return None, False


def profile_chain(layers: Layers) -> dict[str, Mapping[str, Any]]:
    """Return the tables, by name, of the chosen profile and of all that it extends.

    The chosen profile is the first. Built-in profiles have no table.
    """
    profiles = layers.merged().get("permissions", {})
    chain: dict[str, Mapping[str, Any]] = {}
    name, _ = chosen_profile(layers)
    reference = "default_permissions refers to"
    key = ("default_permissions",)
    while name is not None and name not in BUILT_IN:
        if name in chain:
            circle = " -> ".join((*chain, name))
            raise ConfigError(
                f"permissions profile inheritance cycle detected: {circle}", key=key
            )
        if name not in profiles:
            raise ConfigError(f"{reference} undefined profile `{name}`", key=key)
        chain[name] = profiles[name]
        reference = f"permissions profile `{name}` extends"
        key = ("permissions", name, "extends")
        base = chain[name].get("extends")
        if base == _FULL_ACCESS:
            reason = f"permissions profile `{name}` cannot extend {base!r}"
            raise ConfigError(reason, key=key)
        name = base
    return chain


def protection_rules(layers: Layers, roots: Sequence[Path]) -> FileRules:
    """Return the rules of `[protection]`; the denials of all layers add up."""
    found = FileRules()
    key = ("protection", "deny")
    for layer in layers.layers:
        table = layer.values.get("protection", {})
        denied: Sequence[str] = table.get("deny", ())
        found = found.plus(denial_rules(denied, key, roots, layers.user_home))
    merged = layers.merged().get("protection", {})
    if merged.get("secrets") == "deny":
        for pattern in SECRETS:
            found = found.plus(_rule(pattern, "deny", roots, layers.user_home))
    return found


def file_rules(
    layers: Layers,
    profile: PermissionProfile | None,
    workspace: tuple[Path, ...],
) -> FileRules:
    """Return the rules for files in the workspace roots.

    A linked worktree and its main work tree get the same denials.
    """
    root = layers.project_root
    main = None if root is None else main_work_tree(root)
    if root is not None and main is not None:
        workspace = (*workspace, main / layers.cwd.relative_to(root))
    files = protection_rules(layers, workspace)
    if profile is not None:
        files = files.plus(profile.rules(workspace))
    # A project may choose and change profiles, but cannot open paths that its user denies.
    files = files.denying(_rules_without_project(layers, workspace))
    if root is None or main is None:
        return files
    return files.copied(main, root)


def _rules_without_project(layers: Layers, workspace: tuple[Path, ...]) -> FileRules:
    """Return the rules of the profile that would hold without the project's settings."""
    others = tuple(each for each in layers.layers if each.name != "project")
    if others == layers.layers:
        return NO_RULES
    without_project = replace(layers, layers=others)
    name, _ = chosen_profile(without_project)
    if name is None:
        return NO_RULES
    _, profile = chosen_permissions(without_project)
    if profile is None:
        return NO_RULES
    return profile.rules(workspace)


def denial_rules(
    patterns: Iterable[str],
    key: tuple[str, ...],
    roots: Sequence[Path],
    user_home: Path,
) -> FileRules:
    """Return the rules that deny these paths and patterns.

    As in a `.gitignore`, a pattern without a slash matches a name at any depth. Profiles have no
    such rule, because their keys are those of Codex.

    Args:
        key: the setting, for errors.
    """
    found = FileRules()
    for pattern in patterns:
        _check(
            pattern,
            "deny",
            key,
            below=_is_relative(pattern),
        )
        found = found.plus(_rule(pattern, "deny", roots, user_home))
        for each in _either(pattern):
            name = each.rstrip("/")
            if _is_bare_name(name):
                found = found.plus(_rule(f"**/{name}", "deny", roots, user_home))
    return found


def _is_bare_name(pattern: str) -> bool:
    """True for a name without a folder, such as `*.pem`."""
    is_name = _is_relative(pattern) and "/" not in pattern
    return is_name and pattern not in {"", ".", "**"}


def _resolved(
    name: str,
    layers: Layers,
    *,
    decides: bool,
) -> PermissionProfile:
    """Add up the tables of a profile and of all that it extends."""
    chain = profile_chain(layers)
    most_general = list(chain.values())[-1]
    entries = _built_in_entries(most_general.get("extends"))
    roots: dict[str, bool] = {}
    network = False
    depth = None
    for each, table in reversed(chain.items()):
        key = ("permissions", each)
        for unknown in table.keys() - _TABLES:
            reason = f"unknown table `{unknown}` in a permissions profile"
            raise ConfigError(reason, key=(*key, unknown))
        for root, is_root in table.get("workspace_roots", {}).items():
            _check(
                root,
                "read",
                (*key, "workspace_roots", root),
                below=False,
            )
            roots[root] = is_root
        filesystem = {**table.get("filesystem", {})}
        depth = filesystem.pop("glob_scan_max_depth", depth)
        entries |= _entries(filesystem, (*key, "filesystem"))
        network = table.get("network", {}).get("enabled", network)
    return PermissionProfile(
        name=name,
        entries=tuple(entries.items()),
        roots=tuple(_path(root, layers.user_home) for root in roots if roots[root]),
        scan_depth=depth,
        network=network,
        user_home=layers.user_home,
        decides=decides,
    )


def _built_in_entries(profile: str | None) -> _Entries:
    """Return the entries of a built-in profile; empty for any other."""
    entries: _Entries = {}
    if profile in BUILT_IN:
        entries[":root", "."] = "read"
    if profile == ":workspace":
        for base in (_ROOTS, ":tmpdir", ":slash_tmp"):
            entries[base, "."] = "write"
    return entries


def _entries(filesystem: Mapping[str, Any], key: tuple[str, ...]) -> _Entries:
    entries: _Entries = {}
    for base, value in filesystem.items():
        if isinstance(value, dict):
            for name, word in cast("dict[str, str]", value).items():
                place, access = _entry(
                    base,
                    name,
                    word,
                    (*key, base, name),
                )
                entries[place] = access
        else:
            place, access = _entry(
                base,
                ".",
                value,
                (*key, base),
            )
            entries[place] = access
    return entries


def _entry(
    base: str,
    name: str,
    word: str,
    key: tuple[str, ...],
) -> tuple[tuple[str, str], Access]:
    """Return the place and the access of one entry, in the form of `_Entries`.

    Raises:
        ConfigError: a profile cannot have this entry.
    """
    access: Access = "deny" if word == "none" else cast("Access", word)
    is_special = base.startswith(":")
    if is_special:
        _check_special(base, name, access, key)
    _check(name, access, key, below=True)
    if is_special:
        stem = name.rstrip("/")
        if access != "deny":
            stem = stem.removesuffix("/**")
        return (base, stem), access
    _check(base, access, key, below=False)
    path = base.rstrip("/")
    if name != ".":
        path = f"{path}/{name}"
    return ("", path or "/"), access


def _check_special(
    base: str,
    name: str,
    access: str,
    key: tuple[str, ...],
) -> None:
    if base not in _SPECIAL:
        text = f"Configured filesystem path `{base}` is not recognized"
        raise ConfigError(text, key=key)
    if base != _ROOTS and (access == "deny" or name != "."):
        text = f"`{base}` cannot be denied; name the folder itself"
        raise ConfigError(text, key=key)


def _check(
    name: str,
    access: str,
    key: tuple[str, ...],
    *,
    below: bool,
) -> None:
    """Reject a name that an entry cannot have.

    Args:
        below: True for a name below a folder, False for a path of its own.
    """
    parts = name.rstrip("/").split("/")
    has_dots = "." in parts or ".." in parts
    if below and name != "." and (has_dots or "" in parts):
        text = (
            f"filesystem subpath `{name}` must be a descendant path"
            " without `.` or `..` components"
        )
        raise ConfigError(text, key=key)
    if not below and (has_dots or _is_relative(name)):
        text = (
            f"filesystem path `{name}` must be absolute, use `~/...`, or start with `:`"
        )
        raise ConfigError(text, key=key)
    if access != "deny" and _WILDCARD.search(name.removesuffix("/**")):
        text = (
            f"filesystem glob path `{name}` only supports `deny` access;"
            " use an exact path or trailing `/**` for `read` or `write`"
        )
        raise ConfigError(text, key=key)


def _is_relative(name: str) -> bool:
    return not (name.startswith(("/", "~/")) or name == "~")


def _path(name: str, user_home: Path) -> Path:
    if name.startswith("~"):
        return user_home / name[2:]
    return Path(name)


def _rule(
    name: str,
    access: Access,
    roots: Iterable[Path],
    user_home: Path,
) -> FileRules:
    """Return the rule of an entry. A relative name applies below each root."""
    if access != "deny":
        name = name.removesuffix("/**") or "/"
    if _is_relative(name):
        places = [(root, name) for root in roots]
    else:
        folder, pattern = _folder_and_pattern(name)
        places = [(_path(folder, user_home), pattern)]
    if _WILDCARD.search(name) is None:
        entries: dict[Path, Access] = {}
        for folder, rest in places:
            path = Path(os.path.normpath(folder / rest))
            entries[path] = access
        return FileRules(tuple(entries.items()))
    globs: list[tuple[Path, str]] = []
    for folder, rest in places:
        globs += [(folder, each) for each in _either(rest)]
    return FileRules(globs=tuple(globs))


def _folder_and_pattern(name: str) -> tuple[str, str]:
    """Split a name after the last slash before its first wildcard."""
    found = _WILDCARD.search(name)
    if found is None:
        return name, ""
    cut = name.rfind("/", 0, found.start()) + 1
    return name[:cut] or "/", name[cut:]


def _either(pattern: str) -> Iterator[str]:
    """Expand `{a,b}` in a pattern into one pattern for each choice."""
    found = _CHOICES.search(pattern)
    if found is None:
        yield pattern
        return
    before = pattern[: found.start()]
    after = pattern[found.end() :]
    for choice in found[1].split(","):
        yield from _either(f"{before}{choice}{after}")
