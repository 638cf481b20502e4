"""Writing a prompt in an editor of the user's own."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.filesystem.ordinary import read_whole
from codex_py.programs import find_program

_MAX_BYTES = 16 * 1024 * 1024


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
            written = read_whole(path, _MAX_BYTES, root=Path(folder)).decode(errors="replace")
            return written.replace("\r\n", "\n").rstrip("\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CodexError(f"{name} could not be run: {reason}", code="editor") from error
