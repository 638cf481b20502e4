"""What a client says to the model: texts, and images, which become files."""

import base64
import binascii
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from codex_py.app.json_rpc import INVALID_REQUEST, RpcError
from codex_py.frontends.app_server import params

_IMAGE: Final = re.compile(r"data:image/(\w+)[\w=;+.-]*;base64,", re.ASCII)


class Inputs:
    """Args:
    folder: for the images; nothing is written there before the first one.
    """

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._numbers = count()

    def read(self, parts: Sequence[params.UserInput], cwd: Path) -> tuple[str, list[Path]]:
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
                case params.LocalImageInput(path=path):
                    images.append(cwd / path)
                case params.NamedInput(name=name, path=path):
                    mark = "$" if part.type == "skill" else "@"
                    texts.append(f"[{mark}{name}]({path})")
        if not texts and not images:
            raise RpcError(INVALID_REQUEST, "input must not be empty")
        return "\n\n".join(texts), images

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _saved(self, url: str) -> Path:
        if (head := _IMAGE.match(url)) is None:
            raise RpcError(
                INVALID_REQUEST, "an image is a `data:` URL with base64, or a localImage"
            )
        try:
            data = base64.b64decode(url[head.end() :], validate=True)
        except binascii.Error as error:
            raise RpcError(INVALID_REQUEST, f"the image is not base64: {error}") from None
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="codex-py-")
        path = Path(self._folder.name, f"{next(self._numbers)}.{head[1]}")
        path.write_bytes(data)
        return path
