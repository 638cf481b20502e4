"""`codex-py sessions export` and `import`: write conversations to read, and move sessions to other
places, where they continue."""

import os
import shlex
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

from codex_py.api.commands import (
    CodexError,
    Command,
    OneOf,
    UsageError,
    flag,
    frozen,
    option,
    print_out,
    tell,
    working_folder,
)
from codex_py.api.configuration import ConfigOptions, codex_home
from codex_py.api.conversations import saved_conversation
from codex_py.api.files import make_record_folder, open_emptied, written_whole
from codex_py.api.git import repository_root
from codex_py.api.session_files import named_session
from codex_py.extensions.export.forms import FORMS, without_keys, writer_for
from codex_py.extensions.export.portable import export_portable, import_portable


@frozen
class ExportOptions(ConfigOptions):
    session: Annotated[str | None, option()] = None
    last: Annotated[bool, flag("--last")] = False
    format: Annotated[str | None, option("--format", type=OneOf(*FORMS))] = None
    output: Annotated[str | None, option("-o", "--output")] = None
    keep_keys: Annotated[bool, flag("--keep-keys")] = False
    portable: Annotated[bool, flag("--portable")] = False


@frozen
class ImportOptions(ConfigOptions):
    file: Annotated[str | None, option()] = None
    cwd: Annotated[str, option("--cwd")] = "."


def _export(options: ExportOptions, environment: Mapping[str, str]) -> int:
    """Write a conversation to a file or to standard output. Returns the exit code."""
    path = None
    if options.output is not None:
        path = Path(options.output)
    home = codex_home(environment)
    session = named_session(home, options.session, last=options.last)
    code = 0
    notes: list[str] = []
    if options.portable:
        if path is None or options.format or options.keep_keys:
            raise UsageError(
                "--portable goes with -o FILE, with no other form, and without keys"
            )
        with _opened(path) as file:
            notes = export_portable(session, environment, file)
    else:
        write = writer_for(path, options.format)
        document = saved_conversation(session)
        if not options.keep_keys:
            document, notes = without_keys(document, environment, home)
        code = _written(write(document), path)
    for note in notes:
        tell(note)
    return code


def _written(parts: Iterable[str], path: Path | None) -> int:
    """Write a text to a file, or to standard output if it is None. Returns the exit code."""
    if path is None:
        return print_out("".join(parts))
    with _opened(path) as file:
        file.writelines(part.encode(errors="replace") for part in parts)
    return 0


def _import(options: ImportOptions, environment: Mapping[str, str]) -> int:
    """Put a portable session into the home. Returns the exit code."""
    if options.file is None:
        raise UsageError("say which file: codex-py sessions import FILE")
    source = Path(options.file).absolute()
    cwd = working_folder(options.cwd)
    home = codex_home(environment)
    found = import_portable(source, cwd, home, environment)
    if found.thread_id != found.exported_id:
        tell(f"Session {found.exported_id} is here already; this is a copy of it.")
    if found.used_name:
        tell(
            f"The name {found.used_name!r} is in use here: the imported session has none."
        )
    if found.patch:
        patch = _imports(home) / f"{found.thread_id}.diff"
        with _opened(patch) as file:
            file.write(found.patch.encode(errors="surrogateescape"))
        # The names in the patch are relative to the root of the repository.
        root = repository_root(cwd) or cwd
        command = shlex.join(["codex-py", "apply", "-C", str(root), str(patch)])
        tell(f"It brought changes of files. To apply them: {command}")
    return print_out(f"Imported session {found.thread_id}.\n")


def _imports(home: Path) -> Path:
    try:
        return make_record_folder(home, "imports")
    except OSError as error:
        text = f"the changes of files cannot be kept: {error.strerror}"
        raise CodexError(text, code="export") from error


@contextmanager
def _opened(path: Path) -> Generator[BinaryIO]:
    """Open a private file for writing. It replaces an old file only if everything was written."""
    try:
        is_own = path.is_file() and path.stat().st_uid == os.geteuid()
        is_replaceable = is_own or not path.exists()
        if is_replaceable and not path.is_symlink():
            opened = written_whole(path)
        else:
            # A link, a pipe or a file of somebody else stays what it is.
            opened = os.fdopen(open_emptied(path), "wb")
        with opened as file:
            yield file
    except OSError as error:
        raise CodexError(f"cannot write {str(path)!r}: {error.strerror}") from error


export_command = Command(_export, options=ExportOptions)
import_command = Command(_import, options=ImportOptions)
