"""Text and images that other programs put into a prompt: an editor, the clipboard, one that pastes paths of images."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from codex_py.errors import CodexError
from codex_py.filesystem.ordinary import read_whole
from codex_py.programs import find_program, safe_search_path
from codex_py.protocol.messages import MAX_IMAGE_BYTES

_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MAX_PASTE: Final = 16 * 1024
"""Characters; a longer paste is no list of paths."""
_TIMEOUT_S: Final = 5
_MAX_EDITED_BYTES: Final = 16 * 1024 * 1024

_READERS: Final = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-t", "image/png", "-o")),
    (None, ("pngpaste", "-")),
)
"""The variable that must be set for it to work, and what writes the image to its standard output."""


def image_paths(pasted: str, cwd: Path) -> list[Path]:
    """The images that a pasted text names, absolute; none unless all of it is paths of images.

    Paths are as terminals write what is dragged into them: quoted, with backslashes, as `file://`
    addresses, or plainly.
    """
    text = pasted.strip()
    if not text or len(text) > _MAX_PASTE or not text.lower().rstrip("'\"").endswith(_ENDINGS):
        return []
    if "\n" not in text and (plain := _image(text, cwd)) is not None:
        return [plain]
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    found = [_image(word, cwd) for word in words]
    return [path for path in found if path is not None] if None not in found else []


def _image(name: str, cwd: Path) -> Path | None:
    if name.startswith("file://"):
        name = unquote(name.removeprefix("file://").removeprefix("localhost"))
    path = cwd / Path(name).expanduser() if name.startswith("~/") else cwd / name
    try:
        return path if path.name.lower().endswith(_ENDINGS) and path.is_file() else None
    except (OSError, ValueError):
        return None


def clipboard_image(environment: Mapping[str, str], cwd: Path) -> Path:
    """Write the image in the clipboard to a file of the user's own. It blocks for some seconds at most.

    Raises:
        CodexError: there is none, or no program to read it with.
    """
    search_path = environment.get("PATH", os.defpath)
    for variable, (name, *words) in _READERS:
        program = find_program(name, search_path, [cwd])
        if program is None or (variable is not None and not environment.get(variable)):
            continue
        try:
            done = subprocess.run(
                [program, *words],
                cwd="/",
                env={**environment, "PATH": safe_search_path(search_path, [cwd])},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CodexError(f"{name} could not be run: {error}", code="clipboard") from error
        if done.returncode or not done.stdout:
            raise CodexError("there is no image in the clipboard", code="clipboard")
        if len(done.stdout) > MAX_IMAGE_BYTES:
            raise CodexError("the image in the clipboard is too large", code="clipboard")
        try:
            with tempfile.NamedTemporaryFile(
                prefix="codex-clipboard-", suffix=".png", delete=False
            ) as file:
                file.write(done.stdout)
        except OSError as error:
            raise CodexError(f"the image could not be saved: {error}", code="clipboard") from error
        return Path(file.name)
    raise CodexError(
        "pasting images needs wl-paste, xclip or pngpaste; or paste the path of a file",
        code="clipboard",
    )


def editor_command(environment: Mapping[str, str], cwd: Path) -> list[str]:
    """The words of `$VISUAL`, else of `$EDITOR`; the program is none that lies in `cwd`.

    Raises:
        CodexError: neither is set, or there is no such program.
    """
    line = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        words = shlex.split(line)
    except ValueError:
        words = []
    if not words:
        raise CodexError("set VISUAL or EDITOR to the editor that you like", code="editor")
    program = words[0]
    if not program.startswith("/"):
        found = find_program(program, environment.get("PATH", os.defpath), [cwd])
        if found is None:
            raise CodexError(f"there is no editor {program!r}", code="editor")
        program = found
    return [program, *words[1:]]


def edited(command: Sequence[str], text: str, environment: Mapping[str, str]) -> str:
    """Have the user edit a text, and wait for it; newlines at its end are dropped.

    Raises:
        CodexError: the editor could not be run, or failed.
    """
    name = Path(command[0]).name
    try:
        with tempfile.TemporaryDirectory(prefix="codex-py-") as folder:
            path = Path(folder, "prompt.md")
            path.write_text(text, encoding="utf-8", errors="replace")
            done = subprocess.run([*command, str(path)], env=environment, check=False)
            if status := done.returncode:
                how = (
                    f"ended with exit code {status}"
                    if status > 0
                    else f"was killed by signal {-status}"
                )
                raise CodexError(f"{name} {how}; the text is as it was", code="editor")
            # A command of the model can write there too, and could have us read a file of the kernel's.
            written = read_whole(path, _MAX_EDITED_BYTES, root=Path(folder))
            return written.decode(errors="replace").replace("\r\n", "\n").rstrip("\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CodexError(f"{name} could not be run: {reason}", code="editor") from error
