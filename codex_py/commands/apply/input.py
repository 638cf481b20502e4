"""Reads the patch from a file, from standard input, or from the last session."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from codex_py.config.paths import codex_home
from codex_py.errors import CodexError, ExitCode
from codex_py.filesystem.reading import NotOrdinary, refuse_extraordinary
from codex_py.streams.standard import read_all

MAX_BYTES = 512 * 1024 * 1024
"""Longer input is probably endless, and not a patch."""


class PatchInput(NamedTuple):
    data: bytes | str
    source: str
    """The source as shown to people, such as `standard input`."""
    cwd: Path | None = None
    """The absolute folder of the patch's relative paths; None if the source names no folder."""


def patch_input(
    file: str | None,
    cwd: Path,
    environment: Mapping[str, str],
) -> PatchInput:
    """Read the patch.

    Args:
        file: name of the file, or `-` for standard input. None: standard input too, but if that
            is a terminal, the last patch of the last session in `cwd`.
        cwd: absolute.

    Raises:
        CodexError: there is no patch, or it cannot be read.
    """
    if file is not None and file != "-":
        return PatchInput(_read_file(file), file)
    if file == "-" or not os.isatty(0):
        try:
            return PatchInput(read_stdin(), "standard input")
        except OSError as error:
            raise _not_read("from standard input", error.strerror) from error
    patch = patching().last_patch(codex_home(environment), cwd)
    source = f"the last patch of session {patch.thread_id}"
    return PatchInput(patch.text, source, patch.cwd)


def patching():
    """Import the module for sessions and git, which most patches do not need."""
    from codex_py.app import patching  # 25 ms

    return patching


def read_stdin() -> bytes:
    """Read standard input to its end.

    Raises:
        OSError: the input cannot be read.
        CodexError: the input is too long.
    """
    return read_all(0, _refuse_long)


def _read_file(name: str) -> bytes:
    try:
        # The file may be a pipe: `codex-py apply <(git diff)`.
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _refuse_device(fd)
            return read_all(fd, _refuse_long)
        finally:
            os.close(fd)
    except OSError as error:
        raise _not_read(repr(name), error.strerror, ExitCode.USAGE) from error
    except ValueError as error:
        raise _not_read(repr(name), error, ExitCode.USAGE) from error


def _refuse_device(fd: int) -> None:
    """Raise an `OSError` for what has no end or acts when it is read. A terminal may be read."""
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode):
        refuse_extraordinary(found)
        return
    is_device = stat.S_ISBLK(found.st_mode) or stat.S_ISCHR(found.st_mode)
    if is_device and not os.isatty(fd):
        raise NotOrdinary("it is a device")


def _refuse_long(size: int) -> None:
    if size > MAX_BYTES:
        raise CodexError(
            f"the patch is longer than {MAX_BYTES >> 20} MB", code="patch_input"
        )


def _not_read(
    source: str,
    reason: object,
    exit_code: ExitCode | None = None,
) -> CodexError:
    message = f"Failed to read the patch {source}: {reason}"
    return CodexError(message, code="patch_input", exit_code=exit_code)
