"""The program that models call as `apply_patch`. It has the output of Codex CLI 0.169.

It runs if the program is called `apply_patch` or `applypatch` (through a symbolic link to
`codex-py`), and for `codex-py --codex-run-as-apply-patch PATCH`. Unlike in Codex, a patch that
does not fit changes nothing at all, and an applied patch can be undone.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from codex_py.command_line.stopping import Stopped, raise_when_stopped
from codex_py.commands.apply.input import read_stdin
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError, PatchError
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.failures import describe
from codex_py.patch.files.journal import Journal
from codex_py.streams.standard import READER_LEFT, OutputStream

RUN_AS_APPLY_PATCH = "--codex-run-as-apply-patch"

_FAILED = 1
_USAGE = 2
_USAGE_TEXT = "Usage: apply_patch 'PATCH'\n       echo 'PATCH' | apply_patch\n"


def main(arguments: Sequence[str]) -> int:
    """Apply the patch in the command line or in standard input. Returns the exit code."""
    is_option = arguments[:1] == [RUN_AS_APPLY_PATCH]
    if len(arguments) > 1 and not is_option:
        return _fail(_USAGE, "Error: apply_patch accepts exactly one argument.\n")
    try:
        if is_option:
            text = os.fsencode(arguments[1]).decode()
        elif arguments:
            text = os.fsencode(arguments[0]).decode()
        else:
            text = read_stdin().decode()
    except (CodexError, OSError, IndexError, UnicodeDecodeError) as error:
        if arguments:
            if is_option:
                name = RUN_AS_APPLY_PATCH
            else:
                name = "apply_patch"
            return _fail(_FAILED, f"Error: {name} requires a UTF-8 PATCH argument.\n")
        if isinstance(error, OSError):
            reason = describe(error)
        else:
            reason = str(error)
        if isinstance(error, UnicodeDecodeError):
            reason = "stream did not contain valid UTF-8"
        return _fail(_FAILED, f"Error: Failed to read PATCH from stdin.\n{reason}\n")
    if not arguments and not text:
        return _fail(_USAGE, _USAGE_TEXT)
    raise_when_stopped()
    try:
        return _apply(text)
    except Stopped as stopped:
        return stopped.exit_code


def _apply(text: str) -> int:
    try:
        cwd = Path.cwd()
    except OSError as error:
        return _fail(
            _FAILED,
            f"Error: Failed to determine current directory.\n{describe(error)}\n",
        )
    try:
        journal = Journal(codex_home(os.environ), cwd)
    except CodexError:
        # Codex's `apply_patch` does not need a home either.
        journal = None
    try:
        if journal is not None:
            journal.recover()
        plan = plan_patch(text, cwd)
        plan.commit(journal)
    except PatchError as error:
        return _fail(_FAILED, f"{error}\n")
    stdout = OutputStream(1)
    stdout.write_text(plan.summary())
    if stdout.reader_left:
        return READER_LEFT
    if stdout.failure:
        return _FAILED
    return 0


def _fail(code: int, text: str) -> int:
    OutputStream(2).write_text(text)
    return code
