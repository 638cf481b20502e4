"""What a client says to the model: texts, and images, which become files."""

import base64
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.frontends.app_server import params

_IMAGE: Final = re.compile(r"data:image/(\w{1,20})\b[\w=;+.-]*;base64,", re.ASCII)


class Inputs:
    """Keeps the files of images until it is closed: a turn reads them when it begins."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._numbers = count()

    def read(
        self, parts: Sequence[params.UserInput], cwd: Path
    ) -> tuple[str, list[Path]]:
        """The text, and the files of images.

        Raises:
            RpcError: there is nothing in it, or an image cannot be read.
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
        if not texts and not images:
            raise RpcError(INVALID_REQUEST, "input must not be empty")
        return "\n\n".join(texts), images

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _saved(self, url: str) -> Path:
        head = _IMAGE.match(url)
        try:
            if head:
                data = base64.b64decode(url[head.end() :], validate=True)
            else:
                data = b""
        except ValueError:
            data = b""
        if head is None or not data:
            raise RpcError(
                INVALID_REQUEST,
                "an image is a `data:` URL with base64, or a localImage",
            )
        self._folder = self._folder or TemporaryDirectory(prefix="codex-py-")
        path = Path(self._folder.name, f"{next(self._numbers)}.{head[1]}")
        path.write_bytes(data)
        return path
