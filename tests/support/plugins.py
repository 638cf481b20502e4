"""Folders with plugins, and plugins that were added."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_py.config.plugin_files import RECORD, read_files

MANIFEST = ".claude-plugin/plugin.json"


def write_plugin(
    folder: Path,
    files: Mapping[str, str | dict[str, Any]] | None = None,
    **manifest: Any,
) -> Path:
    """Write a plugin called `tools`, with these files; tables become JSON. Returns the folder."""
    for name, content in {
        MANIFEST: {"name": "tools", **manifest},
        **(files or {}),
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8")
    return folder


def installed(
    home: Path, files: Mapping[str, str | dict[str, Any]] | None = None, **manifest: Any
) -> Path:
    """A plugin as `codex-py plugin add` leaves it; the folder it is in."""
    root = home / "codex-py" / "plugins" / manifest.get("name", "tools")
    write_plugin(root, files, **manifest)
    digests = {path: file.digest for path, file in read_files(root).items()}
    (root / RECORD).write_text(json.dumps({"files": digests}), encoding="utf-8")
    return root
