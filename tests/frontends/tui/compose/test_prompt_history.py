import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from codex_py.frontends.tui.compose.prompt_history import PromptHistory


def read(path: Path | None) -> list[str]:
    async def load() -> list[str]:
        history = PromptHistory(path, None)
        await history.load()
        history.close()
        return list(history.entries)

    return asyncio.run(load())


def write(
    path: Path | None, *texts: str, max_bytes: int | None = None
) -> PromptHistory:
    history = PromptHistory(path, max_bytes)
    for text in texts:
        history.add(text, "session")
    history.close()
    return history


def line(text: str) -> str:
    return json.dumps({"session_id": "s", "ts": 1, "text": text}) + "\n"


def test_texts_come_back_newest_first_and_once(tmp_path: Path) -> None:
    path = tmp_path / "home" / "history.jsonl"
    history = write(path, "one", "two\n\u00fc", "one")
    assert list(history.entries) == ["one", "two\n\u00fc"]
    assert read(path) == ["one", "two\n\u00fc"]
    entry = json.loads(path.read_text(encoding="utf-8").splitlines()[1])
    assert entry == {"session_id": "session", "ts": entry["ts"], "text": "two\n\u00fc"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_damaged_lines_are_passed_over_and_the_next_one_is_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "history.jsonl"
    damaged = b'\xff\n[1]\n{"text": 7}\nnull\n' + b"[" * 100_000 + b'\n{"text": "cut o'
    path.write_bytes(line("good").encode() + damaged)
    write(path, "new")
    assert read(path) == ["new", "good"]


def test_a_file_beyond_its_bound_loses_its_oldest_lines(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write(path, *(f"prompt {n}" for n in range(100)), max_bytes=2_000)
    assert path.stat().st_size <= 2_000
    kept = read(path)
    assert kept == [f"prompt {n}" for n in range(99, 99 - len(kept), -1)]
    assert len(kept) > 20


def test_the_newest_text_is_kept_however_long_it_is(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write(path, "old", "x" * 5_000, max_bytes=1_000)
    assert read(path) == ["x" * 5_000]


def test_without_a_file_texts_are_kept_for_this_program(tmp_path: Path) -> None:
    assert list(write(None, "one").entries) == ["one"]
    assert list(tmp_path.iterdir()) == []


def test_a_history_that_is_no_file_costs_the_history_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        assert list(write(tmp_path / name, "one").entries) == ["one"]
        assert read(tmp_path / name) == []


def test_programs_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    script = (
        "import sys; from pathlib import Path\n"
        "from codex_py.frontends.tui.compose.prompt_history import PromptHistory\n"
        "history = PromptHistory(Path(sys.argv[1]), None)\n"
        "for n in range(50): history.add(f'{sys.argv[2]} {n}', 's')\n"
        "history.close()\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(path), name])
        for name in "abc"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert sorted(read(path)) == sorted(
        f"{name} {n}" for name in "abc" for n in range(50)
    )
