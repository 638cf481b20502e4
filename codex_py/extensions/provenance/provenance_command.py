"""`codex-py blame-agent` and `provenance`: which lines which session wrote."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Annotated, Any, Final

from codex_py.api.commands import (
    CodexError,
    Command,
    UsageError,
    flag,
    frozen,
    option,
    print_json,
    print_out,
    print_table,
    tell,
)
from codex_py.api.configuration import ConfigOptions, command_config
from codex_py.api.files import read_whole, real_path
from codex_py.api.git import aside, empty_tree, work_tree
from codex_py.api.streams import on_one_line
from codex_py.extensions.provenance.lines import LineAuthor, as_lines
from codex_py.extensions.provenance.records import (
    TOOL,
    Written,
    note,
    trace,
    trailers,
    turns_of,
    written_between,
)
from codex_py.extensions.provenance.written import MAX_BYTES, Repository, TurnFacts

_FOLDER: Final = Path(__file__).parent
_SIGNS = {"patch": "", "command": "*", "unsure": "?"}
"""The mark of a line by the way in which its turn wrote it."""
_NOTES = ("notes", "--ref=refs/notes/ai")
_APPEND = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | os.O_NOFOLLOW
    | os.O_NONBLOCK
    | os.O_CLOEXEC
)


@frozen
class BlameOptions(ConfigOptions):
    file: Annotated[str | None, option()] = None
    json: Annotated[bool, flag("--json")] = False
    rev: Annotated[str | None, option("--rev")] = None


def _blame_agent(options: BlameOptions, environment: Mapping[str, str]) -> int:
    """Print the lines of a file with the turns that wrote them. Returns the exit code."""
    name = options.file
    if name is None:
        raise UsageError("say which file: codex-py blame-agent FILE")
    config = command_config(options, environment, warns=False)
    place = Path(os.path.normpath(config.cwd / name))
    near = next(each for each in (place, *place.parents) if each.is_dir())
    # The journal's paths have no links in their folders.
    folder = Path(os.path.realpath(near))
    repository = Repository(config, environment, folder)
    until = inf
    path = str((folder / place.relative_to(near)).relative_to(repository.root))
    if options.rev is not None:
        repository.revision = repository.commit(options.rev)
        until = _end_of(_made(repository, repository.revision)[-1])
    data = _text(repository, path, name)
    lines = as_lines(data)
    authors = repository.follow({path: lines}).authors(path, lines, until)
    turns = turns_of(repository, authors)
    texts = [line.decode(errors="replace") for line in data.split(b"\n")]
    # A newline at the end of the data makes one text more than there are lines.
    found = list(zip(texts, authors, strict=False))
    if options.json:
        facts = {
            "file": path,
            "revision": repository.revision,
            "turns": [_facts(turn) for turn in turns],
            "lines": _line_facts(found),
        }
        return print_json(facts)
    if not turns:
        return print_out(
            f"No line of {on_one_line(path)} is known to be a session's.\n"
        )
    return _print_tables(found, turns)


def _text(
    repository: Repository,
    path: str,
    name: str,
) -> bytes:
    """Read a text file of the repository. `name`: the file as the user wrote it."""
    try:
        data = repository.data(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CodexError(f"cannot read {name!r}: {reason}") from error
    if b"\0" in data:
        raise CodexError(f"{name!r} is no text: it has no lines to tell of")
    return data


def _line_facts(
    lines: Sequence[tuple[str, LineAuthor | None]],
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number, (text, author) in enumerate(lines, 1):
        row: dict[str, Any] = {"line": number}
        row["text"] = text.removesuffix("\r")
        if author is not None:
            row["session"] = author.thread_id
            row["turn"] = author.turn
            row["how"] = author.how
        rows.append(row)
    return rows


def _print_tables(
    lines: Sequence[tuple[str, LineAuthor | None]], turns: Sequence[TurnFacts]
) -> int:
    """Print a numbered table of the turns, and the lines with these numbers."""
    keys: dict[tuple[str, int], str] = {}
    legend: list[tuple[str, ...]] = []
    for number, turn in enumerate(turns, 1):
        keys[turn.session, turn.turn] = str(number)
        facts = [str(fact or "") for fact in _facts(turn).values()]
        legend.append((str(number), *facts))
    width = len(str(len(lines)))
    table: list[tuple[str, str]] = []
    for number, (text, author) in enumerate(lines, 1):
        key = ""
        if author is not None:
            key = keys[author.thread_id, author.turn] + _SIGNS[author.how]
        table.append((key, f"{number:{width}}  {text}"))
    return print_table(legend) or print_out("\n") or print_table(table)


def _facts(turn: TurnFacts) -> dict[str, str | int | None]:
    time = datetime.fromtimestamp(turn.time, UTC).astimezone()
    return {
        "session": turn.session,
        "name": turn.name or "",
        "turn": turn.turn,
        "time": time.isoformat(" ", "minutes"),
        "model": turn.model,
        "prompt": turn.prompt,
    }


@frozen
class ProvenanceOptions(ConfigOptions):
    commit: Annotated[str | None, option()] = None
    note: Annotated[bool, flag("--note")] = False
    trace: Annotated[bool, flag("--trace")] = False
    trailer: Annotated[bool, flag("--trailer")] = False
    work_tree: Annotated[bool, flag("--work-tree")] = False
    force: Annotated[bool, flag("--force")] = False
    message: Annotated[str | None, option("--message")] = None


def _provenance(options: ProvenanceOptions, environment: Mapping[str, str]) -> int:
    """Write a note, a trace or trailers. Returns the exit code."""
    forms = [options.note, options.trace, options.trailer]
    if forms.count(True) != 1:
        raise UsageError("say one of --note, --trace and --trailer")
    if options.message is not None and (not options.trailer or options.commit):
        raise UsageError("--message goes with --trailer, and without a commit")
    if options.work_tree and (not options.trace or options.commit):
        raise UsageError("--work-tree goes with --trace, and without a commit")
    config = command_config(options, environment, warns=False)
    repository = Repository(config, environment, config.cwd)
    if options.trailer and not options.commit:
        return _trailers_of_index(repository, environment, options.message)
    if options.work_tree:
        return _trace_work_tree(repository)
    commit = repository.commit(options.commit or "HEAD")
    repository.revision = commit
    parents, author, name, mail, time = _made(repository, commit)
    olds = parents.split()
    if not olds:
        olds = [empty_tree(repository.git, repository.root)]
    written, turns = written_between(repository, olds, commit, _end_of(time))
    if options.trace:
        return _add_trace(repository.root, written, turns, commit)
    if options.trailer:
        return _print_trailers(trailers(turns), f"commit {commit}")
    if not turns:
        return print_out(f"No line of commit {commit} is known to be a session's.\n")
    if not options.force:
        _refuse_note_of_others(repository, commit)
    text = note(written, turns, commit, author)
    _add_note(repository, commit, text, name or "unknown", mail or "unknown")
    count = sum(map(len, written.values()))
    return print_out(
        f"Noted {count} lines of {len(written)} files in refs/notes/ai for {commit}.\n"
    )


def _trace_work_tree(repository: Repository) -> int:
    """Add a trace of the lines that no commit has yet. Returns the exit code."""
    root = repository.root

    def refuses(name: str) -> bool:
        return repository.refuses(root / name)

    with aside(repository.git.without_filters(root)) as repository.git:
        tree = work_tree(repository.git, root, refuses)
        written, turns = written_between(repository, [_head(repository)], tree)
    return _add_trace(root, written, turns, None)


def _refuse_note_of_others(repository: Repository, commit: str) -> None:
    """Raise a `CodexError` if a commit has a note that another tool wrote."""
    there = repository.git.run(repository.root, *_NOTES, "show", commit)
    is_own = f'"git_ai_version": "{TOOL}/'.encode() in there.stdout
    if there.returncode == 0 and not is_own:
        raise CodexError(
            f"commit {commit} has a note of another tool; --force replaces it"
        )


def _add_note(
    repository: Repository,
    commit: str,
    text: str,
    name: str,
    mail: str,
) -> None:
    """Add a note to a commit, in the name of the committer."""
    variables = {**repository.git.variables}
    for kind in ("AUTHOR", "COMMITTER"):
        variables[f"GIT_{kind}_NAME"] = name
        variables[f"GIT_{kind}_EMAIL"] = mail
    git = replace(repository.git, variables=variables)
    words = (*_NOTES, "add", "-f", "-F", "-", commit)
    git.output(repository.root, *words, stdin=text.encode())


def _add_trace(
    root: Path,
    written: Written,
    turns: Sequence[TurnFacts],
    commit: str | None,
) -> int:
    """Append a record to the file of traces, and print it. Returns the exit code."""
    if not turns:
        return print_out("No line is known to be a session's.\n")
    record = trace(written, turns, commit)
    path = root / ".agent-trace" / "traces.jsonl"
    try:
        path = Path(real_path(path, root))
        path.parent.mkdir(exist_ok=True)
        with os.fdopen(os.open(path, _APPEND, 0o666), "ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
    except OSError as error:
        raise CodexError(f"cannot write {str(path)!r}: {error.strerror}") from error
    return print_json(record)


def _trailers_of_index(
    repository: Repository,
    environment: Mapping[str, str],
    message: str | None,
) -> int:
    """Print the trailers for the commit of what is staged, or add them to its message.

    Args:
        message: the file of the message; None prints the trailers.
    """
    index = environment.get("GIT_INDEX_FILE")
    if index:
        # git gives hooks the index of `git commit FILE`.
        variables = {**repository.git.variables}
        variables["GIT_INDEX_FILE"] = str(Path(index).absolute())
        repository.git = replace(repository.git, variables=variables)
    with aside(repository.git) as repository.git:
        tree = repository.git.output(repository.root, "write-tree")
        _, turns = written_between(repository, [_head(repository)], tree)
    thread = environment.get("CODEX_THREAD_ID")
    if thread:
        # A command of this session makes the commit; what its turn wrote is not in the journal yet.
        turns.append(repository.facts(thread, 0, inf))
    found = trailers(turns)
    if message is None:
        return _print_trailers(found, "what is staged")
    if found:
        _add_trailers(repository, message, found)
    return 0


def _add_trailers(
    repository: Repository,
    message: str,
    lines: Sequence[str],
) -> None:
    """Add trailers to a file with a commit message, unless it has them."""
    options = ["--no-divider", "--if-exists", "addIfDifferent", "--if-missing", "add"]
    options += [f"--trailer={line}" for line in lines]
    try:
        text = read_whole(Path(message).absolute(), MAX_BYTES)
        # Run git outside the repository, whose configuration could name commands for trailers.
        added = repository.plain_git.data(
            Path("/"), "interpret-trailers", *options, stdin=text
        )
        Path(message).write_bytes(added)
    except OSError as error:
        raise CodexError(f"cannot change {message!r}: {error.strerror}") from error


def _print_trailers(lines: Sequence[str], source: str) -> int:
    if not lines:
        # Standard output goes into a commit message.
        tell(f"No line of {source} is known to be a session's.")
    return print_out("".join(f"{line}\n" for line in lines))


def _head(repository: Repository) -> str:
    try:
        return repository.commit("HEAD")
    except UsageError:
        return empty_tree(repository.git, repository.root)


def _made(repository: Repository, commit: str) -> list[str]:
    """Read a commit: parents, author, committer's name, committer's address, time in seconds."""
    facts = "%x00".join(("%P", "%an <%ae>", "%cn", "%ce", "%ct"))
    words = ("rev-list", "-1", f"--format={facts}", commit)
    printed = repository.git.output(repository.root, *words)
    _, _, line = printed.partition("\n")
    return line.split("\0")


def _end_of(time: str) -> int:
    """The end of a second that git printed, in seconds since the epoch."""
    return int(time or 0) + 1


blame_agent: Final = Command(_blame_agent, _FOLDER / "blame-agent.txt", BlameOptions)
provenance: Final = Command(_provenance, _FOLDER / "provenance.txt", ProvenanceOptions)
