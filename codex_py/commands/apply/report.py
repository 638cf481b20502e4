"""Reports what `codex-py apply` does, to people, or with `--json` to programs."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codex_py.command_line.stopping import Stopped
from codex_py.commands.apply.input import PatchInput
from codex_py.commands.apply.unasked import used_unasked
from codex_py.errors import CodexError, ExitCode, PatchError
from codex_py.patch.diff.writer import git_diff
from codex_py.patch.files.commit import Committed
from codex_py.patch.formats import Detected
from codex_py.patch.plan import PatchPlan
from codex_py.protocol.patched_file import PatchedFile
from codex_py.streams.standard import OutputStream, print_json, print_out
from codex_py.streams.terminal import Style, printable, wants_color

_LONG_BYTES = 256 * 1024
"""Progress is shown for patches larger than this."""
_COLORS = {"+": "green", "-": "red", "@": "cyan"}


class Report:
    """Prints remarks to standard error at once, and facts to standard output at the end.

    With `--json`, the facts are one JSON object.
    """

    def __init__(self, environment: Mapping[str, str], *, as_json: bool) -> None:
        self._as_json = as_json
        self._stderr = OutputStream(2)
        self._on_terminal = os.isatty(1)
        color = wants_color("auto", environment, isatty=self._on_terminal)
        self._style = Style(color=color)
        self._facts: dict[str, Any] = {}
        self._notes: list[str] = []
        self._shows_progress = False

    def found(
        self,
        patch: Detected,
        given: PatchInput,
        bundle: Mapping[str, Any] | None = None,
    ) -> None:
        """Report the patch. `bundle`: the fields of the change bundle that contained it."""
        self._shows_progress = os.isatty(2) and len(given.data) > _LONG_BYTES
        self._facts = {
            "format": patch.kind,
            "found": patch.found,
            "source": given.source,
        }
        if bundle is not None:
            self._facts["bundle"] = bundle
        self._tell(f"Found {patch.found} in {given.source}.")

    def progress(self, doing: str) -> None:
        """Show the current step until the next message; an empty text clears it."""
        if self._shows_progress:
            self._stderr.write_text(f"\r\x1b[K{printable(doing)}")

    def note(self, sentence: str) -> None:
        self._notes.append(sentence)
        self._tell(f"Note: {sentence}")

    def committed(self, committed: Committed) -> None:
        """Record a written patch. Call this right after writing: later steps may fail."""
        self._facts |= {"applied": True, "undo": committed.number}

    def fitting(
        self,
        plan: PatchPlan,
        cwd: Path,
        committed: Committed | None,
        rejects: Sequence[Path],
    ) -> int:
        """Report a patch that fits, or the part of it that fits. Returns the exit code.

        Args:
            committed: None where the patch was only checked.
            rejects: the `.rej` files that were written. Several parts may be in one file.
        """
        for note in _notes(plan, cwd, committed):
            self.note(note)
        for reason in _reasons(plan):
            self._tell(f"Left out: {reason}")
        for path in rejects:
            self._tell(f"What was left out is in {path}")
        if committed and committed.number and os.isatty(2):
            self._tell(f"To take it back: codex-py undo {committed.number}")
        if self._as_json:
            code = self._print_facts(plan, committed, rejects)
        else:
            code = self._print_text(plan, cwd, committed)
        if code == 0 and _is_incomplete(plan):
            return ExitCode.PATCH
        return code

    def failure(self, error: CodexError | Stopped) -> None:
        """With `--json`, print why nothing was changed. Otherwise the error's handler prints it."""
        self.progress("")
        if not self._as_json:
            return
        cause = {"code": error.code, "message": str(error)}
        reason = str(error)
        if isinstance(error, PatchError):
            cause["kind"] = error.kind
            reason = error.reason
        # If the patch was written before the failure, the facts say that it was applied.
        facts = {
            "applied": False,
            **self._facts,
            "files": [],
            "hunks": [],
            "notes": self._notes,
            "reasons": [reason],
            "error": cause,
        }
        print_json(facts)

    def _print_facts(
        self,
        plan: PatchPlan,
        committed: Committed | None,
        rejects: Sequence[Path],
    ) -> int:
        """Print one JSON object. Returns the exit code of printing."""
        hunks: list[dict[str, object]] = []
        for hunk in plan.hunks:
            level = hunk.level.name.lower()
            hunks.append({**hunk._asdict(), "level": level})
        number = committed.number if committed else None
        facts = {
            **self._facts,
            "applied": committed is not None,
            "files": [change.facts() for change in plan.changes],
            "hunks": hunks,
            "notes": self._notes,
            "reasons": _reasons(plan),
            "rejects": [str(path) for path in rejects],
            "conflicts": [str(path) for path in plan.conflicts],
            "undo": number,
        }
        return print_json(facts)

    def _print_text(
        self,
        plan: PatchPlan,
        cwd: Path,
        committed: Committed | None,
    ) -> int:
        """Print the summary, and on a terminal the diff before it. Returns the exit code of
        printing."""
        summary = plan.summary()
        if committed is None:
            _, _, files = summary.partition("\n")
            if _is_incomplete(plan):
                fits = "Not all of the patch fits"
            else:
                fits = "The patch fits"
            summary = f"{fits}. It would update the following files:\n{files}"
        if not self._on_terminal:
            return print_out(summary)
        diff = printable(git_diff(plan.changes, cwd))
        lines = [self._colored(line) for line in diff.split("\n")]
        return print_out("\n".join(lines) + printable(summary))

    def _colored(self, line: str) -> str:
        if line.startswith(("diff --git ", "--- ", "+++ ")):
            return self._style("bold", line)
        color = _COLORS.get(line[:1])
        if color is None:
            return line
        return self._style(color, line)

    def _tell(self, sentence: str) -> None:
        self.progress("")
        self._stderr.write_text(f"{printable(sentence)}\n")


def _notes(
    plan: PatchPlan,
    cwd: Path,
    committed: Committed | None,
) -> list[str]:
    """The sentences that point out what is special about a patch."""
    notes = [*plan.notes]
    notes += [_link_note(change, cwd) for change in plan.links]
    unasked = [_unasked_note(change, cwd) for change in plan.changes]
    notes += filter(None, unasked)
    if committed:
        notes += committed.notes
    return notes


def _reasons(plan: PatchPlan) -> list[str]:
    """The reasons for which parts of a patch are left out."""
    return [reason for reject in plan.rejects for reason in reject.reasons]


def _link_note(change: PatchedFile, cwd: Path) -> str:
    path = change.destination
    linked = path.parent / (change.link or "")
    target = Path(os.path.realpath(linked))
    sentence = f"{_shown(path, cwd)} is a symbolic link to {change.link}"
    if not target.is_relative_to(cwd.resolve()):
        sentence += f", outside of {cwd}"
    return f"{sentence}."


def _unasked_note(change: PatchedFile, cwd: Path) -> str:
    """Say in a sentence which program acts on a file unasked. Empty for other and deleted
    files."""
    if change.new is None:
        return ""
    name = _shown(change.destination, cwd)
    why = used_unasked(name)
    if not why:
        return ""
    done = "new" if change.old is None else "changed"
    return f"{name} is {done}: {why}."


def _shown(path: Path, cwd: Path) -> str:
    """The path relative to `cwd`, or absolute if it is outside of it."""
    if path.is_relative_to(cwd):
        path = path.relative_to(cwd)
    return str(path)


def _is_incomplete(plan: PatchPlan) -> bool:
    return bool(plan.rejects or plan.conflicts)
