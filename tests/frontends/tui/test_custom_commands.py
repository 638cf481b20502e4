"""Commands that are files of the project or of the user, in the terminal."""

from pathlib import Path

from tests.frontends.tui.terminals import Start
from tests.frontends.tui.test_composer import ANSWER, begin, prompts, send
from tests.support.plugins import installed
from tests.support.program import Workplace
from tests.support.server import ScriptedServer


def write(folder: Path, name: str, text: str) -> None:
    path = folder / ".claude" / "commands" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_command_of_the_project_is_offered_and_sent(
    start: Start, place: Workplace
) -> None:
    head = "---\ndescription: Tidy a part\nargument-hint: [part]\nallowed-tools: Bash\n---\n"
    write(place.cwd, "git/tidy.md", f"{head}Tidy $ARGUMENTS. See !`git status`.\n")
    write(place.cwd, "broken.md", "---\nno field\n---\n")
    with ScriptedServer([ANSWER] * 2) as server:
        program = begin(start, server, columns=120)
        program.wait_for("/project:broken cannot")
        program.wait_for("broken.md:2")
        program.type("/tid")
        program.wait_for("> /project:git:tidy [part]  Tidy a part")
        program.press("enter")
        program.wait_for("without effect here: `allowed-tools`, as no file")
        program.wait_for("commands as !`COMMAND`")
        program.wait_for("Understood.")
        assert prompts(server)[-1] == "Tidy . See !`git status`."
        program.type("/tidy the tests")
        program.press("enter")
        program.wait_until(lambda: len(server.requests) == 2)
        assert prompts(server)[-1] == "Tidy the tests. See !`git status`."
        program.settle()
        assert "\n".join(program.scrollback).count("`allowed-tools`") == 1


def test_the_model_of_a_command_is_used_for_its_turn_alone(
    start: Start, place: Workplace
) -> None:
    write(place.home.parent, "ask.md", "---\nmodel: gpt-5.4\n---\nAsk.\n")
    write(
        place.home.parent, "other.md", "---\nmodel: anthropic/claude-x\n---\nOther.\n"
    )
    with ScriptedServer([ANSWER] * 4) as server:
        program = begin(start, server, columns=120)
        for number, text in enumerate(["/user:ask", "plain", "/other"], 1):
            program.type(text + " ")
            program.press("enter")
            program.wait_until(lambda number=number: len(server.requests) == number)
            program.settle()
        program.wait_for("The model anthropic/claude-x is not used: it is one of")
        models = [request.body["model"] for request in server.requests]
        assert models == ["gpt-5.4", models[1], models[1]]
        assert models[1] != "gpt-5.4"


def test_a_command_of_a_plugin_has_its_name(start: Start, place: Workplace) -> None:
    installed(place.home, {"commands/run.md": "Run $1.\n"})
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server, columns=120)
        send(program, "/tools:run it")
        assert prompts(server)[-1] == "Run it."


def test_commands_of_a_project_come_with_its_trust(
    start: Start, place: Workplace
) -> None:
    write(place.cwd, "tidy.md", "Tidy.\n")
    with ScriptedServer([ANSWER]) as server:
        program = start(server, columns=120, trusted=False)
        program.wait_for("Do you trust what is in")
        program.type("y")
        program.wait_for("workspace-write")
        send(program, "/tidy ")
        assert prompts(server)[-1] == "Tidy."


def test_commands_of_a_project_that_is_not_trusted_are_not_there(
    start: Start, place: Workplace
) -> None:
    write(place.cwd, "tidy.md", "Tidy.\n")
    with ScriptedServer([ANSWER]) as server:
        program = start(server, columns=120, trusted=False)
        program.wait_for("Do you trust what is in")
        program.type("n")
        program.wait_for("read-only")
        program.type("/tidy ")
        program.press("enter")
        program.wait_for("no command /tidy.")
        assert server.requests == []
