"""Work out what a patch does, and do it.

    plan = plan_patch(text, cwd, writable)   # everything is checked, nothing is written
    plan.commit()                            # everything is written, or nothing
    print(plan.summary())

Sections take effect in order: a later one sees what an earlier one made.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from codex_py.errors import PatchError
from codex_py.patch.envelope.edit import Edit, edit_text
from codex_py.patch.envelope.reader import AddFile, DeleteFile, Section, UpdateFile, parse_patch
from codex_py.patch.explain import joined
from codex_py.patch.failures import file_error
from codex_py.patch.files.handles import Directories
from codex_py.patch.files.tree import Overlay
from codex_py.patch.names import refuse_long
from codex_py.patch.plan import PatchPlan
from codex_py.patch.report import HunkReport


def plan_patch(
    text: str,
    cwd: Path,
    writable: Callable[[str], bool] | None,
    *,
    readable: Callable[[str], bool] | None = None,
    unambiguous: bool = False,
) -> PatchPlan:
    """Read a patch and check all of it against the files. Nothing is written.

    Args:
        text: the patch, as `parse_patch` takes it.
        cwd: absolute; relative paths in the patch are joined to it.
        writable: says of a real, absolute path whether it may be written; None allows everything.
        readable: the same of reading. It is asked before a file is opened, and what it refuses ends it.
        unambiguous: refuse a hunk whose old lines fit several places, instead of taking the first.

    Raises:
        PatchError: the message begins as that of Codex does, and goes on to help.
    """
    sections = parse_patch(text)
    if not sections:
        raise PatchError("No files were modified.", kind="empty")
    failures: list[PatchError] = []
    with Directories() as handles:
        planner = _Planner(Overlay(cwd, handles, readable))
        for section in sections:
            try:
                planner.plan(section)
            except PatchError as error:
                if error.kind == "refused":
                    raise
                failures.append(error)
    if failures:
        raise PatchError(joined([error.reason for error in failures]), kind=failures[0].kind)
    several = [told for report in planner.reports if (told := report.ambiguity())]
    if unambiguous and several:
        raise PatchError(joined(several), kind="match")
    named = [_named(section) for section in sections]
    overlay = planner.overlay
    plan = PatchPlan(
        overlay.touched, named, planner.notes, planner.reports, only_read=overlay.only_read
    )
    return plan.checked(writable)


def _named(section: Section) -> tuple[Literal["A", "M", "D"], str]:
    match section:
        case AddFile(path):
            return "A", path
        case DeleteFile(path):
            return "D", path
        case UpdateFile(path, move_to):
            return "M", move_to or path


class _Planner:
    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay
        self.notes: list[str] = []
        self.reports: list[HunkReport] = []
        self._failed: set[str] = set()
        """Files whose later sections cannot be judged."""

    def plan(self, section: Section) -> None:
        if "\0" in section.path or (
            isinstance(section, UpdateFile) and "\0" in (section.move_to or "")
        ):
            raise PatchError(f"path {section.path!r} has a NUL in it", kind="file")
        refuse_long(section.path)
        if isinstance(section, UpdateFile) and section.move_to:
            refuse_long(section.move_to)
        path = self.overlay.absolute(section.path)
        # The working directory can be what is too long.
        refuse_long(path)
        if path in self._failed:
            return
        try:
            match section:
                case AddFile():
                    self._add(path, section)
                case DeleteFile():
                    self._delete(path)
                case UpdateFile():
                    self._update(path, section)
        except PatchError:
            self._failed.add(path)
            raise

    def _add(self, path: str, section: AddFile) -> None:
        try:
            self.overlay.write(path, section.content.encode(), added=True)
        except OSError as error:
            raise file_error("write file", path, error) from error

    def _delete(self, path: str) -> None:
        try:
            self.overlay.remove(path)
        except OSError as error:
            raise file_error("delete file", path, error) from error

    def _update(self, path: str, section: UpdateFile) -> None:
        try:
            old = self.overlay.read(path)
        except OSError as error:
            raise file_error("read file to update", path, error) from error
        new, edit = _edited(old, path, section)
        self.notes += edit.notes
        self.reports += edit.reports
        destination = self.overlay.absolute(section.move_to) if section.move_to else path
        try:
            if section.move_to:
                self.overlay.move(path, destination, new)
            else:
                self.overlay.write(path, new)
        except OSError as error:
            raise file_error("write file", destination, error) from error


def _edited(old: bytes, path: str, section: UpdateFile) -> tuple[bytes, Edit]:
    try:
        edit = edit_text(old.decode(), section.hunks, path)
    except UnicodeDecodeError as error:
        return _edited_as_ascii(old, path, section, error)
    return edit.text.encode(), edit


def _edited_as_ascii(
    old: bytes, path: str, section: UpdateFile, cause: UnicodeDecodeError
) -> tuple[bytes, Edit]:
    """In any encoding that extends ASCII, lines of ASCII can give way to lines of ASCII."""
    unreadable = f"Failed to read file to update {path}: {_decoding_cause(cause)}"
    touched = [line for hunk in section.hunks for line in (*hunk.old_lines, *hunk.new_lines)]
    if not all(line.isascii() for line in touched):
        raise PatchError(unreadable, kind="file") from cause
    try:
        edit = edit_text(old.decode(errors="surrogateescape"), section.hunks, path)
    except PatchError as error:
        raise PatchError(f"{unreadable}\n{error.reason}", kind="file") from error
    return edit.text.encode(errors="surrogateescape"), edit


def _decoding_cause(error: UnicodeDecodeError) -> str:
    if error.reason == "unexpected end of data":
        return f"incomplete utf-8 byte sequence from index {error.start}"
    return f"invalid utf-8 sequence of {error.end - error.start} bytes from index {error.start}"
