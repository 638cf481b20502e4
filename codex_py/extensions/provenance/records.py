"""Formats what sessions wrote in a commit as a git-ai note, an Agent Trace record, and trailers.

https://github.com/git-ai-project/git-ai/blob/main/specs/git_ai_standard_v3.0.0.md
https://github.com/cursor/agent-trace
"""

import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Any

from codex_py.api.program import __version__
from codex_py.extensions.provenance.lines import LineAuthor, aligned, as_lines
from codex_py.extensions.provenance.written import Repository, TurnFacts

TOOL = "codex-py"
Written = Mapping[str, Mapping[int, LineAuthor]]
"""The authors by path and by line number, from 1."""


def written_between(
    repository: Repository,
    olds: Sequence[str],
    new: str,
    until: float = inf,
) -> tuple[Written, list[TurnFacts]]:
    """Find the lines that a tree has and none of the old ones, if a session surely wrote them.

    Returns the lines and their turns.

    Raises:
        CodexError: git fails.
    """
    sides = [repository.changed(old, new) for old in olds]
    common = sorted(set(sides[0]).intersection(*sides[1:]))
    wanted = {path: as_lines(sides[0][path][1]) for path in common}
    history = repository.follow(wanted)
    found: dict[str, Mapping[int, LineAuthor]] = {}
    for path, now in wanted.items():
        places = [aligned(as_lines(side[path][0]), now) for side in sides]
        lines: dict[int, LineAuthor] = {}
        for index, author in enumerate(history.authors(path, now, until)):
            if author is None or author.how == "unsure":
                continue
            is_new = all(each[index] < 0 for each in places)
            if is_new:
                lines[index + 1] = author
        if lines and not repository.refuses(repository.root / path):
            found[path] = lines
    authors = [author for lines in found.values() for author in lines.values()]
    return found, turns_of(repository, authors)


def turns_of(
    repository: Repository, authors: Iterable[LineAuthor | None]
) -> list[TurnFacts]:
    """Look up the turns of these authors. The oldest turn comes first."""
    by_turn: dict[tuple[str, int], LineAuthor] = {}
    for author in authors:
        if author is not None:
            by_turn[author.thread_id, author.turn] = author
    facts = [
        repository.facts(author.thread_id, author.turn, author.ended)
        for author in by_turn.values()
    ]
    return sorted(facts, key=lambda each: each.time)


def note(
    written: Written,
    turns: Iterable[TurnFacts],
    commit: str,
    human: str,
) -> str:
    """Make the text of a git-ai authorship log, version 3. `human`: the author of the commit."""
    text = ""
    for path, lines in written.items():
        if any(character.isspace() for character in path):
            text += f'"{path}"\n'
        else:
            text += f"{path}\n"
        for key, ranges in _ranges(lines, _trace_key):
            numbers = [_numbers(first, last) for first, last in ranges]
            text += f"  {key} {','.join(numbers)}\n"
    sessions: dict[str, dict[str, Any]] = {}
    for turn in turns:
        model = turn.model or "unknown"
        agent = {"tool": TOOL, "id": turn.session, "model": model}
        facts = {"agent_id": agent, "human_author": human}
        sessions[_session_key(turn.session)] = facts
    facts = {
        "schema_version": "authorship/3.0.0",
        "git_ai_version": f"{TOOL}/{__version__}",
        "base_commit_sha": commit,
        "prompts": {},
        "sessions": sessions,
    }
    return f"{text}---\n{json.dumps(facts, indent=2)}\n"


def _numbers(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}-{last}"


def trace(
    written: Written,
    turns: Iterable[TurnFacts],
    commit: str | None,
) -> dict[str, Any]:
    """Make a record of Agent Trace 0.1. `commit`: None for the work tree."""
    contributors = {(turn.session, turn.turn): _contributor(turn) for turn in turns}
    files: list[dict[str, Any]] = []
    for path, lines in written.items():
        conversations: list[dict[str, Any]] = []
        for turn, ranges in _ranges(lines, _turn_key):
            session, _ = turn
            conversation = {
                "url": f"urn:uuid:{session}",
                "contributor": contributors[turn],
                "ranges": [
                    {"start_line": first, "end_line": last} for first, last in ranges
                ],
            }
            conversations.append(conversation)
        files.append({"path": path, "conversations": conversations})
    record: dict[str, Any] = {
        "version": "0.1",
        "id": str(uuid.uuid4()),
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if commit:
        record["vcs"] = {"type": "git", "revision": commit}
    record["tool"] = {"name": TOOL, "version": __version__}
    record["files"] = files
    return record


def _contributor(turn: TurnFacts) -> dict[str, str]:
    model = turn.model
    if not model:
        return {"type": "ai"}
    if "/" not in model:
        model = f"{turn.provider}/{model}"
    # The format allows no more characters.
    return {"type": "ai", "model_id": model[:250]}


def trailers(turns: Sequence[TurnFacts]) -> list[str]:
    """Make a trailer for each session and each model."""
    found = [f"Codex-Py-Session: {turn.session}" for turn in turns]
    found += [f"Model: {turn.model}" for turn in turns if turn.model]
    return list(dict.fromkeys(found))


def _ranges(
    lines: Mapping[int, LineAuthor], key: Callable[[LineAuthor], Any]
) -> Iterable[tuple[Any, list[tuple[int, int]]]]:
    """Group lines by the key of their author. Each group has the first and last lines of ranges."""
    found: dict[Any, list[int]] = defaultdict(list)
    for number, author in lines.items():
        found[key(author)].append(number)
    for each, numbers in found.items():
        runs: list[tuple[int, int]] = []
        for number in numbers:
            if runs and runs[-1][1] + 1 == number:
                first, _ = runs.pop()
                runs.append((first, number))
            else:
                runs.append((number, number))
        yield each, runs


def _turn_key(author: LineAuthor) -> tuple[str, int]:
    return author.thread_id, author.turn


def _session_key(thread_id: str) -> str:
    return f"s_{_digest(f'{TOOL}:{thread_id}')}"


def _trace_key(author: LineAuthor) -> str:
    """Make the same key each time, so that a note does not change when it is written again."""
    edit = f"{author.thread_id}:{author.turn}:{author.how}"
    return f"{_session_key(author.thread_id)}::t_{_digest(edit)}"


def _digest(text: str) -> str:
    """Fourteen hexadecimal digits, as the keys of git-ai have."""
    return hashlib.sha256(text.encode()).hexdigest()[:14]
