"""Skills in sessions of the real program, and of Codex where `CODEX_BINARY` names it."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from codex_py.core.session import Session
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.agents import AgentServer, calls, waits
from tests.support.codex import CODEX, needs_codex
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.server import ScriptedServer
from tests.support.talk import talk

SAYS = [*ev_message("Done."), ev_completed()]


def write(
    folder: Path, name: str, text: str = "Do it.\n", about: str = "How to"
) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\ndescription: {about} {name}\n---\n{text}", encoding="utf-8")
    return path


def texts(request: Any, role: str = "user") -> list[str]:
    messages = [item for item in request.body["input"] if item.get("role") == role]
    return [part["text"] for item in messages for part in item["content"]]


def lists(request: Any) -> list[str]:
    found = texts(request, "developer")
    return [text for text in found if text.startswith("<skills_instructions>")]


def bodies(request: Any) -> list[str]:
    found = (re.match(r"<skill>\n<name>(.*)</name>", text) for text in texts(request))
    return [match[1] for match in found if match]


def test_the_model_is_told_of_skills_before_the_first_prompt(place: Workplace) -> None:
    write(place.home / "skills", "release")
    write(place.cwd / ".claude" / "skills", "lint")
    with ScriptedServer([SAYS] * 2) as server:
        assert place.run(server, "Hello").items[-1]["text"] == "Done."
        place.run(server, "Hello", "-c", "skills.include_instructions=false")
    (told,) = lists(server.requests[0])
    assert (
        f"- `r0` = `{place.home}/skills`\n- `r1` = `{place.cwd}/.claude/skills`\n"
        in told
    )
    assert (
        "### Available skills\n- lint: How to lint (file: r1/lint/SKILL.md)\n"
        "- release: How to release (file: r0/release/SKILL.md)\n### How" in told
    )
    assert told.endswith("\n</skills_instructions>")
    assert lists(server.requests[1]) == []


def test_a_repository_of_broken_skills_does_not_flood_the_user(
    place: Workplace,
) -> None:
    for number in range(60):
        write(place.cwd / ".agents" / "skills", f"s{number}").write_text(
            "broken", "utf-8"
        )
    with ScriptedServer([SAYS]) as server:
        said = place.run(server, "Hello")
    assert len([item for item in said.items if item["type"] == "error"]) == 50


def test_without_skills_the_model_is_told_of_none(place: Workplace) -> None:
    (place.home / "skills").mkdir()
    with ScriptedServer([SAYS]) as server:
        place.run(server, "Costs $5.")
    assert lists(server.requests[0]) == []
    assert texts(server.requests[0])[-1] == "Costs $5."


def test_the_text_of_a_skill_follows_the_prompt_that_names_it(place: Workplace) -> None:
    path = write(place.home / "skills", "release", "Tag it.\n")
    write(place.home / "skills", "release-notes")

    async def odd(session: Session) -> None:
        (
            await session.run_turn("[$a](b\0c) $ $$ [$](/) $:.- [$x](" + "y/" * 9_000)
        ).raise_for_error()

    with ScriptedServer([SAYS] * 4) as server:
        place.run(server, "Costs $5. Use $release.")
        place.run(server, f"Use [$any]({path}), not $release-not nor $RELEASE")
        place.run(server, "(`$release-notes`)")
        talk(place, server, odd)
    skill = f"<skill>\n<name>release</name>\n<path>{path}</path>\n{path.read_text('utf-8')}\n</skill>"
    assert texts(server.requests[0])[-2:] == ["Costs $5. Use $release.", skill]
    assert bodies(server.requests[1]) == ["release"]
    assert bodies(server.requests[2]) == ["release-notes"]
    assert bodies(server.requests[3]) == []


def test_a_name_of_two_skills_means_the_nearest_and_that_is_said(
    place: Workplace,
) -> None:
    own = write(place.home / "skills", "release", "Own.\n")
    theirs = write(place.cwd / ".agents" / "skills", "release", "Theirs.\n")
    trust = f'projects."{place.cwd}".trust_level="trusted"'
    with ScriptedServer([SAYS] * 2) as server:
        for given, winner, loser in (((), own, theirs), (("-c", trust), theirs, own)):
            said = place.run(server, "$release", *given)
            message = f"There are 2 skills named 'release': $release means {winner}, not {loser}."
            assert message in said.items[0]["message"]
            assert f"<path>{winner}</path>" in texts(server.requests[-1])[-1]
            assert len(bodies(server.requests[-1])) == 1


def test_broken_skills_and_a_list_that_is_cut_are_told(place: Workplace) -> None:
    write(place.home / "skills", "a", about="x" * 400)
    write(place.home / "skills", "b", about="y")
    broken = write(place.home / "skills", "c")
    broken.write_text("---\nname: c\n---\n", encoding="utf-8")
    with ScriptedServer([SAYS] * 3) as server:
        for tokens in (80, 18, 10):
            said = place.run(
                server, "Hello", "-c", f"skills.max_context_tokens={tokens}"
            )
            assert said.items[0]["message"].startswith(
                f"A skill cannot be used: {broken}:1: "
            )
            assert f"longer than {tokens} tokens" in said.items[1]["message"]
    lines = [
        re.findall(r"^- \w+: .*", lists(request)[0], re.MULTILINE)
        for request in server.requests
    ]
    assert len("\n".join(lines[0])) < 320
    assert lines[0][0].startswith("- a: xxxxx")
    assert "xx… (file: r0/a/SKILL.md)" in lines[0][0]
    assert lines[0][1] == "- b: y b (file: r0/b/SKILL.md)"
    assert lines[1] == ["- a: (file: r0/a/SKILL.md)", "- b: (file: r0/b/SKILL.md)"]
    assert lines[2] == ["- a: (file: r0/a/SKILL.md)"]


def test_a_resumed_thread_is_told_of_skills_that_changed_alone(
    place: Workplace,
) -> None:
    write(place.home / "skills", "a")
    with ScriptedServer([SAYS] * 4) as server:
        place.run(server, "one")
        place.rerun("resume", "--last", "two")
        path = write(place.home / "skills", "b")
        place.rerun("resume", "--last", "three")
        path.unlink()
        (place.home / "skills" / "a" / "SKILL.md").unlink()
        place.rerun("resume", "--last", "four")
    assert [len(lists(request)) for request in server.requests] == [1, 1, 2, 3]
    assert "- b: " in lists(server.requests[2])[1]
    assert "not there any more" in lists(server.requests[3])[2]


def test_the_list_of_skills_survives_compactions_and_resumes(
    place: Workplace,
) -> None:
    write(place.home / "skills", "named", "First text.\n")
    read = write(place.home / "skills", "read")
    write(place.home / "skills", "unused")
    cat = {"cmd": f"cat {read}"}

    async def begin(session: Session) -> None:
        await session.run_turn("$named")
        await session.run_turn("more")
        assert (await session.compact()).error is None

    async def go_on(session: Session) -> None:
        (await session.run_turn("go on")).raise_for_error()
        assert (await session.compact()).error is None
        (await session.run_turn("the end")).raise_for_error()

    command = [*ev_function_call("c", "exec_command", cat), ev_completed()]
    with ScriptedServer(
        [SAYS, command, SAYS, *[SAYS] * 4], check_prefix=False
    ) as server:
        thread_id = talk(place, server, begin)
        talk(place, server, go_on, resume=thread_id)
    assert [bodies(request) for request in server.requests] == [
        *[["named"]] * 4,
        *[["read", "named"]] * 3,
    ]
    for request in server.requests:
        assert len(lists(request)) == 1
    last = texts(server.requests[-1])
    assert "First text." in "".join(last)


def test_children_have_the_skills_and_the_instructions_of_folders_too(
    place: Workplace,
) -> None:
    write(place.home / "skills", "release")
    (place.cwd / "a").mkdir()
    (place.cwd / "a" / "AGENTS.md").write_text("Rules of a.", encoding="utf-8")
    spawn = calls("spawn_agent", message="$release a")
    server = AgentServer(
        [spawn, waits(), SAYS], [calls("exec_command", cmd="ls a"), SAYS]
    )
    with server:
        place.run(server, "go")
    first, last = server.of_children()
    assert [len(lists(request)) for request in server.requests] == [1] * len(
        server.requests
    )
    assert bodies(first) == ["release"]
    assert [text for text in texts(last) if "Rules of a." in text] != []
    assert [
        text for text in texts(server.of_parent()[-1]) if "Rules of a." in text
    ] == []


def test_commands_can_read_the_skills_of_the_home(place: Workplace) -> None:
    paths = [
        write(place.home / "skills", "a"),
        write(place.home.parent / ".agents" / "skills", "b"),
        write(place.home.parent / ".claude" / "skills", "c"),
    ]
    cat = {"cmd": f"cat {' '.join(map(str, paths))}"}
    turns = [[*ev_function_call("c", "exec_command", cat), ev_completed()], SAYS]
    with ScriptedServer(turns) as server:
        said = place.run(server, "go", "-s", "workspace-write")
    (command,) = (item for item in said.items if item["type"] == "command_execution")
    assert command["exit_code"] == 0
    assert command["aggregated_output"] == "".join(
        path.read_text("utf-8") for path in paths
    )


@needs_codex
def test_codex_lists_the_same_skills_and_gets_the_same_texts(place: Workplace) -> None:
    assert CODEX is not None
    (place.cwd / ".git").mkdir(exist_ok=True)
    (place.cwd / ".git" / "HEAD").touch()
    folders = (
        place.cwd / ".codex",
        place.cwd / ".agents",
        place.home,
        place.home.parent / ".agents",
    )
    for number, folder in enumerate(folders):
        write(folder / "skills", f"d{9 - number}")
    write(place.home / "skills", "deep/deep/deep/deep/deep/deep")
    path = write(place.home / "skills", "a", about="Use when: it")
    prompt = f"[$x]({path}) then $d6, x$d9, `$d7`. not $d99 or $D8"
    with ScriptedServer([SAYS] * 2) as server:
        place.configure(server)
        with (place.home / "config.toml").open("a", encoding="utf-8") as file:
            file.write("\n[analytics]\nenabled = false\n")
        subprocess.run(
            [CODEX, "exec", "--skip-git-repo-check", prompt],
            cwd=place.cwd,
            env=environment(place.home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=True,
        )
        place.rerun(prompt)
    listed = [
        [
            line.replace(root, roots[root])
            for line in lines
            for root in roots
            if f" {root}/" in line
        ]
        for request in server.requests
        for text in lists(request)
        for roots in [dict(re.findall(r"- `(r\d)` = `(.*)`", text))]
        for lines in [re.findall(r"^- .*SKILL\.md\)$", text, re.MULTILINE)]
    ]
    # Codex installs its own skills, which we then find as well.
    assert listed[0] == listed[1]
    assert [line.split(":")[0] for line in listed[1] if ".system" not in line] == [
        *("- d8", "- d9", "- a", "- d6", "- d7", "- deep")
    ]
    given = [
        [text for text in texts(r) if text.startswith("<skill>")]
        for r in server.requests
    ]
    assert given[0] == given[1]
    assert len(given[1]) == 4


def skills(place: Workplace, *args: str) -> subprocess.CompletedProcess[bytes]:
    return run_codex_py(["skills", *args], place.home, place.cwd)


def test_skills_are_listed_with_what_became_of_them(place: Workplace) -> None:
    place.home.joinpath("config.toml").touch()
    assert skills(place, "list").stdout.startswith(b"There are no skills here.")
    own = write(place.home / "skills", "a")
    theirs = write(place.cwd / ".claude" / "skills", "a", "Theirs.\n")
    broken = write(place.home / "skills", "b")
    broken.write_text("nothing", encoding="utf-8")
    done = skills(place, "list", "--json")
    rows = [
        {
            "name": "a",
            "description": "How to a",
            "path": str(path),
            "listed": True,
            **more,
        }
        for path, more in (
            (own, {"origin": "user", "wins": True}),
            (theirs, {"origin": "project", "wins": False}),
        )
    ]
    assert json.loads(done.stdout) == rows
    assert f"A skill cannot be used: {broken}:1: " in done.stderr.decode()
    assert f"a  (project, $a means another one)\n  How to a\n  {theirs}\n" in (
        skills(place, "list").stdout.decode()
    )


def test_skills_are_checked_in_the_folders_and_files_that_are_named(
    place: Workplace,
) -> None:
    write(place.cwd / "mine", "a")
    write(place.cwd / "good", "b").write_text(
        "---\nname: b\ndescription: x\n---\n", "utf-8"
    )
    (place.cwd / "bare").mkdir()
    done = skills(place, "check", "mine", "good", "none", "bare", "mine/a/SKILL.md")
    problem = "mine/a/SKILL.md:1: `name` is missing."
    assert (done.returncode, done.stdout.decode().splitlines()) == (
        1,
        [
            *(
                problem,
                "none: there is no such folder.",
                "bare: there is no SKILL.md in it.",
            ),
            problem,
        ],
    )
    assert skills(place, "check", "good").returncode == 0
    assert skills(place, "check").returncode == 2
