"""Changes the user's `config.toml`; everything else in it stays as it is, byte for byte."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from codex_py.config.files import locked, parse_toml, read_text, replace_text
from codex_py.errors import ConfigError
from codex_py.filesystem.own import make_private

Edit: TypeAlias = Callable[[str], str]
"""Returns the changed text of a file. Raises ConfigError if it cannot change this text."""


def edit_config(home: Path, change: Callable[[str, Path], str]) -> None:
    """Replace the text of `config.toml` by the result of `change`, which gets the text and the path.

    The file is replaced as a whole or not at all, keeps its mode, and stays a link if it is one.
    Programs that do this at the same time take turns.

    Raises:
        ConfigError: the file cannot be read or written, or `change` raises it; it is then unchanged.
    """
    try:
        make_private(home)
        with locked(home):
            path = Path(os.path.realpath(home / "config.toml"))
            text = read_text(path) or ""
            changed = change(text, path)
            if changed != text:
                # Without the byte order mark, which reading removed.
                replace_text(path, changed)
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the path is not UTF-8"
        raise ConfigError(f"{home / 'config.toml'} cannot be written: {reason}") from error


def first_that_fits(
    text: str, path: Path, aim: Mapping[str, Any], edits: Iterable[Edit]
) -> str | None:
    """Apply the edits one at a time; return the first result that parses to `aim`, or None.

    No edit works for every spelling of TOML, so each result is checked.
    """
    for edit in edits:
        with suppress(ConfigError):
            changed = edit(text)
            if parse_toml(changed, path) == aim:
                return changed
    return None


def appended(text: str, table: str) -> str:
    """The text with a table at its end; the lines of the table end in `\\n`."""
    newline = newline_of(text)
    gap = ("" if text.endswith("\n") else newline) + newline if text else ""
    return text + gap + table.replace("\n", newline)


def edited_values(text: str, change: Callable[[Any], None]) -> str:
    """The text after `change` was applied to its document, which works like a dict.

    Raises:
        ConfigError: this document cannot be changed that way.
    """
    # 75 ms, only for edits of values inside a table.
    import tomlkit.exceptions  # noqa: PLC0415

    try:
        document = tomlkit.parse(text)
        change(document)
        changed = tomlkit.dumps(document)
    except tomlkit.exceptions.TOMLKitError as error:
        raise ConfigError(str(error)) from error
    if text.count("\r\n") == text.count("\n"):
        changed = changed.replace("\r\n", "\n").replace("\n", "\r\n")
    return changed


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
