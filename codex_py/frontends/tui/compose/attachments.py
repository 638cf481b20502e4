"""Pastes and images in a prompt, from an editor, the clipboard or pasted paths.

In a text that is being written, each paste and each image is one character, so that any key moves
over it, deletes it and brings it back as one. `expand` gives the text for the model, and `shown`
the label of such a character on the screen.
"""

import errno
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from codex_py.errors import CodexError, cause
from codex_py.filesystem.own_folder import own_folder
from codex_py.filesystem.reading import read_whole
from codex_py.process.terminal_child import run_in_terminal
from codex_py.programs import Programs
from codex_py.protocol.messages import MAX_IMAGE_BYTES

_FIRST = 0x100000
_LAST = 0x10FFFD
"""The characters of a plane of Unicode for private use, which no keyboard writes."""
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_LABEL = re.compile(r"\[Image #(\d+)\]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FOLDED_LINES = 25
_FOLDED_CHARACTERS = 2_000
_EDITORS: Final = ("sensible-editor", "nano", "vim", "vi", "emacs")
_MAX_WRITTEN = 20_000
"""Characters of a text that is brought back for editing; a longer one is folded whole."""
_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MAX_PASTE: Final = 16 * 1024
"""Characters; a longer paste is not read as a list of paths."""
_TIMEOUT_S: Final = 5
_MAX_EDITED_BYTES: Final = 16 * 1024 * 1024

_READERS: Final = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-t", "image/png", "-o")),
    (None, ("pngpaste", "-")),
)
"""The variable that must be set, if any, and the command that prints the image."""


def is_long(text: str) -> bool:
    """True if a paste is folded, because it is too long to look at."""
    return len(text) > _FOLDED_CHARACTERS or text.count("\n") >= _FOLDED_LINES


class Attachments:
    """The pastes and images of the prompts of this session, with the characters that mark them."""

    def __init__(self) -> None:
        self._kept: list[str | Path] = []
        """Pasted texts and the paths of images. The first one has the mark `_FIRST`."""
        self.key = ", Ctrl-O"
        """The part of a label that names the key for showing a paste."""

    def mark(self, kept: str | Path) -> str:
        """Keep a text, or the absolute path of an image. Returns the character for it."""
        if len(self._kept) > _LAST - _FIRST:
            self._kept.clear()
        self._kept.append(kept)
        return chr(_FIRST + len(self._kept) - 1)

    def clean(self, text: str) -> str:
        """A text from outside without characters that could pass for marks.

        `\\r\\n` and `\\r` become newlines.
        """
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return _MARK.sub("\ufffd", text)

    def shown(self, character: str, text_before: str) -> str | None:
        """The label of a character; None if it stands for nothing.

        An image's label has its number in the text, from 1 on.
        """
        match self._find(character):
            case None:
                return None
            case Path():
                return f"[Image #{len(self._images(text_before)) + 1}]"
            case text:
                lines = text.rstrip("\n").count("\n") + 1
                if lines > 1:
                    size = f"{lines:,} lines"
                else:
                    size = f"{len(text):,} characters"
                return f"[Pasted {size}{self.key}]"

    def pasted(self, text: str) -> list[str]:
        """The pasted texts whose labels the text shows."""
        found = (self._find(match[0]) for match in _MARK.finditer(text))
        return [kept for kept in found if isinstance(kept, str)]

    def expand(self, text: str) -> tuple[str, tuple[Path, ...]]:
        """The text with its pastes in full, and its images in order: `[Image #1]` is the first."""
        images = self._images(text)
        count = 0

        def content(match: re.Match[str]) -> str:
            nonlocal count
            kept = self._find(match[0])
            if isinstance(kept, Path):
                count += 1
                return f"[Image #{count}]"
            return kept or "\ufffd"

        whole = _MARK.sub(content, text)
        # Input of the terminal that was not UTF-8 cannot be sent on.
        return _SURROGATE.sub("\ufffd", whole), tuple(images)

    def fold(self, text: str, images: Sequence[Path]) -> str:
        """Undo `expand`.

        Images without a label go in front; a text that is too long to edit is folded whole.
        """
        text = self.clean(text)
        if len(text) > _MAX_WRITTEN:
            marks = [f"{self.mark(path)} " for path in images]
            return "".join(marks) + self.mark(text)
        unlabeled = {str(number): path for number, path in enumerate(images, 1)}

        def replaced(match: re.Match[str]) -> str:
            path = unlabeled.pop(match[1], None)
            if path is None:
                return match[0]
            return self.mark(path)

        folded = _LABEL.sub(replaced, text)
        marks = [f"{self.mark(path)} " for path in unlabeled.values()]
        return "".join(marks) + folded

    def _images(self, text: str) -> list[Path]:
        found = (self._find(match[0]) for match in _MARK.finditer(text))
        return [kept for kept in found if isinstance(kept, Path)]

    def _find(self, character: str) -> str | Path | None:
        place = ord(character) - _FIRST
        if 0 <= place < len(self._kept):
            return self._kept[place]
        return None


def image_paths(pasted: str, cwd: Path) -> list[Path]:
    """The absolute paths of the images that a pasted text names; empty if it holds anything else.

    Paths are read as terminals write dragged files: quoted, with backslashes, as `file://`
    addresses, or plainly.
    """
    text = pasted.strip()
    if len(text) > _MAX_PASTE:
        return []
    if not text.lower().rstrip("'\"").endswith(_ENDINGS):
        return []
    if "\n" not in text:
        image = _image(text, cwd)
        if image is not None:
            return [image]
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    images: list[Path] = []
    for word in words:
        image = _image(word, cwd)
        if image is None:
            return []
        images.append(image)
    return images


def _image(name: str, cwd: Path) -> Path | None:
    """The absolute path of an image that exists; None if `name` is anything else."""
    if name.startswith("file://"):
        name = unquote(name.removeprefix("file://").removeprefix("localhost"))
    if name.startswith("~/"):
        path = cwd / Path(name).expanduser()
    else:
        path = cwd / name
    try:
        if path.name.lower().endswith(_ENDINGS) and path.is_file():
            return path
        return None
    except (OSError, ValueError):
        return None


def clipboard_image(programs: Programs, environment: Mapping[str, str]) -> Path:
    """Write the image in the clipboard to a private file. Blocks for some seconds at most.

    Raises:
        CodexError: the clipboard has no image, or no program can read it.
    """
    for variable, (name, *words) in _READERS:
        if variable is not None and not environment.get(variable):
            continue
        try:
            program = programs.find(name, environment)
        except FileNotFoundError:
            continue
        image = _printed_image([program, *words], programs.environment(environment))
        return _saved(image)
    raise CodexError(
        "pasting images needs wl-paste, xclip or pngpaste; or paste the path of a file",
        code="clipboard",
    )


def _printed_image(command: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """The image that a command prints. Raises `CodexError` if it prints none."""
    try:
        done = subprocess.run(
            command,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        name = Path(command[0]).name
        message = f"{name} could not be run: {cause(error)}"
        raise CodexError(message, code="clipboard") from error
    if done.returncode or not done.stdout:
        raise CodexError("there is no image in the clipboard", code="clipboard")
    if len(done.stdout) > MAX_IMAGE_BYTES:
        raise CodexError("the image in the clipboard is too large", code="clipboard")
    return done.stdout


def _saved(image: bytes) -> Path:
    """Write an image to a private file, which stays. Raises `CodexError` if that fails."""
    try:
        with tempfile.NamedTemporaryFile(
            prefix="codex-clipboard-", suffix=".png", delete=False
        ) as file:
            file.write(image)
    except OSError as error:
        message = f"the image could not be saved: {cause(error)}"
        raise CodexError(message, code="clipboard") from error
    return Path(file.name)


def editor_command(programs: Programs, environment: Mapping[str, str]) -> list[str]:
    """The words of `$VISUAL`, else of `$EDITOR`, else an installed editor.

    The path of the program is absolute.

    Raises:
        CodexError: the program does not exist, or no editor is installed.
    """
    line = environment.get("VISUAL") or environment.get("EDITOR") or ""
    if not line.strip():
        for name in _EDITORS:
            with suppress(FileNotFoundError):
                return [programs.find(name, environment)]
    try:
        words = shlex.split(line)
    except ValueError:
        words = []
    if not words:
        message = "set VISUAL or EDITOR to the editor that you like"
        raise CodexError(message, code="editor")
    editor, *options = words
    try:
        if "/" in editor and not editor.startswith("/"):
            raise FileNotFoundError(errno.ENOENT, "its path is not absolute")
        return [programs.find(editor, environment), *options]
    except FileNotFoundError as error:
        message = f"there is no editor {editor!r}: {error.strerror}"
        raise CodexError(message, code="editor") from error


def edited(
    command: Sequence[str], text: str, environment: Mapping[str, str], home: Path
) -> str:
    """Let the user edit a text, and wait for the result, without newlines at its end.

    Args:
        home: `$CODEX_HOME`, absolute. The text is below it while it is edited.

    Raises:
        CodexError: the editor could not be run, or failed.
    """
    name = Path(command[0]).name
    try:
        with own_folder(home, "prompt") as folder:
            path = folder / "prompt.md"
            path.write_text(text, encoding="utf-8", errors="replace")
            code = run_in_terminal([*command, str(path)], environment)
            if code != 0:
                how = _ending(code)
                raise CodexError(f"{name} {how}; the text is as it was", code="editor")
            # The editor may leave anything there, such as a link to a file of the kernel.
            written = read_whole(path, _MAX_EDITED_BYTES, root=folder)
            after = written.decode(errors="replace")
            return after.replace("\r\n", "\n").rstrip("\n")
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            reason = error.strerror
        else:
            reason = error
        raise CodexError(f"{name} could not be run: {reason}", code="editor") from error


def _ending(status: int) -> str:
    """The words that say how a process ended, after its name."""
    if status > 0:
        return f"ended with exit code {status}"
    return f"was killed by signal {-status}"
