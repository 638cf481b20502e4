"""Extensions of installed packages, as `docs/extensions.md` shows one."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py import CodexError, SessionOptions, load_config, open_session
from codex_py.testing import ev_completed, ev_message
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs/extensions.md").read_text(encoding="utf-8")


def block(start: str) -> str:
    """The code block of the documentation that begins so."""
    (found,) = re.findall(
        rf"^```\w+\n({re.escape(start)}.*?)^```$", DOC, re.MULTILINE | re.DOTALL
    )
    return found


def install(folder: Path, module: str) -> None:
    folder.mkdir()
    (folder / "codex_py_shout.py").write_text(module, encoding="utf-8")
    about = folder / "codex_py_shout-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: codex-py-shout\nVersion: 1.0\n", encoding="utf-8"
    )
    points = block('[project.entry-points."codex_py.extensions"]').splitlines()[1:]
    lines = ["[codex_py.extensions]", *(line.replace('"', "") for line in points)]
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


def configure(place: Workplace, server: ScriptedServer, table: str) -> None:
    place.configure(server)
    with (place.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write(table)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages"), *sys.path])
    monkeypatch.delitem(sys.modules, "codex_py_shout", raising=False)
    return tmp_path / "packages"


def last_message(place: Workplace) -> str | None:
    async def main() -> str | None:
        variables = environment(place.home)
        config = load_config(cwd=place.cwd, environment=variables)
        opening = open_session(
            config, SessionOptions(), lambda _: None, environment=variables
        )
        async with opening as session:
            return (await session.run_turn("go")).last_message

    return asyncio.run(main())


def says(text: str) -> list[dict[str, object]]:
    return [*ev_message(text), ev_completed()]


def test_an_installed_extension_works_once_it_is_named(
    place: Workplace, packages: Path
) -> None:
    install(packages, block("from codex_py import"))
    with ScriptedServer([says("one two three four"), says("one two")]) as server:
        configure(place, server, block("[extensions.shout]"))
        assert last_message(place) == "one two"
        assert "Say it in 3 words." in str(server.requests[1].input[-1])
    with ScriptedServer([says("one two three four")]) as server:
        place.configure(server)
        assert last_message(place) == "one two three four"


def test_one_that_fails_is_one_sentence(place: Workplace, packages: Path) -> None:
    install(packages, "import no_such_module\n")
    with ScriptedServer([]) as server:
        configure(place, server, "[extensions.shout]\n")
        with pytest.raises(
            CodexError, match="cannot be used: ModuleNotFoundError"
        ) as raised:
            last_message(place)
    assert raised.value.exit_code == 78


def test_one_that_is_not_installed_ends_the_program(place: Workplace) -> None:
    with ScriptedServer([]) as server:
        configure(place, server, "[extensions.missing]\n")
        outcome = place.rerun()
    assert outcome.code == 78
    assert (
        "no installed package has an extension 'missing'"
        in f"{outcome.err}{outcome.events}"
    )
    assert "Traceback" not in outcome.err


def test_a_project_names_none(place: Workplace) -> None:
    folder = place.cwd / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text("[extensions.missing]\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", place.cwd], check=True)
    with ScriptedServer([says("done")]) as server:
        trusted = f"[projects.{json.dumps(str(place.cwd))}]\ntrust_level = 'trusted'\n"
        configure(place, server, trusted)
        outcome = place.rerun()
    assert outcome.code == 0
    assert (
        f"Ignored `extensions` in {folder}/config.toml: a project may not set this."
        in str(outcome.events)
    )


def test_nothing_is_looked_up_that_is_not_named(place: Workplace) -> None:
    with ScriptedServer([says("done")]) as server:
        outcome = place.run(server, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert "codex_py.app.session" in outcome.err
    assert "importlib.metadata" not in outcome.err
