"""Read a patch: the text between `*** Begin Patch` and `*** End Patch`.

The language is that of Codex's `apply_patch`, with its error messages. Texts that Codex refuses and that
can mean only one thing are read as well: several `@@` lines in a row, blank lines between sections, and
fences or prose around the patch.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, Self, TypeAlias

from codex_py.errors import PatchError
from codex_py.patch.lines import BLANK, BOM

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_END_OF_FILE = "*** End of File"
_ENVIRONMENT = "*** Environment ID:"
_ADD = "*** Add File: "
_DELETE = "*** Delete File: "
_UPDATE = "*** Update File: "
_MOVE = "*** Move to: "

_HEREDOC_STARTS = {"<<EOF", "<<'EOF'", '<<"EOF"'}
_NO_LINE_OF_A_HUNK = re.compile("[^-+ ]")
"""The first character of a line that cannot be in a hunk."""
_NO_ADDED_LINE = re.compile("[^+]")
_LOOKS_LIKE_PATCH = ("*** ", "@@", "-", "+")
_QUOTED_SCRIPT = r"\s-l?c\s+[\"']"


class AddFile(NamedTuple):
    path: str
    """The path as written in the patch, like every path here."""
    content: str
    """Empty, or lines that each end in LF."""


class DeleteFile(NamedTuple):
    path: str


class Hunk(NamedTuple):
    """A hunk of an update section. Its lists grow while it is read."""

    line: int
    """The line of the patch where it begins, from 1."""
    headers: list[str]
    """The texts after `@@`, each a line to be found before the next."""
    old_lines: list[str]
    """Context and removed lines, without terminators."""
    new_lines: list[str]
    """Context and added lines, without terminators."""
    context: list[tuple[int, int]]
    """The indices of each context line in `old_lines` and in `new_lines`."""
    end_of_file: bool = False
    """True if the old lines must be the last ones of the file."""

    @classmethod
    def without_lines(cls, line: int) -> Self:
        return cls(line, [], [], [], [])

    @property
    def empty(self) -> bool:
        return not self.old_lines and not self.new_lines

    def add(self, lines: Sequence[str]) -> None:
        """Add lines of context, added lines and removed lines; an empty line is context."""
        old_at = len(self.old_lines)
        new_at = len(self.new_lines)
        for line in lines:
            mark = line[:1]
            if mark == "-":
                old_at += 1
            elif mark == "+":
                new_at += 1
            else:
                self.context.append((old_at, new_at))
                old_at += 1
                new_at += 1
        old = [line[1:] for line in lines if line[:1] != "+"]
        new = [line[1:] for line in lines if line[:1] != "-"]
        self.old_lines.extend(old)
        self.new_lines.extend(new)


class UpdateFile(NamedTuple):
    path: str
    move_to: str | None
    hunks: tuple[Hunk, ...]


Section: TypeAlias = AddFile | DeleteFile | UpdateFile


def parse_patch(text: str) -> tuple[Section, ...]:
    """Read the sections of a patch, in order; there may be none.

    Raises:
        PatchError: of kind `parse`, in the words of Codex.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _invalid("the patch is not valid Unicode text") from error
    return _Parser(_envelope(text)).sections()


def is_enveloped(text: str) -> bool:
    """True if the text is a patch and nothing else, going by its first and last lines."""
    lines = _split(text)
    return _boundary_error(_without_heredoc(lines)) is None


def _invalid(reason: str, line: int | None = None) -> PatchError:
    return PatchError(reason, kind="parse", line=line)


def _split(text: str) -> list[str]:
    lines = text.strip(BLANK).split("\n")
    if "\r" in text:
        return [line.rstrip("\r") for line in lines]
    return lines


def _boundary_error(lines: Sequence[str]) -> PatchError | None:
    """Check the first and the last line; None if both are markers."""
    is_empty = len(lines) == 1 and not lines[0]
    if not is_empty and lines[0].strip(BLANK) != BEGIN:
        return _invalid(f"The first line of the patch must be '{BEGIN}'")
    if lines[-1].strip(BLANK) != _END:
        return _invalid(f"The last line of the patch must be '{_END}'")
    return None


def _envelope(text: str) -> list[str]:
    """Cut out the lines from the first marker to the last, without CRs at their ends."""
    lines = _split(text.strip(BLANK).removeprefix(BOM))
    inner = _without_heredoc(lines)
    error = _boundary_error(inner)
    if error is None:
        return inner
    found = _among_other_text(lines)
    if found is None:
        raise error
    return found


def _without_heredoc(lines: list[str]) -> list[str]:
    if len(lines) < 4:
        return lines
    begins = lines[0] in _HEREDOC_STARTS
    ends = lines[-1].endswith("EOF")
    if begins and ends:
        return lines[1:-1]
    return lines


def _among_other_text(lines: Sequence[str]) -> list[str] | None:
    """Find the only patch in a longer text; None if it is not certain that there is one alone."""
    bare = [line.rstrip(BLANK) for line in lines]
    if bare.count(BEGIN) != 1 or bare.count(_END) != 1:
        return None
    begin = bare.index(BEGIN)
    end = bare.index(_END)
    around = [*bare[:begin], *bare[end + 1 :]]
    if begin > end or any(line.startswith(_LOOKS_LIKE_PATCH) for line in around):
        return None
    # A quoted script has escapes in it that are not ours to undo.
    before = bare[:begin]
    if any(re.search(_QUOTED_SCRIPT, line) for line in before):
        return None
    return list(lines[begin : end + 1])


class _Parser:
    """Reads the sections between the first marker and the last."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._marks = "".join([line[:1] or " " for line in lines])
        """The first character of each line, so that one search finds the end of a hunk."""
        self._at = 1
        """Index of the line to be read next; the first marker is line 0."""

    def sections(self) -> tuple[Section, ...]:
        self._environment()
        sections: list[Section] = []
        while not self._ends():
            line = self._lines[self._at].strip(BLANK)
            self._at += 1
            path = _path(line, _ADD)
            if path:
                sections.append(AddFile(path, self._added()))
            elif path := _path(line, _DELETE):
                sections.append(DeleteFile(path))
            elif path := _path(line, _UPDATE):
                sections.append(self._update(path))
            elif line:
                raise self._bad_header(self._at)
        # The first end marker may be followed by blank lines and a last marker.
        after = self._lines[self._at + 1 : -1]
        if any(line.strip(BLANK) for line in after):
            raise _invalid(f"The last line of the patch must be '{_END}'")
        return tuple(sections)

    def _ends(self) -> bool:
        """True if the next line is an end marker."""
        return self._lines[self._at].strip(BLANK) == _END

    def _environment(self) -> None:
        """Skip the line that names an environment, because this program has only one."""
        while True:
            line = self._lines[self._at].strip(BLANK)
            if not line.startswith(_ENVIRONMENT):
                return
            if self._at > 1:
                raise _invalid(
                    "apply_patch environment_id cannot be specified more than once"
                )
            if line == _ENVIRONMENT:
                raise _invalid("apply_patch environment_id cannot be empty")
            self._at += 1

    def _bad_header(self, number: int) -> PatchError:
        line = self._lines[number - 1].strip(BLANK)
        return _invalid(
            f"'{line}' is not a valid hunk header. Valid hunk headers: "
            f"'{_ADD}{{path}}', '{_DELETE}{{path}}', '{_UPDATE}{{path}}'",
            number,
        )

    def _added(self) -> str:
        """Read the contents of a new file. Blank lines may follow them."""
        content: list[str] = []
        blank_line: int | None = None
        while not self._ends():
            added = self._run(_NO_ADDED_LINE)
            if added:
                if blank_line is not None:
                    # It is not certain that a blank line in the middle is an added line without
                    # its mark.
                    raise self._bad_header(blank_line)
                content += [line[1:] for line in added]
                continue
            if self._lines[self._at].strip(BLANK):
                break
            if blank_line is None:
                blank_line = self._at + 1
            self._at += 1
        return "".join([line + "\n" for line in content])

    def _update(self, path: str) -> UpdateFile:
        """Read an update section after its first line."""
        header = self._at
        # This cannot run past the end: the last line is another marker.
        while self._lines[self._at].rstrip(BLANK) == _END_OF_FILE:
            self._at += 1
        line = self._lines[self._at].rstrip(BLANK)
        move_to = _path(line, _MOVE)
        if move_to:
            self._at += 1
        hunks = self._hunks()
        if not hunks:
            raise _invalid(f"Update file hunk for path '{path}' is empty", header)
        if hunks[-1].empty:
            if self._ends():
                raise _invalid("Update hunk does not contain any lines", self._at + 1)
            line = self._lines[self._at].rstrip(BLANK)
            raise self._unexpected(self._at + 1, line)
        return UpdateFile(path, move_to, tuple(hunks))

    def _hunks(self) -> list[Hunk]:
        hunks: list[Hunk] = []
        while not self._update_ends():
            if hunks and not hunks[-1].end_of_file:
                lines = self._run(_NO_LINE_OF_A_HUNK)
                if lines:
                    hunks[-1].add(lines)
                    continue
            self._at += 1
            self._hunk_line(self._lines[self._at - 1], hunks)
        return hunks

    def _update_ends(self) -> bool:
        # Indented markers are context lines here, except the end marker on the very last line.
        if self._at == len(self._lines) - 1:
            return True
        if self._marks[self._at] != "*":
            return False
        line = self._lines[self._at].rstrip(BLANK)
        if line == _END:
            return True
        return any(_path(line, header) for header in (_ADD, _DELETE, _UPDATE))

    def _run(self, end: re.Pattern[str]) -> list[str]:
        """Take the lines up to one whose first character matches `end`; the last line is never taken."""
        start = self._at
        last = len(self._lines) - 1
        found = end.search(self._marks, start, last)
        if found is None:
            self._at = last
        else:
            self._at = found.start()
        return self._lines[start : self._at]

    def _hunk_line(self, line: str, hunks: list[Hunk]) -> None:
        """Add one line to the last hunk, or to a new one."""
        bare = line.rstrip(BLANK)
        last = hunks[-1] if hunks else None
        if bare == "@@" or bare.startswith("@@ "):
            if last is None or not last.empty:
                last = Hunk.without_lines(self._at)
                hunks.append(last)
            header = bare[3:]
            if header:
                last.headers.append(header)
        elif last is not None and last.end_of_file:
            if bare:
                raise self._no_marker(line)
        elif bare == _END_OF_FILE:
            if last is None:
                return
            if last.empty:
                raise _invalid("Update hunk does not contain any lines", self._at)
            hunks[-1] = last._replace(end_of_file=True)
        else:
            # The first hunk needs no `@@` line.
            hunk = last or Hunk.without_lines(self._at)
            if line[:1] not in "-+ ":
                if hunk.empty:
                    raise self._unexpected(self._at, line)
                raise self._no_marker(line)
            hunk.add([line])
            if last is None:
                hunks.append(hunk)

    def _unexpected(self, number: int, line: str) -> PatchError:
        return _invalid(
            f"Unexpected line found in update hunk: '{line}'. Every line should start "
            "with ' ' (context line), '+' (added line), or '-' (removed line)",
            number,
        )

    def _no_marker(self, line: str) -> PatchError:
        return _invalid(
            f"Expected update hunk to start with a @@ context marker, got: '{line}'",
            self._at,
        )


def _path(line: str, header: str) -> str | None:
    """Read the path after a header; None if the line has another header, or no path."""
    if line.startswith(header):
        return line[len(header) :] or None
    return None
