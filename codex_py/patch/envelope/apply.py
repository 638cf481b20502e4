"""Plan a patch in the envelope format of Codex's `apply_patch`.

    plan = plan_patch(text, cwd)             # everything is checked, nothing is written
    plan.commit()                            # everything is written, or nothing
    print(plan.summary())

Sections take effect in order: a later one sees the files as an earlier one left them.
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from codex_py.errors import PatchError
from codex_py.patch.diff.names import refuse_long
from codex_py.patch.envelope.edit import edit_text
from codex_py.patch.envelope.reader import (
    AddFile,
    DeleteFile,
    Section,
    UpdateFile,
    parse_patch,
)
from codex_py.patch.files.failures import failing_to
from codex_py.patch.files.handles import Directories
from codex_py.patch.files.tree import EnvelopeTree
from codex_py.patch.match import Level
from codex_py.patch.plan import PatchPlan, Planner
from codex_py.patch.report import Findings, HunkReport, joined


def plan_patch(
    text: str,
    cwd: Path,
    *,
    readable: Callable[[str], bool] | None = None,
    unambiguous: bool = False,
    texts: Mapping[str, bytes] = MappingProxyType({}),
) -> PatchPlan:
    """Read a patch and check all of it against the files. Nothing is written.

    Args:
        text: the patch, as `parse_patch` takes it.
        cwd: absolute; relative paths in the patch are joined to it.
        readable: tells whether a real, absolute path may be read; None allows everything. It is
            asked before a file is opened, and a refusal ends the planning.
        unambiguous: refuse a hunk whose old lines fit several places, instead of taking the first.
        texts: contents of files, by real path, that are newer than those on disk. Write them with
            `PatchPlan.save`, and plan again, before you commit.

    Raises:
        PatchError: the message begins like that of Codex, and adds help.
    """
    sections = parse_patch(text)
    if not sections:
        raise PatchError("No files were modified.", kind="empty")
    findings = Findings()
    with Directories() as handles:
        overlay = EnvelopeTree(cwd, handles, readable, texts)
        planner = _Planner(overlay, findings)
        planner.run(sections)
    findings.raise_failures()
    if unambiguous:
        told = [report.ambiguity() for report in findings.hunks]
        several = [sentence for sentence in told if sentence is not None]
        if several:
            raise PatchError(joined(several), kind="match")
    for report in findings.hunks:
        note = report.note()
        # A model could not do better where only blanks at the ends of lines differ.
        is_harmless = report.level == Level.TRAILING_BLANKS and not report.also_at
        if note is not None and not is_harmless:
            findings.notes.append(note)
    return PatchPlan(
        overlay.touched, planner.named, findings, only_read=overlay.only_read
    )


class _Planner(Planner[Section]):
    def __init__(self, overlay: EnvelopeTree, findings: Findings) -> None:
        super().__init__(findings)
        self._overlay = overlay

    def _paths(self, part: Section) -> Collection[str]:
        names = [part.path]
        if isinstance(part, UpdateFile) and part.move_to:
            names.append(part.move_to)
        for name in names:
            if "\0" in name:
                raise PatchError(f"path {name!r} has a NUL in it", kind="file")
            refuse_long(name)
        path = self._overlay.absolute(part.path)
        # Joined to the working directory, it may be too long after all.
        refuse_long(path)
        return (path,)

    def _plan(self, part: Section) -> None:
        path = self._overlay.absolute(part.path)
        match part:
            case AddFile(shown, content):
                with failing_to("write file", path):
                    self._overlay.write(path, content.encode(), added=True)
                self.named.append(("A", shown))
            case DeleteFile(shown):
                with failing_to("delete file", path):
                    self._overlay.remove(path)
                self.named.append(("D", shown))
            case UpdateFile(shown, move_to):
                self._update(path, part)
                self.named.append(("M", move_to or shown))

    def _reject(self, _part: Section, error: PatchError, /) -> None:
        if error.kind == "refused":
            raise error
        self.findings.failures.append(error)

    def _update(self, path: str, section: UpdateFile) -> None:
        with failing_to("read file to update", path):
            old = self._overlay.read(path)
        new, reports = _edited(old, path, section)
        self.findings.hunks += reports
        if section.move_to:
            destination = self._overlay.absolute(section.move_to)
        else:
            destination = path
        with failing_to("write file", destination):
            if section.move_to:
                self._overlay.move(path, destination, new)
            else:
                self._overlay.write(path, new)


def _edited(
    old: bytes,
    path: str,
    section: UpdateFile,
) -> tuple[bytes, list[HunkReport]]:
    """Apply the hunks of a section to the contents of its file."""
    not_utf8 = ""
    try:
        text = old.decode()
    except UnicodeDecodeError as error:
        not_utf8 = f"Failed to read file to update {path}: {_bad_sequence(error)}"
        if not _is_ascii(section):
            raise PatchError(not_utf8, kind="file") from error
        # In any encoding that extends ASCII, lines of ASCII can be replaced by lines of ASCII.
        text = old.decode(errors="surrogateescape")
    try:
        text, reports = edit_text(text, section.hunks, path)
    except PatchError as error:
        if not_utf8:
            raise PatchError(f"{not_utf8}\n{error.reason}", kind="file") from error
        raise
    return text.encode(errors="surrogateescape"), reports


def _bad_sequence(error: UnicodeDecodeError) -> str:
    """Describe the bytes that are not UTF-8, in the words of Rust's standard library."""
    if error.reason == "unexpected end of data":
        what = "incomplete utf-8 byte sequence"
    else:
        what = f"invalid utf-8 sequence of {error.end - error.start} bytes"
    return f"{what} from index {error.start}"


def _is_ascii(section: UpdateFile) -> bool:
    for hunk in section.hunks:
        lines = (*hunk.old_lines, *hunk.new_lines)
        if not all(line.isascii() for line in lines):
            return False
    return True
