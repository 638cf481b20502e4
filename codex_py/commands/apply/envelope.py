"""The program that models call as `apply_patch`. Its output is that of Codex CLI 0.169.

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
    if is_option:
        return _apply_argument(RUN_AS_APPLY_PATCH, arguments[1:])
    if len(arguments) > 1:
        return _fail(_USAGE, "Error: apply_patch accepts exactly one argument.\n")
    if arguments:
        return _apply_argument("apply_patch", arguments)
    return _apply_stdin()


def _apply_argument(name: str, values: Sequence[str]) -> int:
    """Apply the patch in the first value. `name`: of the program or option, for errors."""
    try:
        text = os.fsencode(values[0]).decode()
    except (IndexError, UnicodeDecodeError):
        return _fail(_FAILED, f"Error: {name} requires a UTF-8 PATCH argument.\n")
    return _apply_unless_stopped(text)


def _apply_stdin() -> int:
    try:
        text = read_stdin().decode()
    except UnicodeDecodeError:
        return _unreadable_stdin("stream did not contain valid UTF-8")
    except OSError as error:
        return _unreadable_stdin(describe(error))
    except CodexError as error:
        return _unreadable_stdin(str(error))
    if not text:
        return _fail(_USAGE, _USAGE_TEXT)
    return _apply_unless_stopped(text)


def _unreadable_stdin(reason: str) -> int:
    return _fail(_FAILED, f"Error: Failed to read PATCH from stdin.\n{reason}\n")


def _apply_unless_stopped(text: str) -> int:
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
