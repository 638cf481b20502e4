"""`view_image`: shows a local image to the model."""

import asyncio
import errno
from pathlib import Path
from typing import Annotated

from codex_py.config.paths import project_root
from codex_py.errors import ToolError
from codex_py.filesystem.denials import denials_of
from codex_py.filesystem.reading import NotOrdinary, Refusal, read_whole
from codex_py.images.prepare import UnusableImage, image_part
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.frozen import frozen
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.messages import MAX_IMAGE_BYTES
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.base import ToolParams
from codex_py.tools.mcp.item import OWN_SERVER, ShownAsServerCall, mcp_item


@frozen(kw_only=True)
class ViewImageParams(ToolParams):
    path: Annotated[str, "Path of the image."]
    """Relative to the directory of the turn."""


class ViewImage(ShownAsServerCall):
    """Reads an image, and shows it to the model."""

    name = "view_image"
    params = ViewImageParams
    parallel = True

    def __init__(self, rule: ImageRule) -> None:
        self._rule = rule

    async def run(self, params: ViewImageParams, context: ToolContext) -> ToolOutput:
        """Return the image as a content part. The item shows a call of the MCP server `codex`.

        Raises:
            ToolError: the file is missing, damaged, not an image of a known kind, larger than 20
                MB, or a link out of the project.
        """
        path = context.cwd / params.path
        with mcp_item(OWN_SERVER, self.name, {"path": str(path)}, context) as item:
            refuses = denials_of(context.sandbox_policy.files).refuses
            data = await asyncio.to_thread(_read, path, context.cwd, refuses)
            try:
                part = await asyncio.to_thread(image_part, data, self._rule)
            except UnusableImage as error:
                text = f"unable to process image: {error}"
                raise ToolError(text, code="InvalidImage") from error
            # The item has the size of the image, not the image: its event would be megabytes long.
            size = {"type": "text", "text": f"{len(data):,} bytes"}
            item.end({"content": [size]})
            return ToolOutput("", content=(part,))


def _read(
    path: Path,
    cwd: Path,
    refuses: Refusal,
) -> bytes:
    try:
        root = project_root(cwd, (".git",)) or cwd
        return read_whole(path, MAX_IMAGE_BYTES, root=root, refuses=refuses)
    except NotOrdinary as error:
        text = f"image path `{path}` is not a file: {error.strerror}"
        raise ToolError(text, code="EISDIR") from error
    except OSError as error:
        raise _read_failure(path, error) from error
    except ValueError as error:
        # The path contains a NUL or a lone surrogate. Python's own message depends on its version.
        text = f"unable to locate image at `{path}`: no file can have this name"
        raise ToolError(text, code="InvalidArgs") from error


def _read_failure(path: Path, error: OSError) -> ToolError:
    number = error.errno or 0
    if number == errno.EFBIG:
        return ToolError(f"unable to process image: {error.strerror}", code="EFBIG")
    verb = "read" if number == errno.EACCES else "locate"
    text = f"unable to {verb} image at `{path}`: {error.strerror} (os error {number})"
    return ToolError(text, code=errno.errorcode.get(number, "InvalidArgs"))
