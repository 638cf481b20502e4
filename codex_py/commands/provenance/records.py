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

from codex_py.commands.provenance.lines import LineAuthor, aligned, as_lines
from codex_py.commands.provenance.written import Repository, TurnFacts
from codex_py.version import __version__

TOOL = "codex-py"
Written = Mapping[str, Mapping[int, LineAuthor]]
"""The authors by path and by line number, from 1."""


def written_between(
    repository: Repository, olds: Sequence[str], new: str, until: float = inf
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
        lines = {
            number: author
            for number, author in enumerate(history.authors(path, now, until), 1)
            if author
            and author.how != "unsure"
            and all(each[number - 1] < 0 for each in places)
        }
        if lines and not repository.refuses(repository.root / path):
            found[path] = lines
    authors = [author for lines in found.values() for author in lines.values()]
    return found, turns_of(repository, authors)


def turns_of(
    repository: Repository, authors: Iterable[LineAuthor | None]
) -> list[TurnFacts]:
    """Look up the turns of these authors. The oldest turn comes first."""
    found = {author[:2]: author for author in authors if author}
    facts = [
        repository.facts(each.thread_id, each.turn, each.ended)
        for each in found.values()
    ]
    return sorted(facts, key=lambda each: each.time)


def note(
    written: Written,
    turns: Iterable[TurnFacts],
    commit: str,
    human: str,
) -> str:
    """Make the text of a git-ai authorship log, version 3."""
    text = ""
    for path, lines in written.items():
        if any(character.isspace() for character in path):
            text += f'"{path}"\n'
        else:
            text += f"{path}\n"
        for key, ranges in _ranges(lines, _trace_key):
            numbers = ",".join(_numbers(first, last) for first, last in ranges)
            text += f"  {key} {numbers}\n"
    facts = {
        "schema_version": "authorship/3.0.0",
        "git_ai_version": f"{TOOL}/{__version__}",
        "base_commit_sha": commit,
        "prompts": {},
        "sessions": {
            _session_key(turn.session): {
                "agent_id": {
                    "tool": TOOL,
                    "id": turn.session,
                    "model": turn.model or "unknown",
                },
                "human_author": human,
            }
            for turn in turns
        },
    }
    return f"{text}---\n{json.dumps(facts, indent=2)}\n"


def _numbers(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}-{last}"


def trace(
    written: Written, turns: Iterable[TurnFacts], commit: str | None
) -> dict[str, Any]:
    """Make a record of Agent Trace 0.1. `commit`: None for the work tree."""
    contributors: dict[tuple[str, int], dict[str, str]] = {}
    for turn in turns:
        contributor = {"type": "ai"}
        model = turn.model
        if model:
            if "/" not in model:
                model = f"{turn.provider}/{model}"
            contributor["model_id"] = model[:250]
        contributors[turn.session, turn.turn] = contributor
    files = [
        {
            "path": path,
            "conversations": [
                {
                    "url": f"urn:uuid:{turn[0]}",
                    "contributor": contributors[turn],
                    "ranges": [{"start_line": a, "end_line": b} for a, b in ranges],
                }
                for turn, ranges in _ranges(
                    lines, lambda author: (author.thread_id, author.turn)
                )
            ],
        }
        for path, lines in written.items()
    ]
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


def _session_key(thread_id: str) -> str:
    return f"s_{hashlib.sha256(f'{TOOL}:{thread_id}'.encode()).hexdigest()[:14]}"


def _trace_key(author: LineAuthor) -> str:
    """Make the same key each time, so that a note does not change when it is written again."""
    edit = f"{author.thread_id}:{author.turn}:{author.how}"
    return f"{_session_key(author.thread_id)}::t_{hashlib.sha256(edit.encode()).hexdigest()[:14]}"
