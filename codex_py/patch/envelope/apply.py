"""Work out what a patch does, and do it.

    plan = plan_patch(text, cwd)             # everything is checked, nothing is written
    plan.commit()                            # everything is written, or nothing
    print(plan.summary())

Sections take effect in order: a later one sees what an earlier one made.
"""

from collections.abc import Callable, Collection
from pathlib import Path

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
) -> PatchPlan:
    """Read a patch and check all of it against the files. Nothing is written.

    Args:
        text: the patch, as `parse_patch` takes it.
        cwd: absolute; relative paths in the patch are joined to it.
        readable: tells whether a real, absolute path may be read; None allows everything. It is
            asked before a file is opened, and a refusal ends the planning.
        unambiguous: refuse a hunk whose old lines fit several places, instead of taking the first.

    Raises:
        PatchError: the message begins like that of Codex, and adds help.
    """
    sections = parse_patch(text)
    if not sections:
        raise PatchError("No files were modified.", kind="empty")
    findings = Findings()
    with Directories() as handles:
        overlay = EnvelopeTree(cwd, handles, readable)
        planner = _Planner(overlay, findings)
        planner.run(sections)
    findings.raise_failures()
    several = [told for report in findings.hunks if (told := report.ambiguity())]
    if unambiguous and several:
        raise PatchError(joined(several), kind="match")
    for report in findings.hunks:
        # A model could not do better where only blanks at the ends of lines differ.
        if report.level != Level.TRAILING_BLANKS or report.also_at:
            findings.notes += filter(None, [report.note()])
    return PatchPlan(
        overlay.touched, planner.named, findings, only_read=overlay.only_read
    )


class _Planner(Planner[Section]):
    def __init__(self, overlay: EnvelopeTree, findings: Findings) -> None:
        super().__init__(findings)
        self._overlay = overlay

    def _paths(self, part: Section) -> Collection[str]:
        if isinstance(part, UpdateFile):
            move_to = part.move_to
        else:
            move_to = None
        for name in (part.path, move_to or ""):
            if "\0" in name:
                raise PatchError(f"path {name!r} has a NUL in it", kind="file")
            refuse_long(name)
        path = self._overlay.absolute(part.path)
        # The working directory may make it too long.
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
    old: bytes, path: str, section: UpdateFile
) -> tuple[bytes, list[HunkReport]]:
    unreadable = ""
    try:
        text = old.decode()
    except UnicodeDecodeError as error:
        what = f"invalid utf-8 sequence of {error.end - error.start} bytes"
        if error.reason == "unexpected end of data":
            what = "incomplete utf-8 byte sequence"
        unreadable = (
            f"Failed to read file to update {path}: {what} from index {error.start}"
        )
        touched = [
            line
            for hunk in section.hunks
            for line in (*hunk.old_lines, *hunk.new_lines)
        ]
        if not all(line.isascii() for line in touched):
            raise PatchError(unreadable, kind="file") from error
        # In any encoding that extends ASCII, lines of ASCII can be replaced by lines of ASCII.
        text = old.decode(errors="surrogateescape")
    try:
        text, reports = edit_text(text, section.hunks, path)
    except PatchError as error:
        if unreadable:
            raise PatchError(f"{unreadable}\n{error.reason}", kind="file") from error
        raise
    return text.encode(errors="surrogateescape"), reports
