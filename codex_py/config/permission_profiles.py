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

from codex_py.config.layers import Layers
from codex_py.errors import ConfigError
from codex_py.filesystem.git import main_work_tree
from codex_py.protocol.approval import SandboxMode, SandboxPolicy
from codex_py.protocol.file_rules import NO_RULES, Access, FileRules
from codex_py.protocol.frozen import frozen

BUILT_IN: Final[dict[str, SandboxMode]] = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    ":danger-full-access": "danger-full-access",
}
"""The built-in values of `default_permissions`, which generalise the sandbox modes."""
_ROOTS: Final = ":workspace_roots"
_SPECIAL: Final = {_ROOTS, ":root", ":minimal", ":tmpdir", ":slash_tmp"}
_TABLES: Final = {"description", "extends", "workspace_roots", "filesystem", "network"}
_MAGIC: Final = re.compile(r"[*?\[]|\{[^{}]*,[^{}]*\}")
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
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
"""The access by base and name. The base is a special name with a name below it, or empty with a
path."""


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
    """False: a stronger `sandbox_mode` decides the write access, and only the rest of the profile
    holds."""

    @property
    def reads_all(self) -> bool:
        return dict(self.entries).get((":root", ".")) in {"read", "write"}

    @property
    def writes_roots(self) -> bool:
        return dict(self.entries).get((_ROOTS, ".")) == "write"

    @property
    def mode(self) -> SandboxMode:
        if "write" in dict(self.entries).values():
            return "workspace-write"
        return "read-only"

    def rules(self, roots: Iterable[Path]) -> FileRules:
        """The denials, and the read-only or open paths below them. `roots`: the workspace roots."""
        found = FileRules(scan_depth=self.scan_depth)
        for (base, name), access in self.entries:
            if base in {"", _ROOTS}:
                found = found.plus(_rule(name, access, roots, self.user_home))
        return found

    def policy(self, roots: Sequence[Path]) -> SandboxPolicy:
        """The write access of commands, without the rules."""
        entries = dict(self.entries)
        writable = list(roots) if self.writes_roots else []
        for (base, name), access in self.entries:
            if access == "write" and base in {"", _ROOTS} and name != ".":
                writable += (
                    path
                    for path, _ in _rule(name, access, roots, self.user_home).entries
                )
        if entries.get((":root", ".")) == "write":
            writable.append(Path("/"))
        return SandboxPolicy(
            "workspace-write",
            tuple(dict.fromkeys(writable)),
            self.network,
            exclude_tmpdir_env_var=entries.get((":tmpdir", ".")) != "write",
            exclude_slash_tmp=entries.get((":slash_tmp", ".")) != "write",
        )


def chosen_permissions(
    layers: Layers,
) -> tuple[SandboxMode | None, PermissionProfile | None]:
    """The sandbox mode and the permission profile.

    The mode is None if nothing sets one. The profile is None if none is chosen, or a built-in one.

    Raises:
        ConfigError: profiles are defined but none is chosen, or the chosen one, or one that it
            extends, has a mistake. Without the error, access that the profile denies would be
            allowed.
    """
    values = layers.merged()
    name, decides = chosen_profile(layers)
    mode = None if decides else values.get("sandbox_mode")
    if name is None:
        if mode is None and values.get("permissions"):
            raise ConfigError(
                "config defines `[permissions]` profiles but does not set `default_permissions`",
                key=("permissions",),
            )
        return mode, None
    if name in BUILT_IN:
        return (BUILT_IN[name] if decides else mode), None
    profile = _resolved(name, layers, decides=decides)
    return (profile.mode if decides else mode), profile


def chosen_profile(layers: Layers) -> tuple[str | None, bool]:
    """The name of the chosen profile; and True if it decides the write access.

    Within one layer, it wins over `sandbox_mode`.
    """
    decides = True
    for layer in layers.layers:
        if "default_permissions" in layer.values:
            return layer.values["default_permissions"], decides
        decides = decides and "sandbox_mode" not in layer.values
    return None, False


def profile_chain(layers: Layers) -> dict[str, Mapping[str, Any]]:
    """The tables, by name, of the chosen profile and of all that it extends, the chosen first."""
    profiles = layers.merged().get("permissions", {})
    chain: dict[str, Mapping[str, Any]] = {}
    name, _ = chosen_profile(layers)
    fault = "default_permissions refers to"
    key = ("default_permissions",)
    while name is not None and (name not in BUILT_IN or chain):
        if name == ":danger-full-access":
            raise ConfigError(
                f"{fault.replace('extends', 'cannot extend')} {name!r}", key=key
            )
        if name in BUILT_IN:
            break
        if name in chain:
            circle = " -> ".join((*chain, name))
            raise ConfigError(
                f"permissions profile inheritance cycle detected: {circle}", key=key
            )
        if name not in profiles:
            raise ConfigError(f"{fault} undefined profile `{name}`", key=key)
        chain[name] = profiles[name]
        fault = f"permissions profile `{name}` extends"
        key = ("permissions", name, "extends")
        name = chain[name].get("extends")
    return chain


def protection_rules(layers: Layers, roots: Sequence[Path]) -> FileRules:
    """The rules of `[protection]`; the denials of all layers add up."""
    found = FileRules()
    for layer in layers.layers:
        denied: Sequence[str] = layer.values.get("protection", {}).get("deny", ())
        found = found.plus(
            denial_rules(denied, ("protection", "deny"), roots, layers.user_home)
        )
    if layers.merged().get("protection", {}).get("secrets") == "deny":
        for pattern in SECRETS:
            found = found.plus(_rule(pattern, "deny", roots, layers.user_home))
    return found


def file_rules(
    layers: Layers, profile: PermissionProfile | None, workspace: tuple[Path, ...]
) -> FileRules:
    """The rules for files in the workspace roots.

    A linked worktree and its main work tree get the same denials.
    """
    root = layers.project_root
    main = None if root is None else main_work_tree(root)
    if root is not None and main is not None:
        workspace = (*workspace, main / layers.cwd.relative_to(root))
    files = protection_rules(layers, workspace)
    if profile is not None:
        files = files.plus(profile.rules(workspace))
    own = replace(
        layers, layers=tuple(each for each in layers.layers if each.name != "project")
    )
    if own != layers and chosen_profile(own)[0] is not None:
        # A project may choose and change profiles, but cannot open paths that its user denies.
        _, of_user = chosen_permissions(own)
        if of_user is None:
            denied = NO_RULES
        else:
            denied = of_user.rules(workspace)
        files = files.denying(denied)
    if root is None or main is None:
        return files
    return files.copied(main, root)


def denial_rules(
    patterns: Iterable[str],
    key: tuple[str, ...],
    roots: Sequence[Path],
    user_home: Path,
) -> FileRules:
    """The rules that deny these paths and patterns. `key`: the setting, for errors.

    As in a `.gitignore`, a pattern without a slash matches a name at any depth. Profiles have no
    such rule, because their keys are those of Codex.
    """
    found = FileRules()
    for pattern in patterns:
        _check(pattern, "deny", key, below=_is_relative(pattern))
        found = found.plus(_rule(pattern, "deny", roots, user_home))
        for each in _either(pattern):
            name = each.rstrip("/")
            if _is_relative(name) and "/" not in name and name not in {"", ".", "**"}:
                found = found.plus(_rule(f"**/{name}", "deny", roots, user_home))
    return found


def _resolved(name: str, layers: Layers, *, decides: bool) -> PermissionProfile:
    entries: _Entries = {}
    chain = profile_chain(layers)
    inherited = list(chain.values())[-1].get("extends")
    if inherited in BUILT_IN:
        entries[":root", "."] = "read"
    if inherited == ":workspace":
        for base in (_ROOTS, ":tmpdir", ":slash_tmp"):
            entries[base, "."] = "write"
    roots: dict[str, bool] = {}
    network = False
    depth = None
    for each, table in reversed(chain.items()):
        key = ("permissions", each)
        for unknown in table.keys() - _TABLES:
            raise ConfigError(
                f"unknown table `{unknown}` in a permissions profile",
                key=(*key, unknown),
            )
        for root, is_root in table.get("workspace_roots", {}).items():
            _check(root, "read", (*key, "workspace_roots", root), below=False)
            roots[root] = is_root
        filesystem = {**table.get("filesystem", {})}
        depth = filesystem.pop("glob_scan_max_depth", depth)
        entries |= _entries(filesystem, (*key, "filesystem"))
        network = table.get("network", {}).get("enabled", network)
    return PermissionProfile(
        name=name,
        entries=tuple(entries.items()),
        roots=tuple(
            _path(root, layers.user_home) for root, is_root in roots.items() if is_root
        ),
        scan_depth=depth,
        network=network,
        user_home=layers.user_home,
        decides=decides,
    )


def _entries(filesystem: Mapping[str, Any], key: tuple[str, ...]) -> _Entries:
    entries: _Entries = {}
    for base, value in filesystem.items():
        is_table = isinstance(value, dict)
        below = cast("dict[str, str]", value if is_table else {".": value})
        for name, word in below.items():
            if is_table:
                here = (*key, base, name)
            else:
                here = (*key, base)
            access: Access = "deny" if word == "none" else cast("Access", word)
            if base.startswith(":") and base not in _SPECIAL:
                text = f"Configured filesystem path `{base}` is not recognized"
                raise ConfigError(text, key=here)
            if (
                base.startswith(":")
                and base != _ROOTS
                and (access == "deny" or name != ".")
            ):
                raise ConfigError(
                    f"`{base}` cannot be denied; name the folder itself", key=here
                )
            _check(name, access, here, below=True)
            if not base.startswith(":"):
                _check(base, access, here, below=False)
                if name == ".":
                    path = base.rstrip("/")
                else:
                    path = f"{base.rstrip('/')}/{name}"
                entries["", path or "/"] = access
            else:
                stem = name.rstrip("/")
                entries[
                    base, stem if access == "deny" else stem.removesuffix("/**")
                ] = access
    return entries


def _check(name: str, access: str, key: tuple[str, ...], *, below: bool) -> None:
    """Reject a name that an entry cannot have. `below`: the name is one below a folder."""
    parts = name.rstrip("/").split("/")
    if below and name != "." and not {"", ".", ".."}.isdisjoint(parts):
        text = f"filesystem subpath `{name}` must be a descendant path without `.` or `..` components"
        raise ConfigError(text, key=key)
    if not below and (_is_relative(name) or not {".", ".."}.isdisjoint(parts)):
        text = (
            f"filesystem path `{name}` must be absolute, use `~/...`, or start with `:`"
        )
        raise ConfigError(text, key=key)
    if access != "deny" and _MAGIC.search(name.removesuffix("/**")):
        text = (
            f"filesystem glob path `{name}` only supports `deny` access; use an exact path or trailing"
            " `/**` for `read` or `write`"
        )
        raise ConfigError(text, key=key)


def _is_relative(name: str) -> bool:
    return not (name.startswith(("/", "~/")) or name == "~")


def _path(name: str, user_home: Path) -> Path:
    if name.startswith("~"):
        return user_home / name[2:]
    return Path(name)


def _rule(
    name: str, access: Access, roots: Iterable[Path], user_home: Path
) -> FileRules:
    """The rule of an entry. A relative name applies below each root."""
    if access != "deny":
        name = name.removesuffix("/**") or "/"
    if _is_relative(name):
        places = [(root, name) for root in roots]
    else:
        found = _MAGIC.search(name)
        # The path up to the last slash before the first wildcard is the folder.
        if found is None:
            cut = len(name)
        else:
            cut = name.rfind("/", 0, found.start()) + 1
        places = [(_path(name[:cut] or "/", user_home), name[cut:])]
    if _MAGIC.search(name) is None:
        paths = (Path(os.path.normpath(folder / rest)) for folder, rest in places)
        return FileRules(tuple((path, access) for path in dict.fromkeys(paths)))
    return FileRules(
        globs=tuple((folder, each) for folder, rest in places for each in _either(rest))
    )


def _either(pattern: str) -> Iterator[str]:
    """Expand `{a,b}` in a pattern into one pattern for each choice."""
    found = _BRACES.search(pattern)
    if found is None:
        yield pattern
        return
    for choice in found[1].split(","):
        yield from _either(
            f"{pattern[: found.start()]}{choice}{pattern[found.end() :]}"
        )
