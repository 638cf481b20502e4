"""The examples in `docs/architecture.md` fit the program."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import codex_py
from codex_py import SessionOptions, load_config, open_session
from codex_py.protocol.messages import input_text, message
from codex_py.protocol.stream import Prompt
from codex_py.testing import ev_completed, ev_function_call
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


FOLDERS = ("", "codex_py", "codex_py/app", "codex_py/frontends/tui", "tests")
"""The page names files from these folders on."""
PROSE = re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`([\w./-]+/[\w.-]+)`", PROSE)))
)
def test_each_file_that_the_page_names_is_there(name: str) -> None:
    assert any((ROOT / folder / name).exists() for folder in FOLDERS)


@pytest.mark.parametrize("diff", blocks("diff"))
def test_each_diff_applies(diff: str) -> None:
    done = subprocess.run(
        ["git", "apply", "--check", "-"],
        input=diff,
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.stderr == ""


def test_the_extension_ends_a_turn_that_has_used_its_tokens(tmp_path: Path) -> None:
    (example,) = blocks("python")
    public: dict[str, Any] = {
        name: getattr(codex_py, name) for name in codex_py.__all__
    }
    exec(
        "from collections.abc import AsyncGenerator, AsyncIterator\n"
        "from contextlib import asynccontextmanager\n" + example,
        public,
    )
    place = Workplace(tmp_path, tmp_path)

    async def error(server: ScriptedServer) -> str:
        (tmp_path / "config.toml").write_text(server.config_toml(), encoding="utf-8")
        surroundings = environment(place.home)
        config = load_config(cwd=tmp_path, environment=surroundings)
        opening = open_session(
            config,
            SessionOptions(),
            lambda _: None,
            environment=surroundings,
            extensions=[public["budget"](100)],
        )
        async with opening as session:
            result = await session.run_turn("Run it")
        assert result.error is not None
        return result.error.code

    call = [*ev_function_call("c1", "exec_command", {"cmd": "true"}), ev_completed()]
    with ScriptedServer([call]) as server:
        assert asyncio.run(error(server)) == "token_budget"
        assert len(server.requests) == 1


def test_the_wire_reads_an_answer() -> None:
    (diff,) = [diff for diff in blocks("diff") if "PlainWire" in diff]
    added = [line[1:] for line in diff.splitlines()[3:] if line.startswith("+")]
    module: dict[str, Any] = {}
    exec("\n".join(added), module)
    wire = module["PlainWire"]()
    prompt = Prompt("m", [message("user", [input_text("hello")])], "thread")
    assert b'"prompt":"hello"' in wire.body(prompt)
    done, completed = wire.decoder(prompt).feed('{"text": "yes"}')
    assert (done.item.text, type(completed).__name__) == ("yes", "Completed")
