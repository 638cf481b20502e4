from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codex_py.protocol.ids import new_thread_id
from codex_py.protocol.messages import encode_json
from codex_py.protocol.prompts import SUMMARY_OPENING
from codex_py.rollout.past import sent_prompts


def _said(text: str) -> tuple[str, dict[str, Any]]:
    content = [{"type": "input_text", "text": text}]
    return "response_item", {"type": "message", "role": "user", "content": content}


def _event(kind: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "event_msg", {"type": kind, **more}


BEGUN, COPIED = _event("task_started"), _event("token_count", info=None)
SUMMARY: tuple[str, dict[str, Any]] = (
    "compacted",
    {"message": "", "replacement_history": []},
)


def _write(
    home: Path, first_s: int, *lines: tuple[str, dict[str, Any]], fork_of: str = ""
) -> Path:
    """A session file whose lines are a second apart."""
    thread_id = new_thread_id()
    meta = {"id": thread_id, "timestamp": _stamp(first_s), "cwd": "/"}
    if fork_of:
        meta["forked_from_id"] = fork_of
    folder = home / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-2026-01-01T00-00-{first_s:02}-{thread_id}.jsonl"
    rows = [
        encode_json(
            {"timestamp": _stamp(first_s + n), "type": kind, "payload": payload}
        )
        + b"\n"
        for n, (kind, payload) in enumerate([("session_meta", meta), *lines])
    ]
    path.write_bytes(b"".join(rows))
    return path


def _stamp(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}.000Z"


def _read(path: Path) -> list[tuple[str, int]]:
    start = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    return [(each.text, int(each.time - start)) for each in sent_prompts(path)]


def test_prompts_have_their_times_and_those_taken_back_are_gone(tmp_path: Path) -> None:
    back = _event("thread_rolled_back", num_turns=1)
    path = _write(
        tmp_path, 0, BEGUN, _said("one"), BEGUN, _said("two"), back, BEGUN, _said("new")
    )
    assert _read(path) == [("one", 2), ("new", 7)]


def test_a_prompt_of_a_running_turn_is_told_apart(tmp_path: Path) -> None:
    path = _write(tmp_path, 0, BEGUN, _said("one"), _said("more"), BEGUN, _said("two"))
    assert [each.is_steered for each in sent_prompts(path)] == [False, True, False]


def test_prompts_before_a_compaction_are_marked(tmp_path: Path) -> None:
    path = _write(tmp_path, 0, BEGUN, _said("one"), SUMMARY, BEGUN, _said("two"))
    assert [each.is_compacted for each in sent_prompts(path)] == [True, False]


def test_a_copy_has_the_times_of_the_thread_that_it_is_of(tmp_path: Path) -> None:
    lines = (BEGUN, _said("old"), SUMMARY, BEGUN, _said("one"), BEGUN, _said("two"))
    # After the copy was made the thread went on.
    first = _write(tmp_path, 0, *lines, *[BEGUN] * 12, _said("later"))
    first_id = sent_prompts(first)[0].thread_id
    copied = (_said(f"{SUMMARY_OPENING} …"), _said("one"), _said("two"), COPIED)
    second = _write(tmp_path, 15, *copied, BEGUN, _said("own"), fork_of=first_id)
    assert _read(second) == [("old", 2), ("one", 5), ("two", 7), ("own", 21)]
    prompts = sent_prompts(second)
    assert [each.thread_id == first_id for each in prompts] == [True, True, True, False]
    assert [each.is_compacted for each in prompts] == [True, False, False, False]
    # Where the file of the other is gone, the times are those of the copy.
    first.unlink()
    assert _read(second) == [("one", 17), ("two", 18), ("own", 21)]


def test_a_thread_that_says_it_is_a_copy_of_itself_is_read_once(tmp_path: Path) -> None:
    path = _write(
        tmp_path, 0, _said("one"), COPIED, BEGUN, _said("two"), fork_of=new_thread_id()
    )
    own, claimed = (f'"{key}":"' for key in ("id", "forked_from_id"))
    text = path.read_text(encoding="utf-8")
    thread_id, other = (text.split(mark)[1].split('"')[0] for mark in (own, claimed))
    path.write_text(text.replace(other, thread_id), encoding="utf-8")
    assert [each.text for each in sent_prompts(path)] == ["one", "two"]
