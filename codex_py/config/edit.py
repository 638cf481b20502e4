"""Change the user's `config.toml` as a person would: what is not meant stays, byte for byte."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from codex_py.config.files import locked, parse_toml, read_text, replace_text
from codex_py.errors import ConfigError
from codex_py.filesystem.own import make_private

Edit: TypeAlias = Callable[[str], str]
"""The text of a file, changed. ConfigError where it does not know how."""


def edit_config(home: Path, change: Callable[[str, Path], str]) -> None:
    """Put what `change` makes of the text of `config.toml`, given also its path, in the text's place.

    The file is replaced as a whole or not at all, keeps its mode, and stays a link if it is one;
    programs that do this at the same time take turns.

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
                # A byte order mark was taken off in reading and is not missed.
                replace_text(path, changed)
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the path is not UTF-8"
        raise ConfigError(f"{home / 'config.toml'} cannot be written: {reason}") from error


def first_that_fits(
    text: str, path: Path, aim: Mapping[str, Any], edits: Iterable[Edit]
) -> str | None:
    """What the first edit makes of the text that has the values of `aim` then; None if none does.

    Not every spelling of TOML survives every edit, so none of them is trusted.
    """
    for edit in edits:
        with suppress(ConfigError):
            changed = edit(text)
            if parse_toml(changed, path) == aim:
                return changed
    return None


def appended(text: str, table: str) -> str:
    """The text with a table, whose lines end in `\\n`, at its end."""
    newline = newline_of(text)
    gap = ("" if text.endswith("\n") else newline) + newline if text else ""
    return text + gap + table.replace("\n", newline)


def edited_values(text: str, change: Callable[[Any], None]) -> str:
    """The text after `change` has been done to its document, which works as a dict does.

    Raises:
        ConfigError: it cannot be done to this document.
    """
    # 75 ms, for those edits that are not a matter of whole tables.
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document = tomlkit.parse(text)
        change(document)
        changed = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigError(str(error)) from error
    if text.count("\r\n") == text.count("\n"):
        changed = changed.replace("\r\n", "\n").replace("\n", "\r\n")
    return changed


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
