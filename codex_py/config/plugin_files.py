"""Reads the folder of a plugin: all files, the manifest, and the parts of the plugin. LIGHT.

Source of the layout: https://code.claude.com/docs/en/plugins-reference, and Codex 0.169.
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
        return sha256(self.data).hexdigest() + (
            " executable" if self.is_executable else ""
        )


def read_files(top: Path) -> dict[str, PluginFile]:
    """Read all files below a folder except `.git`, by path; raises as `checked_files` does."""
    try:
        return checked_files(_entries(top))
    except OSError as error:
        raise ValueError(f"{top} cannot be read: {error.strerror}") from error


def checked_files(
    entries: Iterable[tuple[str, PluginFile | None]],
) -> dict[str, PluginFile]:
    """The files among these entries, by path, without the record of the plugin.

    The entries have relative paths; None stands for a folder. No more entries are taken than the
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
        if not path.isprintable() or "\\" in path:
            raise ValueError(f"{path!r} is no name for a file of a plugin")
        if len(path.encode()) > _MAX_PATH or path.count("/") >= _MAX_DEPTH:
            raise ValueError(
                f"{path[:80]!r}… is longer than {_MAX_PATH} bytes or {_MAX_DEPTH} folders deep"
            )
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


def _entries(top: Path) -> Iterator[tuple[str, PluginFile | None]]:
    real = os.path.realpath(top)
    folders = [""]
    while folders:
        folder = folders.pop()
        holder = open_folder(posixpath.join(real, folder))
        try:
            with os.scandir(posixpath.join(real, folder)) as entries:
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
    known = origin.get("files", {})
    found = {path: file.digest for path, file in files.items()}
    changed = [
        path for path in sorted({*known, *found}) if known.get(path) != found.get(path)
    ]
    if changed:
        raise ValueError(f"{some_of(changed, 3)} changed since it was added")
    plugin = read_plugin(root.parent, files, origin)
    if plugin.root != root:
        raise ValueError(f"its name is {plugin.name}")
    return plugin


def read_plugin(
    folder: Path, files: Mapping[str, PluginFile], origin: Mapping[str, str]
) -> Plugin:
    """The plugin that consists of these files.

    Args:
        folder: the folder that contains the plugin's own folder, or will contain it.
        origin: its `source` and `commit`.

    Raises:
        ValueError: the files are not a usable plugin. The message is a clause.
    """
    place, manifest = _manifest(files)
    name = manifest.get("name", "")
    if not PLUGIN_NAME.fullmatch(name) or name in _RESERVED:
        raise ValueError(
            f"{place}: {name[:80]!r} is no name for a plugin: use a-z, 0-9 and -"
        )
    root = folder / name

    def part(
        key: str,
        suffix: str,
        *usual: str,
    ) -> dict[str, str]:
        """The files of a part, with their paths below the named place or a usual one."""
        bases = [*(f"{base}/" for base in usual), *_named(manifest, key, files)]
        wanted = [path for path in files if path.endswith(suffix)]
        found: dict[str, str] = {}
        for base in bases:
            for path in wanted:
                if f"{path}/".startswith(base):
                    found[path] = path[len(base) :] or posixpath.basename(path)
        return found

    def texts(paths: Iterable[str]) -> dict[Path, str]:
        return {root / path: _text(files[path].data, path) for path in paths}

    agents = part("agents", ".md", "agents") | part("agents", ".toml", "agents")
    hooks = texts(part("hooks", ".json", "hooks.json", "hooks/hooks.json"))
    servers = [
        _table(files[path].data, path, Servers)
        for path in part("mcpServers", ".json", ".mcp.json")
    ]
    # The manifest may contain hooks and servers itself.
    if isinstance(manifest.get("hooks"), dict):
        inline = manifest["hooks"]
        hooks[root / place] = json.dumps({"hooks": inline.get("hooks", inline)})
    if isinstance(manifest.get("mcpServers"), dict):
        servers.append(manifest["mcpServers"])
    author = manifest.get("author", "")
    return Plugin(
        name=name,
        version=_line(manifest.get("version", "")),
        description=_line(manifest.get("description", "")),
        author=_line(author if isinstance(author, str) else author.get("name", "")),
        source=origin.get("source", ""),
        commit=origin.get("commit", ""),
        root=root,
        skills=texts(part("skills", "/SKILL.md", "skills")),
        agents=texts(agents),
        commands={
            inner[:-3].replace("/", ":"): (root / path, _text(files[path].data, path))
            for path, inner in part("commands", ".md", "commands").items()
        },
        hooks=hooks,
        servers=plugin_servers(root, servers),
    )


def _manifest(files: Mapping[str, PluginFile]) -> tuple[str, dict[str, Any]]:
    for place in _MANIFESTS:
        if place in files:
            return place, _table(files[place].data, place, Manifest)
    if ".claude-plugin/marketplace.json" in files:
        raise ValueError("it is a marketplace; name the folder of one of its plugins")
    raise ValueError(f"it has no {' or '.join(_MANIFESTS)}")


def _named(
    manifest: Mapping[str, Any], key: str, files: Iterable[str]
) -> Iterator[str]:
    """Yield the manifest's paths for a part, each ending in a slash; empty for the whole folder."""
    named: Any = manifest.get(key, [])
    paths = [named] if isinstance(named, str) else named
    for path in cast("list[str]", paths) if isinstance(paths, list) else ():
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
    """The JSON object of a file. `kind`: see `problems`."""
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
    return " ".join(text.split())[:_MAX_LINE]
