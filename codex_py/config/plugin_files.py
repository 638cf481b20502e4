"""Reads the folder of a plugin: all files, the manifest, and the parts of the plugin. LIGHT.

The layout is that of https://code.claude.com/docs/en/plugins-reference and of Codex 0.169.
"""

import json
import os
import posixpath
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

from codex_py.config.declared.plugin import Manifest, PluginRecord
from codex_py.config.files import require_shallow
from codex_py.config.plugin_servers import Servers, plugin_servers, require
from codex_py.config.plugins import (
    PLUGIN_NAME,
    Plugin,
    Plugins,
    plugin_names,
    plugins_folder,
)
from codex_py.errors import ConfigError
from codex_py.filesystem.reading import open_folder, open_ordinary_entry, read_whole
from codex_py.filesystem.texts import NotText, decode_text
from codex_py.protocol.annotations import Kind
from codex_py.protocol.frozen import frozen
from codex_py.streams.terminal import some_of

RECORD: Final = "codex-py-plugin.json"
"""The file beside the files of an added plugin, with its source and the digest of each file."""
_MANIFESTS: Final = (".codex-plugin/plugin.json", ".claude-plugin/plugin.json")
_RESERVED: Final = frozenset({"project", "prompts", "user"})
"""Prefixes of commands from other places, which cannot be names of plugins."""

MAX_BYTES: Final = 10 * 1024 * 1024
MAX_ENTRIES: Final = 1000
_MAX_DEPTH: Final = 10
_MAX_PATH: Final = 200
_MAX_TEXT: Final = 512 * 1024
"""The size limit, in bytes, of a file that is parsed here. Other files only get a digest."""
_MAX_LINE: Final = 500


@frozen
class PluginFile:
    data: bytes
    is_executable: bool

    @property
    def digest(self) -> str:
        """The SHA-256 of the contents, and a word if the file is executable."""
        digest = sha256(self.data).hexdigest()
        if self.is_executable:
            return f"{digest} executable"
        return digest


def read_files(top: Path) -> dict[str, PluginFile]:
    """Read all files below a folder except those in `.git`, by their relative path.

    Raises:
        ValueError: see `checked_files`; or a file cannot be read.
    """
    try:
        return checked_files(_entries(top))
    except OSError as error:
        raise ValueError(f"{top} cannot be read: {error.strerror}") from error


def checked_files(
    entries: Iterable[tuple[str, PluginFile | None]],
) -> dict[str, PluginFile]:
    """Check the files of a plugin; returns them by path, without the plugin's record.

    Args:
        entries: relative paths and files; None stands for a folder. No more are taken than the
            limits allow.

    Raises:
        ValueError: a path is not the same on all systems, or there is too much. The message is a
            clause.
    """
    files: dict[str, PluginFile] = {}
    seen: dict[str, str] = {}
    size = 0
    for path, file in entries:
        if path == RECORD:
            continue
        _require_portable(path)
        # Some systems ignore case, and some the way in which accents are encoded.
        same = unicodedata.normalize("NFC", path).casefold()
        other = seen.setdefault(same, path)
        if other != path:
            raise ValueError(f"{other!r} and {path!r} name one file on some systems")
        if len(seen) > MAX_ENTRIES:
            raise ValueError(f"it has more than {MAX_ENTRIES} files and folders")
        if file is not None:
            files[path] = file
            size += len(file.data)
        if size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES >> 20} MB")
    return dict(sorted(files.items()))


def _require_portable(path: str) -> None:
    """Raise a `ValueError` for a path that not all systems can have."""
    if not path.isprintable() or "\\" in path:
        raise ValueError(f"{path!r} is no name for a file of a plugin")
    if len(path.encode()) > _MAX_PATH or path.count("/") >= _MAX_DEPTH:
        raise ValueError(
            f"{path[:80]!r}… is longer than {_MAX_PATH} bytes or {_MAX_DEPTH} folders deep"
        )


def _entries(top: Path) -> Iterator[tuple[str, PluginFile | None]]:
    """Yield the relative path and the contents of each entry below a folder; None for a folder."""
    real = os.path.realpath(top)
    folders = [""]
    while folders:
        folder = folders.pop()
        whole = posixpath.join(real, folder)
        holder = open_folder(whole)
        try:
            with os.scandir(whole) as entries:
                for entry in entries:
                    path = posixpath.join(folder, entry.name)
                    if entry.name.lower() == ".git":
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        yield path, None
                        folders.append(path)
                    else:
                        yield path, _file(entry.name, holder, path)
        finally:
            os.close(holder)


def _file(
    name: str,
    holder: int,
    path: str,
) -> PluginFile:
    """Read a file in the folder that is open as `holder`."""
    try:
        with os.fdopen(open_ordinary_entry(name, dir_fd=holder), "rb") as file:
            is_executable = bool(os.fstat(file.fileno()).st_mode & 0o100)
            return PluginFile(file.read(MAX_BYTES + 1), is_executable)
    except OSError as error:
        raise ValueError(f"{path!r} cannot be read: {error.strerror}") from error


def find_plugins(home: Path) -> Plugins:
    """Read the plugins, and check all of their files now."""
    found: list[Plugin] = []
    unusable: dict[str, str] = {}
    for name in plugin_names(home):
        try:
            found.append(_installed(plugins_folder(home) / name))
        except ValueError as error:
            unusable[name] = str(error)
    return Plugins(tuple(found), unusable)


def _installed(root: Path) -> Plugin:
    """Read an added plugin, provided that none of its files has changed since.

    Raises:
        ValueError: a file has changed, or cannot be read. The message is a clause.
    """
    files = read_files(root)
    try:
        record = read_whole(root / RECORD, _MAX_TEXT, root=root)
    except OSError as error:
        raise ValueError(f"{RECORD} cannot be read: {error.strerror}") from error
    origin = _table(record, RECORD, PluginRecord)
    known: dict[str, str] = origin.get("files", {})
    found = {path: file.digest for path, file in files.items()}
    changed = {path for path, _ in known.items() ^ found.items()}
    if changed:
        raise ValueError(f"{some_of(sorted(changed), 3)} changed since it was added")
    plugin = read_plugin(root.parent, files, origin)
    if plugin.root != root:
        raise ValueError(f"its name is {plugin.name}")
    return plugin


def read_plugin(
    folder: Path,
    files: Mapping[str, PluginFile],
    origin: Mapping[str, str],
) -> Plugin:
    """Make the plugin that consists of these files.

    Args:
        folder: the folder that contains the plugin's own folder, or will contain it.
        origin: the `source` and the `commit` of the plugin.

    Raises:
        ValueError: the files are not a usable plugin. The message is a clause.
    """
    place, manifest = _manifest(files)
    name = manifest.get("name", "")
    if not PLUGIN_NAME.fullmatch(name) or name in _RESERVED:
        raise ValueError(
            f"{place}: {name[:80]!r} is no name for a plugin: use a-z, 0-9 and -"
        )
    parts = _Parts(folder / name, files, place, manifest)
    author = manifest.get("author", "")
    if not isinstance(author, str):
        author = author.get("name", "")
    return Plugin(
        name=name,
        version=_line(manifest.get("version", "")),
        description=_line(manifest.get("description", "")),
        author=_line(author),
        source=origin.get("source", ""),
        commit=origin.get("commit", ""),
        root=parts.root,
        skills=parts.texts("skills", "/SKILL.md", "skills"),
        agents=parts.agents(),
        commands=parts.commands(),
        hooks=parts.hooks(),
        servers=plugin_servers(parts.root, parts.servers()),
    )


@frozen
class _Parts:
    """The parts of a plugin: those in the usual places, and those that the manifest names."""

    root: Path
    files: Mapping[str, PluginFile]
    place: str
    """The path of the manifest."""
    manifest: Mapping[str, Any]

    def paths(
        self,
        key: str,
        suffix: str,
        *usual: str,
    ) -> dict[str, str]:
        """Find the files of a part; returns their paths below their place by whole path.

        Args:
            key: the key of the manifest that may name further places.
            suffix: the end of the names of the files.
            usual: files, and folders that are searched with all that is below them.
        """
        places = [f"{place}/" for place in usual]
        places += _named(self.manifest, key, self.files)
        wanted = [path for path in self.files if path.endswith(suffix)]
        found: dict[str, str] = {}
        for place in places:
            for path in wanted:
                if f"{path}/".startswith(place):
                    found[path] = path[len(place) :] or posixpath.basename(path)
        return found

    def texts(
        self,
        key: str,
        suffix: str,
        *usual: str,
    ) -> dict[Path, str]:
        """Return the texts of the files of a part; the arguments are those of `paths`."""
        paths = self.paths(key, suffix, *usual)
        return {self.root / path: self._text(path) for path in paths}

    def agents(self) -> dict[Path, str]:
        markdown = self.texts("agents", ".md", "agents")
        return markdown | self.texts("agents", ".toml", "agents")

    def commands(self) -> dict[str, tuple[Path, str]]:
        found: dict[str, tuple[Path, str]] = {}
        for path, inner in self.paths("commands", ".md", "commands").items():
            name = inner.removesuffix(".md").replace("/", ":")
            found[name] = (self.root / path, self._text(path))
        return found

    def hooks(self) -> dict[Path, str]:
        found = self.texts("hooks", ".json", "hooks.json", "hooks/hooks.json")
        inline = self.manifest.get("hooks")
        if isinstance(inline, dict):
            table = cast("dict[str, Any]", inline)
            text = json.dumps({"hooks": table.get("hooks", table)})
            found[self.root / self.place] = text
        return found

    def servers(self) -> list[dict[str, Any]]:
        """The tables with servers, in Claude Code's form."""
        paths = self.paths("mcpServers", ".json", ".mcp.json")
        found = [_table(self.files[path].data, path, Servers) for path in paths]
        inline = self.manifest.get("mcpServers")
        if isinstance(inline, dict):
            found.append(cast("dict[str, Any]", inline))
        return found

    def _text(self, path: str) -> str:
        return _text(self.files[path].data, path)


def _manifest(files: Mapping[str, PluginFile]) -> tuple[str, dict[str, Any]]:
    """The path and the contents of the manifest. Raises a `ValueError` if there is none."""
    for place in _MANIFESTS:
        if place in files:
            return place, _table(files[place].data, place, Manifest)
    if ".claude-plugin/marketplace.json" in files:
        raise ValueError("it is a marketplace; name the folder of one of its plugins")
    raise ValueError(f"it has no {' or '.join(_MANIFESTS)}")


def _named(
    manifest: Mapping[str, Any],
    key: str,
    files: Iterable[str],
) -> Iterator[str]:
    """Yield the manifest's paths for a part, each ending in a slash; empty for the whole folder."""
    named: Any = manifest.get(key)
    paths: list[str] = []
    if isinstance(named, str):
        paths = [named]
    elif isinstance(named, list):
        paths = cast("list[str]", named)
    for path in paths:
        base = f"{posixpath.normpath(path)}/".removeprefix("./")
        if not any(f"{name}/".startswith(base) for name in files):
            raise ValueError(
                f"`{key}` of its manifest names {path!r}, which is not in it"
            )
        yield base


def _table(
    data: bytes,
    path: str,
    kind: Kind,
) -> dict[str, Any]:
    """Parse the JSON object in a file.

    Args:
        path: the name of the file in messages.
        kind: the declared type of the object.

    Raises:
        ValueError: the file is not valid. The message is a clause.
    """
    try:
        value = json.loads(_text(data, path))
        require_shallow(value, path)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: {error.msg}") from error
    except (RecursionError, ConfigError) as error:
        raise ValueError(f"{path} is nested too deeply") from error
    require(value, kind, path)
    return value


def _text(data: bytes, path: str) -> str:
    if len(data) > _MAX_TEXT:
        raise ValueError(f"{path} has more than {_MAX_TEXT >> 10} KiB")
    try:
        return decode_text(data)
    except NotText as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _line(text: str) -> str:
    """The text on one bounded line."""
    return " ".join(text.split())[:_MAX_LINE]
