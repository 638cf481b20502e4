"""Reads the client's input to the model: texts, and images, which become files."""

import base64
import re
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Final

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.filesystem.own_folder import own_folder
from codex_py.frontends.app_server import params

_IMAGE: Final = re.compile(r"data:image/(\w{1,20})\b[\w=;+.-]*;base64,", re.ASCII)


class Inputs:
    """Keeps the files of images until it is closed: a turn reads them when it begins.

    Args:
        home: `$CODEX_HOME`, absolute.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._opened = ExitStack()
        self._folder: Path | None = None
        self._numbers = count()

    def read(
        self, parts: Sequence[params.UserInput], cwd: Path
    ) -> tuple[str, list[Path]]:
        """Read the parts. Returns the text, and the files of images.

        Raises:
            RpcError: the input is empty, or an image cannot be read.
        """
        texts: list[str] = []
        images: list[Path] = []
        for part in parts:
            match part:
                case params.TextInput(text=text):
                    texts.append(text)
                case params.ImageInput(url=url):
                    images.append(self._saved(url))
                case params.NamedInput(type="localImage", path=path):
                    images.append(cwd / path)
                case params.NamedInput():
                    mark = "$" if part.type == "skill" else "@"
                    texts.append(f"[{mark}{part.name}]({part.path})")
        if not parts:
            raise RpcError(INVALID_REQUEST, "input must not be empty")
        if not images and not any(map(str.strip, texts)):
            raise RpcError(INVALID_REQUEST, "the prompt is empty")
        return "\n\n".join(texts), images

    def close(self) -> None:
        self._opened.close()

    def _saved(self, url: str) -> Path:
        """Write an image of a `data:` URL to a file."""
        extension, data = _decoded(url)
        if self._folder is None:
            opening = own_folder(self._home, "images")
            self._folder = self._opened.enter_context(opening)
        path = self._folder / f"{next(self._numbers)}.{extension}"
        path.write_bytes(data)
        return path


def _decoded(url: str) -> tuple[str, bytes]:
    """The type of an image, such as `png`, and its bytes."""
    head = _IMAGE.match(url)
    if head is not None:
        encoded = url[head.end() :]
        with suppress(ValueError):
            data = base64.b64decode(encoded, validate=True)
            if data:
                return head[1], data
    reason = "an image is a `data:` URL with base64, or a localImage"
    raise RpcError(INVALID_REQUEST, reason)
