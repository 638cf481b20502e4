"""The params of the methods about files: `fs/…`."""

import os
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from codex_py.frontends.app_server.params import Params
from codex_py.protocol.annotations import Plain
from codex_py.protocol.frozen import frozen


def _is_absolute(text: str) -> bool:
    return text.startswith("/") and "\0" not in text


def _normal(text: str) -> Path:
    return Path(os.path.normpath(text))


_ABSOLUTE: Final = "an absolute path without NUL"
AbsolutePath: TypeAlias = Annotated[
    Path, Plain("path", _ABSOLUTE, (str,), _is_absolute, _normal)
]
"""A path of the client; `..` in it is resolved without looking at the file system, as in Codex."""


@frozen(kw_only=True)
class OnePath(Params):
    path: AbsolutePath


@frozen(kw_only=True)
class WriteFile(OnePath):
    data_base64: str


@frozen(kw_only=True)
class CreateDirectory(OnePath):
    recursive: bool | None = None
    """False: the parent has to exist, and the folder must not."""


@frozen(kw_only=True)
class Remove(OnePath):
    recursive: bool | None = None
    """False: a folder has to be empty."""
    force: bool | None = None
    """False: the path has to exist."""


@frozen(kw_only=True)
class Copy(Params):
    source_path: AbsolutePath
    destination_path: AbsolutePath
    recursive: bool = False


@frozen(kw_only=True)
class Watch(OnePath):
    watch_id: str


@frozen(kw_only=True)
class Unwatch(Params):
    watch_id: str
