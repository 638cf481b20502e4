"""Reads and replaces configuration files; each error is one sentence for the user."""

import os
import re
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from codex_py.errors import ConfigError
from codex_py.filesystem.private import written_whole
from codex_py.filesystem.reading import Refusal, read_whole
from codex_py.filesystem.texts import decode_text

_MAX_DEPTH = 64
"""The depth of nested tables and arrays: more than a person writes, less than Python's stack
allows."""

_MAX_BYTES = 4 * 1024 * 1024
"""The size of one file: more than a person writes, little enough to parse at once."""

LOCK_TIMEOUT_S = 10.0
"""The wait for a lock. Its holder replaces a file, which takes a few milliseconds."""

_QUOTED = re.compile(
    r""""{3}(?:\\.|[^\\])*?(?:"{3}|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|#[^\n]*""",
    re.DOTALL,
)
"""Strings and comments. One without an end extends to the end of the text, so that no character is
looked at twice."""
_EXCERPT_CHARACTERS = 60
_POSITION = re.compile(
    r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)\Z", re.DOTALL
)


def read_text(
    path: Path,
    *,
    root: Path | None = None,
    max_bytes: int = _MAX_BYTES,
    refuses: Refusal | None = None,
) -> str | None:
    """The text of a file, without a byte order mark; None if the file does not exist.

    Line ends are not changed.

    Args:
        root, refuses: see `open_ordinary`.

    Raises:
        ConfigError: it is not a regular file, it cannot be read, or it is not text.
    """
    try:
        return decode_text(read_whole(path, max_bytes, root=root, refuses=refuses))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            reason = error.strerror
        else:
            reason = error
        raise ConfigError(f"{path} cannot be read: {reason}") from error


@contextmanager
def as_config_error(path: Path, fault: str) -> Generator[None]:
    """Turn an error of the system into a `ConfigError`: `{path} cannot be {fault}: …`.

    Args:
        fault: a participle such as `written`.
    """
    try:
        yield
    except (OSError, UnicodeEncodeError) as error:
        if isinstance(error, OSError):
            reason = error.strerror
        else:
            reason = "the path is not UTF-8"
        raise ConfigError(f"{path} cannot be {fault}: {reason}") from error


def replace_text(
    path: Path,
    text: str,
    *,
    private: bool = False,
) -> None:
    """Replace a file as a whole or not at all.

    A new file is private to the user. An existing one keeps its mode, unless `private` is set.

    Raises:
        OSError, UnicodeEncodeError: the file is unchanged.
    """
    data = text.encode()
    if path.exists() and not private:
        mode = path.stat().st_mode & 0o7777
    else:
        mode = 0o600
    with written_whole(path) as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def require_small(text: str, path: Path) -> None:
    """Raise a `ConfigError` if a file with this text could not be read again."""
    size = len(text.encode(errors="replace"))
    if size > _MAX_BYTES:
        raise ConfigError(
            f"{path} cannot be written: {size:,} bytes are more than {_MAX_BYTES:,}"
        )


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Parse the text of a file. The message of a `ConfigError` has the path, line and column."""
    # Refuse long dotted keys before parsing, which takes time in proportion to the square of their
    # length.
    unquoted_lines = _QUOTED.sub("", text).split("\n")
    if any(line.count(".") > _MAX_DEPTH for line in unquoted_lines):
        raise _too_deep(str(path))
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise _too_deep(str(path)) from error
    except ValueError as error:
        from codex_py.config.toml_errors import explained  # 1 ms

        message, line, column = _located(str(error), text)
        message = explained(message, text, line, column)
        where = f"{path}:{line}:{column}"
        raise ConfigError(
            f"Error loading config.toml: {where}: {message}{_excerpt(text, line)}"
        ) from error
    require_shallow(values, str(path))
    return values


def require_shallow(value: Any, source: str) -> None:
    """Raise a `ConfigError` if tables and arrays are nested too deeply to be walked recursively."""
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        # One level at a time and without recursion: a dotted key nests as deep as it is long.
        below: list[Any] = []
        for outer in level:
            if isinstance(outer, list):
                below += cast("list[Any]", outer)
            elif isinstance(outer, dict):
                below += cast("dict[str, Any]", outer).values()
        if not below:
            return
        level = below
    raise _too_deep(source)


def _too_deep(source: str) -> ConfigError:
    return ConfigError(
        f"Error loading config.toml: {source}: more than {_MAX_DEPTH} tables and arrays"
        " inside each other"
    )


def _excerpt(text: str, number: int) -> str:
    """Quote the key on a line, else the whole line. The value is left out: it may be a secret."""
    lines = text.split("\n")
    line = lines[min(number, len(lines)) - 1]
    key, equals, _ = line.partition("=")
    shown = key.strip()[:_EXCERPT_CHARACTERS]
    if shown and equals:
        return f" in `{shown} = …`"
    if shown:
        return f" in `{shown}`"
    return ""


def _located(message: str, text: str) -> tuple[str, int, int]:
    """Parse message, line and column from an error of `tomllib`, which has them only as text."""
    found = _POSITION.match(message)
    if found is None:
        return message, 1, 1
    reason, line, column = found.groups()
    if line is None:
        # The error is at the end of the document.
        last_line = text.count("\n") + 1
        return reason, last_line, len(text) - text.rfind("\n")
    return reason, int(line), int(column)
