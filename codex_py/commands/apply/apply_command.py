"""`codex-py apply`: applies an envelope or a unified diff to the files of a folder.

A patch is applied whole or not at all.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from codex_py.command_line.parser import flag, option, parse_options, working_folder
from codex_py.command_line.stopping import Stopped, raise_when_stopped
from codex_py.commands.apply.input import PatchInput, patch_input, patching
from codex_py.commands.apply.report import Report
from codex_py.config.paths import codex_home, project_root
from codex_py.errors import CodexError, ExitCode, PatchError, UsageError, cause
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.handles import Directories
from codex_py.patch.files.journal import Journal
from codex_py.patch.files.tree import EnvelopeTree
from codex_py.patch.formats import Detected, detect, is_bundle
from codex_py.patch.match import Level
from codex_py.patch.plan import PatchPlan, readable_under, writable_under
from codex_py.patch.report import Findings
from codex_py.streams.standard import print_out
from codex_py.streams.terminal import printable, some_of

_MAX_STRIP = 99
_MAX_STRIP_TRIED = 5


def _strip(word: str) -> int:
    """Parse the value of `-p`: the number of leading folders to strip from each name."""
    is_number = word.isascii() and word.isdecimal()
    if not is_number or int(word) > _MAX_STRIP:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of directories")
    return int(word)


class _Options(NamedTuple):
    file: Annotated[str | None, option()] = None
    """The file of the patch; `-` for standard input. None: standard input too, but if that is a
    terminal, the last session."""
    check: Annotated[bool, flag("--check")] = False
    reverse: Annotated[bool, flag("-R", "--reverse")] = False
    directory: Annotated[str | None, option("--directory")] = None
    strip: Annotated[int | None, option("-p", "--strip", type=_strip)] = None
    strict: Annotated[bool, flag("--strict")] = False
    three_way: Annotated[bool, flag("-3", "--3way")] = False
    partial: Annotated[bool, flag("--partial")] = False
    force: Annotated[bool, flag("--force")] = False
    json: Annotated[bool, flag("--json")] = False
    convert: Annotated[Literal["envelope", "unified"] | None, option("--convert")] = (
        None
    )
    cd: Annotated[str, option("-C", "--cd")] = "."

    def refuse(self, names: str, reason: str) -> None:
        """Raise a `UsageError` if one of these options was given. `names`: separated by blanks."""
        for name in names.split():
            # `-p0` is not refused either, because 0 equals False.
            if getattr(self, name) in {None, False}:
                continue
            if name == "three_way":
                raise UsageError(f"--3way {reason}")
            raise UsageError(f"--{name} {reason}")


def run_apply(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Apply, check or convert a patch. Returns the exit code."""
    options = parse_options(_Options, argv)
    if options.convert:
        options.refuse(
            "check directory strip strict three_way partial force json",
            "does not go with --convert, which changes nothing",
        )
        if options.reverse and options.convert == "envelope":
            raise UsageError("--reverse goes with --convert unified only")
    raise_when_stopped()
    report = Report(environment, as_json=options.json)
    try:
        return _apply(options, environment, report)
    except (CodexError, Stopped) as error:
        report.failure(error)
        raise


def _apply(
    options: _Options,
    environment: Mapping[str, str],
    report: Report,
) -> int:
    """Do what the options ask for. Returns the exit code.

    Raises:
        CodexError: there is no patch, or it is refused or does not fit. Nothing was changed.
    """
    cwd = working_folder(options.cd)
    given = patch_input(options.file, cwd, environment)
    try:
        return _apply_input(given, cwd, options, environment, report)
    except PatchError as error:
        if error.kind == "empty":
            error = PatchError(
                "the patch is empty: no files were modified", kind="empty"
            )
        if error.kind in {"parse", "empty"}:
            error.exit_code = ExitCode.INPUT
        raise error


def _apply_input(
    given: PatchInput,
    cwd: Path,
    options: _Options,
    environment: Mapping[str, str],
    report: Report,
) -> int:
    """Apply, check or convert a patch that was read. Returns the exit code.

    Args:
        cwd: the folder in which files may be changed, absolute.
    """
    found, bundle = _found(given, options, environment)
    if bundle is None:
        report.found(found, given)
    else:
        report.found(found, given, bundle.facts)
        # The names in a bundle are relative to the top of the work tree.
        cwd = project_root(cwd, (".git",)) or cwd
        options = options._replace(strip=1, strict=not options.three_way)
    if found.kind == "envelope":
        _refuse_for_envelope(options)
    # The paths of a session's patch are relative to the folder of the session.
    base = given.cwd or cwd
    if options.convert:
        return _print_converted(found, base, options)
    journal = _recovered_journal(environment, cwd, report)
    report.progress("Checking the patch …")
    plan = _plan(found, base, cwd, options, environment)
    if bundle is not None and not options.three_way:
        bundle.refuse_other_files(plan.changes, cwd)
    _refuse_wrong_files(plan, cwd)
    if options.check:
        return report.fitting(plan, cwd, None, [])
    report.progress("Writing the files …")
    return _commit(plan, journal, cwd, report)


def _commit(
    plan: PatchPlan,
    journal: Journal | None,
    cwd: Path,
    report: Report,
) -> int:
    """Write a patch that fits. Returns the exit code.

    Raises:
        PatchError: writing the patch failed.
    """
    try:
        committed = plan.commit(journal)
        report.committed(committed)
        rejects: list[Path] = []
        if plan.rejects:
            rejects = _write_rejects(plan, cwd, report)
        return report.fitting(plan, cwd, committed, rejects)
    except PatchError as error:
        error.exit_code = ExitCode.TURN_FAILED
        raise


def _found(
    given: PatchInput,
    options: _Options,
    environment: Mapping[str, str],
):
    """Detect the patch. Returns it as `Detected`, and the `Bundle` that contains it or None."""
    if not is_bundle(given.data):
        options.refuse("force", "is for change bundles, and this is none")
        return detect(given.data), None
    options.refuse(
        "reverse strip directory partial", "does not go with a change bundle"
    )
    bundle = patching().opened_bundle(given.data, environment)
    if bundle.failure and not (options.force or options.convert):
        raise CodexError(
            f"{bundle.failure}; see --force", code="gates", exit_code=ExitCode.GATE
        )
    summary = f"a change bundle, {bundle.summary},"
    return Detected("unified", bundle.diff, summary), bundle


def _refuse_for_envelope(options: _Options) -> None:
    if options.reverse and not options.convert:
        raise UsageError(
            "an envelope cannot be reversed; `codex-py undo` takes back one that was applied"
        )
    options.refuse(
        "strip three_way partial", "is for unified diffs, and this is an envelope"
    )


def _print_converted(
    found: Detected,
    cwd: Path,
    options: _Options,
) -> int:
    """Print the patch in the format that `--convert` names. Returns the exit code."""
    text = _converted(found, cwd, options)
    if os.isatty(1):
        text = printable(text)
    return print_out(text)


def _converted(
    found: Detected,
    cwd: Path,
    options: _Options,
) -> str:
    if options.convert == found.kind and not options.reverse:
        return found.text
    from codex_py.patch import convert  # 13 ms

    if options.convert == "envelope":
        return convert.to_envelope(found.text, cwd)
    if found.kind == "unified":
        diff = found.text
    else:
        diff = convert.to_unified(found.text, cwd)
    if options.reverse:
        return convert.reversed_diff(diff, cwd)
    return diff


def _recovered_journal(
    environment: Mapping[str, str],
    cwd: Path,
    report: Report,
) -> Journal | None:
    """Open the journal, and finish or take back a patch that was interrupted.

    Returns None, with a note, if there can be no journal.
    """
    try:
        journal = Journal(codex_home(environment), cwd)
    except CodexError as error:
        report.note(f"This patch cannot be undone: {error}.")
        return None
    for sentence in journal.recover():
        report.note(sentence)
    return journal


def _plan(
    found: Detected,
    base: Path,
    root: Path,
    options: _Options,
    environment: Mapping[str, str],
) -> PatchPlan:
    """Plan a patch whose paths are relative to `base`. Files under `root` may be read too."""
    if found.kind == "unified":
        return _plan_diff(found.patch, base, options, environment)
    top = base
    if options.directory:
        top = Path(os.path.normpath(base / options.directory))
    plan = plan_patch(found.text, top, readable=readable_under([base, root]))
    if options.strict:
        _refuse_guesses(plan)
    return plan


def _refuse_guesses(plan: PatchPlan) -> None:
    """Raise a `PatchError` if a hunk fits only approximately, or in several places."""
    guessed = [hunk for hunk in plan.hunks if hunk.level != Level.EXACT or hunk.also_at]
    if guessed:
        notes = [hunk.note() for hunk in guessed]
        lines = ["not exact:", *filter(None, notes)]
        raise PatchError("\n".join(lines), kind="match")


def _refuse_wrong_files(plan: PatchPlan, root: Path) -> None:
    refused = plan.refused(writable_under([root]))
    if refused:
        names = some_of([str(path) for path in refused], 3)
        raise PatchError(
            f"outside of {root}, or protected (.codex, .agents, .aws there, any .git, also as"
            f" other systems spell it): {names}",
            kind="refused",
        )


def _plan_diff(
    diff: str | bytes,
    cwd: Path,
    options: _Options,
    environment: Mapping[str, str],
) -> PatchPlan:
    from codex_py.patch.unified.plan import plan_unified  # 8 ms

    three_way = None
    if options.three_way:
        three_way = patching().git_three_way(cwd, environment)

    def plan(
        strip: int | None,
        base: Path = cwd,
        *,
        partial: bool = False,
    ) -> PatchPlan:
        return plan_unified(
            diff,
            base,
            readable=readable_under([base]),
            strip=strip,
            directory=options.directory,
            reverse=options.reverse,
            strict=options.strict,
            partial=partial,
            three_way=three_way,
        )

    try:
        return plan(options.strip, partial=options.partial)
    except PatchError as error:
        may_be_misnamed = error.kind in {"file", "parse"}
        # Another exit code means that the system cannot read or write a file: its name is right.
        is_about_patch = error.exit_code is ExitCode.PATCH
        if not may_be_misnamed or not is_about_patch:
            raise
        hint = _hint(plan, cwd, options)
        if not hint:
            raise
        raise PatchError(f"{error.reason}\n{hint}", kind="file") from error


def _hint(
    plan: Callable[[int | None, Path], PatchPlan],
    cwd: Path,
    options: _Options,
) -> str:
    """Suggest another `-p` or `-C` with which the patch fits. Returns "" if none is found."""
    for strip in range(_MAX_STRIP_TRIED):
        if strip != options.strip and _fits(plan, strip, cwd):
            return f"With -p{strip} it fits."
    root = project_root(cwd, (".git",))
    if root is not None and root != cwd and _fits(plan, options.strip, root):
        return f"In {root} it fits: use -C."
    return ""


def _fits(
    plan: Callable[[int | None, Path], PatchPlan],
    strip: int | None,
    base: Path,
) -> bool:
    try:
        plan(strip, base)
    except PatchError:
        return False
    return True


def _write_rejects(
    plan: PatchPlan,
    cwd: Path,
    report: Report,
) -> list[Path]:
    """Write each rejected part beside its file, or into `cwd` if the folder is missing.

    Returns the paths of the `.rej` files. If they cannot be written, a note says so, and there
    are none.
    """
    texts: dict[Path, bytes] = {}
    for reject in plan.rejects:
        folder = reject.path.parent
        # The path may be one that no folder can have.
        if not os.path.isdir(folder):
            folder = cwd
        path = folder / f"{reject.path.name}.rej"
        texts[path] = texts.get(path, b"") + reject.text
    try:
        with Directories() as handles:
            overlay = EnvelopeTree(cwd, handles, readable_under([cwd]))
            files = [overlay.write(str(path), text) for path, text in texts.items()]
        rejects = PatchPlan(files, [], Findings())
        rejects.checked(writable_under([cwd])).commit()
    except (OSError, PatchError) as error:
        report.note(f"what was left out could not be written: {cause(error)}")
        return []
    return list(texts)
