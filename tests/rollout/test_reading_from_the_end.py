"""A session is read from its last compaction on: with the same result as if all of it were read.

Tests `rollout/entries.py`.
"""

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol.stream import Usage
from codex_py.rollout.entries import (
    RolloutEntry,
    compacted,
    context_of,
    paired,
    without_last_turns,
)
from codex_py.rollout.reader import StoredSession, read_session
from codex_py.rollout.records import MAX_LINE_BYTES, SessionMeta, read_token_count
from tests.rollout.builders import (
    assistant,
    call,
    developer,
    meta,
    numbered,
    output,
    record,
    session_file,
    user,
)
from tests.support.searches import sample

_NO_USAGE = Usage()


def _read_forward(
    files: list[tuple[Path, int | None]], meta: SessionMeta
) -> StoredSession:
    """Read every line of the files, each up to the ordinal beside it, decoding all of them."""
    entries: list[RolloutEntry] = []
    usage, last_usage, model, damaged = _NO_USAGE, _NO_USAGE, None, 0
    for path, end in files:
        texts = path.read_text("utf-8").split("\n")[1:-1]
        for before, text in pairwise(["", *texts]):
            if text == before:
                continue
            try:
                line: dict[str, Any] = json.loads(text)
            except ValueError:
                damaged += 1
                continue
            if end is not None and line["ordinal"] >= end:
                break
            kind, payload = line["type"], line["payload"]
            if kind == "response_item":
                entries.append(RolloutEntry.of(payload))
            elif kind == "turn_context":
                model = payload.get("model", model)
            elif kind == "compacted":
                entries, last_usage = compacted(entries, payload), _NO_USAGE
                damaged = 0 if "replacement_history" in payload else damaged
            elif payload.get("type") == "token_count":
                usage, last_usage = read_token_count(payload) or (usage, last_usage)
            elif payload.get("type") == "thread_rolled_back":
                entries, last_usage = (
                    without_last_turns(entries, payload["num_turns"]),
                    _NO_USAGE,
                )
    return StoredSession(
        path=files[-1][0],
        meta=meta,
        items=paired(entries),
        usage=usage,
        last_usage=last_usage,
        model=model,
        context=context_of(entries),
        damaged_lines=damaged,
    )


class _Generator:
    """Makes lines that a session may have, in any order."""

    def __init__(self, seed: int, *, compactions: float) -> None:
        self._random = random.Random(seed)
        self._weights = [30, 12, 12, 6, 6, 3, 3, 2, 4, 2, compactions, compactions]
        self._count = 0

    def lines(self, count: int, *, is_native: bool) -> Iterator[str]:
        for _ in range(count):
            self._count += 1
            (kind, payload), is_damaged = self._record(), self._random.random() < 0.03
            if is_native:
                line = numbered(
                    self._count, kind, payload, metadata={"history_sequence": 1}
                )
            elif self._random.random() < 0.1:
                line = json.dumps({"payload": payload, "type": kind})
            else:
                line = record(kind, payload)
            if not is_damaged:
                yield line
            else:
                # As by a kill: an event that nobody reads has no more to lose.
                cut = line[: self._random.randrange(10, len(line))]
                yield cut if kind != "event_msg" else line

    def _record(self) -> tuple[str, Any]:
        texts = [
            lambda: user(self._text()),
            lambda: call(self._call_id()),
            lambda: output(self._call_id(), self._text()),
            lambda: assistant(self._text()),
            lambda: user(f"<environment_context>{self._count}"),
            lambda: developer(f"<permissions instructions>{self._count}"),
        ]
        (chosen,) = self._random.choices(range(12), self._weights)
        if chosen < len(texts):
            return "response_item", json.loads(texts[chosen]())
        match chosen:
            case 6:
                return "turn_context", self._random.choice(
                    [{"model": f"m{self._count}"}, {}]
                )
            case 7:
                turns = self._random.choice([1, 2, 9])
                return "event_msg", {"type": "thread_rolled_back", "num_turns": turns}
            case 8:
                usage = {"input_tokens": self._count}
                info = {"total_token_usage": usage, "last_token_usage": usage}
                return "event_msg", {
                    "type": "token_count",
                    "info": self._random.choice([info, None]),
                }
            case 9:
                return "event_msg", {"type": "agent_message", "message": self._text()}
            case 10:
                return "compacted", {"message": f"summary {self._count}"}
            case _:
                kept = [user("kept"), user(f"summary {self._count}")]
                history = [json.loads(item) for item in kept]
                return "compacted", {"message": "…", "replacement_history": history}

    def _call_id(self) -> str:
        return f"c{self._random.randrange(5)}"

    def _text(self) -> str:
        words = [
            "word ",
            "é",
            '"compacted"',
            '{"type":"compacted"}\n',
            "\\",
            "\U0001f600",
        ]
        longest = self._random.choice([1, 10, 1000, 10_000])
        return self._random.choice(words) * self._random.randrange(longest)


@pytest.mark.parametrize("seed", sample(range(30)))
def test_reading_from_the_last_compaction_gives_what_reading_everything_gives(
    tmp_path: Path, seed: int
) -> None:
    made = _Generator(seed, compactions=[0, 0.3, 1, 5][seed % 4])
    session = meta()
    first = record("session_meta", session.payload())
    path = session_file(
        tmp_path, [first, *made.lines(120, is_native=False)], session.id
    )
    assert _decoded(read_session(path)) == _decoded(
        _read_forward([(path, None)], session)
    )


@pytest.mark.parametrize("seed", sample(range(20)))
def test_so_it_does_in_a_native_session_that_goes_on_from_others(
    tmp_path: Path, seed: int
) -> None:
    made = _Generator(seed, compactions=[0, 0.5, 1, 3][seed % 4])
    files: list[tuple[Path, int | None]] = []
    base: dict[str, Any] | None = None
    for generation in range(3):
        payload = {**meta().payload(), "history_mode": "paginated"}
        if base is not None:
            payload["history_base"] = base
        lines = list(made.lines(40, is_native=True))
        stamp = f"2026-11-20T1{generation}-00-00"
        path = session_file(
            tmp_path,
            [numbered(0, "session_meta", payload), *lines],
            payload["id"],
            stamp=stamp,
        )
        # Some of the last lines are not shared.
        end = 40 * generation + 30 + seed % 10
        base = {"thread_id": payload["id"], "end_ordinal_exclusive": end}
        files.append((path, end))
    files[-1] = (files[-1][0], None)
    stored = read_session(files[-1][0])
    assert _decoded(stored) == _decoded(_read_forward(files, stored.meta))


def _decoded(stored: StoredSession) -> list[Any]:
    values = [
        getattr(stored, name) for name in StoredSession.__slots__ if name != "items"
    ]
    return [*values, [json.loads(item) for item in stored.items]]


def test_history_that_a_compaction_replaced_is_not_read(tmp_path: Path) -> None:
    session = meta()
    lines = [
        record("session_meta", session.payload()),
        record("turn_context", {"model": "m"}),
        "damaged",
        record(
            "compacted",
            {"message": "…", "replacement_history": [json.loads(user("kept"))]},
        ),
        record("response_item", json.loads(user("new"))),
    ]
    stored = read_session(session_file(tmp_path, lines, session.id))
    assert stored.items == [user("kept"), user("new")]
    assert (stored.model, stored.damaged_lines) == ("m", 0)


@pytest.mark.parametrize("kept_bytes", [1, 3_000_000])
@pytest.mark.parametrize("away", [-2, -1, 0, 1, 2, 50, 150])
def test_a_compaction_is_found_wherever_the_file_is_cut_into_blocks(
    tmp_path: Path, away: int, kept_bytes: int
) -> None:
    session, kept = meta(), user("x" * kept_bytes)
    compaction = record(
        "compacted", {"message": "…", "replacement_history": [json.loads(kept)]}
    )
    filler = record("event_msg", {"type": "agent_message", "message": "?"})
    # What follows it fills a block, but for some bytes.
    filler = filler.replace("?", "?" * ((1 << 20) - len(filler) - away))
    # It would be counted if it was read.
    damaged = ["damaged"] * 200_000
    lines = [record("session_meta", session.payload()), *damaged, compaction, filler]
    stored = read_session(session_file(tmp_path, lines, session.id))
    assert (stored.items, stored.damaged_lines) == ([kept], 0)


def test_a_compaction_behind_half_a_line_is_found(tmp_path: Path) -> None:
    session = meta()
    lost = record("response_item", json.loads(user("lost")))
    compaction = record(
        "compacted", {"replacement_history": [json.loads(user("kept"))]}
    )
    lines = [record("session_meta", session.payload()), lost, lost[:50] + compaction]
    stored = read_session(session_file(tmp_path, lines, session.id))
    assert (stored.items, stored.damaged_lines) == ([user("kept")], 0)


@pytest.mark.parametrize("compacts", [False, True])
def test_a_line_that_is_too_long_for_an_item_is_skipped_as_damaged(
    tmp_path: Path, compacts: bool
) -> None:
    session = meta()
    path = session_file(
        tmp_path, [record("session_meta", session.payload())], session.id
    )
    before, after = user("before"), user("after")
    kept = {"message": "…", "replacement_history": [json.loads(before)]}
    with path.open("ab") as file:
        kind = "compacted" if compacts else "response_item"
        file.write(
            record(kind, kept if compacts else json.loads(before)).encode() + b"\n"
        )
        # Zeros, as a crash of the machine leaves them.
        file.truncate(file.tell() + 2 * MAX_LINE_BYTES)
    with path.open("ab") as file:
        file.write(b"\n" + record("response_item", json.loads(after)).encode() + b"\n")
    stored = read_session(path)
    assert (stored.items, stored.damaged_lines) == ([before, after], 1)
