"""AGENTS.md of folders that a session did not start in.

Tests `app/features/nested_agents_md.py`.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from codex_py.core.session import Session
from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.support.program import Workplace
from tests.support.server import ScriptedServer
from tests.support.talk import talk

SAYS = [*ev_message("Done."), ev_completed()]


def runs(command: str, **arguments: Any) -> list[Any]:
    return [
        *ev_function_call("c", "exec_command", {"cmd": command, **arguments}),
        ev_completed(),
    ]


def write(folder: Path, text: str, name: str = "AGENTS.md") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def told(request: Any) -> list[str]:
    """The texts of the instructions of folders, each on one line."""
    users = [item for item in request.body["input"] if item.get("role") == "user"]
    texts = [part["text"] for item in users for part in item["content"]]
    found = (
        re.match(
            r"<note>\n# AGENTS\.md instructions for .*<INSTRUCTIONS>\n(.*)\n</INSTR",
            text,
            re.DOTALL,
        )
        for text in texts
    )
    return [match[1].strip().replace("\n", " ") for match in found if match]


PATCH = "*** Begin Patch\n*** Add File: a/b/new.txt\n+x\n*** End Patch"


@pytest.mark.parametrize(
    "call",
    [
        runs("ls", workdir="a/b"),
        runs("cat a/b/none.txt | head -3"),
        runs("sed -n 1,5p './a/b/x.py'"),
        [*ev_custom_tool_call("c", "apply_patch", PATCH), ev_completed()],
        [*ev_function_call("c", "view_image", {"path": "a/b/x.png"}), ev_completed()],
    ],
)
def test_a_call_brings_the_instructions_of_the_folders_that_it_leads_to(
    place: Workplace, call: list[Any]
) -> None:
    write(place.cwd, "Root.")
    write(place.cwd / "a", "Outer.")
    write(place.cwd / "a" / "b", "Inner.")
    write(place.cwd / "other", "Other.")
    with ScriptedServer([call, runs("ls a a/b"), SAYS]) as server:
        said = place.run(server, "go")
    assert [told(request) for request in server.requests] == [
        [],
        *[["Outer.", "Inner."]] * 2,
    ]
    notices = [item["message"] for item in said.items if item["type"] == "error"]
    assert notices == [
        f"The model is told the instructions for {place.cwd}/{path}."
        for path in ("a", "a/b")
    ]


def test_overrides_fallbacks_imports_and_the_budget_hold_for_them_too(
    place: Workplace,
) -> None:
    write(place.cwd / "a", "Override @more.md", "AGENTS.override.md")
    write(place.cwd / "a", "Hidden.")
    write(place.cwd / "a", "More.", "more.md")
    write(place.cwd / "b", "Fallback.", "CLAUDE.md")
    write(place.cwd / "c", "x" * 2_000)
    write(place.cwd / "d", "No room.")
    write(place.cwd / "e", "No room.")
    settings = (
        "-c",
        "project_doc_fallback_filenames=['CLAUDE.md']",
        "-c",
        "project_doc_max_bytes=1000",
    )
    with ScriptedServer([runs("ls a b c d e"), SAYS] * 2) as server:
        said = place.run(server, "go", *settings)
        place.run(server, "go", "-c", "project_doc_max_bytes=0")
    first, second, third = told(server.requests[1])
    assert first.startswith("Override @more.md  ---")
    assert first.endswith("---  More.")
    assert second == "Fallback."
    assert third.endswith("project_doc_max_bytes is used up]")
    assert 500 < third.count("x") < 990
    warning = [item["message"] for item in said.items if item["type"] == "error"][-1]
    assert warning.endswith("`project_doc_max_bytes` is used up.")
    assert any(
        "of 2000 bytes of" in item["message"]
        for item in said.items
        if "message" in item
    )
    assert told(server.requests[3]) == []


def test_links_out_of_the_project_and_folders_of_others_are_left_alone(
    place: Workplace,
) -> None:
    outside = place.cwd.parent / "outside"
    write(outside, "Outside.")
    write(place.cwd / "node_modules" / "x", "Vendor.")
    write(place.cwd / ".venv", "Hidden.")
    (place.cwd / "linked").symlink_to(outside)
    write(place.cwd / "file", "")
    (place.cwd / "file" / "AGENTS.md").unlink()
    (place.cwd / "file" / "AGENTS.md").symlink_to(outside / "AGENTS.md")
    command = f"ls linked file node_modules/x .venv ../outside {outside} / {'y' * 300} no/such"
    with ScriptedServer([runs(command), SAYS]) as server:
        said = place.run(server, "go")
    assert told(server.requests[1]) == []
    link = f"it is a link that leads out of {place.cwd}."
    assert [item["message"] for item in said.items if item["type"] == "error"] == [
        f"{place.cwd}/{name}/AGENTS.md cannot be read: {link}"
        for name in ("linked", "file")
    ]


def test_they_are_told_once_and_survive_compactions_resumes_and_rollbacks(
    place: Workplace,
) -> None:
    write(place.cwd / "a", "A.")
    write(place.cwd / "b", "B.")

    async def begin(session: Session) -> None:
        (await session.run_turn("one")).raise_for_error()

    async def go_on(session: Session) -> None:
        (await session.run_turn("two")).raise_for_error()
        (await session.compact()).raise_for_error()
        (await session.run_turn("three")).raise_for_error()
        session.rollback(1)
        (await session.run_turn("four")).raise_for_error()

    script = [runs("ls a"), SAYS, runs("ls a"), SAYS, SAYS, *[runs("ls a b"), SAYS] * 2]
    with ScriptedServer(script, check_prefix=False) as server:
        thread_id = talk(place, server, begin)
        talk(place, server, go_on, resume=thread_id)
    a, b = ["A."], ["A.", "B."]
    assert [told(request) for request in server.requests] == [
        [],
        a,
        a,
        a,
        a,
        a,
        b,
        a,
        b,
    ]


def test_the_files_that_an_agents_md_names_are_sent_with_it(place: Workplace) -> None:
    write(place.cwd, "See @docs/style.md, ask @alice.")
    write(place.cwd / "docs", "Tabs.", "style.md")
    write(place.home, "Mine: @own.md @../home.md")
    write(place.home, "Spaces.", "own.md")
    write(place.home.parent, "Outside.", "home.md")
    with ScriptedServer([SAYS]) as server:
        said = place.run(server, "go")
    (text,) = (
        part["text"]
        for item in server.requests[0].body["input"]
        for part in item["content"]
        if part["text"].startswith("# AGENTS.md instructions")
    )
    assert text.endswith(
        "\n\n<INSTRUCTIONS>\nMine: @own.md @../home.md\n\n--- "
        f"{place.home}/own.md ---\n\nSpaces.\n\n--- project-doc ---\n\n"
        f"See @docs/style.md, ask @alice.\n\n--- {place.cwd}/docs/style.md ---\n\nTabs.\n</INSTRUCTIONS>"
    )
    assert [item["message"] for item in said.items if item["type"] == "error"] == [
        f"{place.home}/AGENTS.md cannot import @../home.md: it is outside of {place.home}."
    ]
