"""`/agents`, and the questions of subagents."""

import threading
from typing import Any

import pytest

from codex_py.app.features.agents.child import ChildAgent
from codex_py.frontends.tui.agents import AgentNews, agent_row
from codex_py.protocol.event_items import AgentMessage
from codex_py.protocol.events import ItemCompleted
from codex_py.testing import RecordedRequest, ev_completed, ev_failed, ev_function_call
from tests.e2e.test_roles import Family, agent, runs, says, write
from tests.frontends.tui.terminals import Start
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

SIZES = [(120, 30), (80, 24), (40, 12)]


def test_the_row_of_an_agent_has_no_marks_and_says_that_it_waits() -> None:
    thread: Any = None
    news, agent, asking = (
        AgentNews(),
        ChildAgent(thread, "Ada", "", lambda _: None),
        list[str | None](),
    )
    news(
        ItemCompleted(
            AgentMessage(id="1", text="## Found\n\n**Two** in `*.py`, not 2 * 3 ** 4")
        )
    )
    row = agent_row(agent, news, asking)
    assert row.told == "pending init, 0 tokens, Found Two in *.py, not 2 * 3 ** 4"
    asking.append("Ada")
    assert row.told.startswith("waits for you, 0 tokens, ")


def words(program: PtyProgram) -> str:
    """What is on the screen, however wide its columns are."""
    return " ".join(program.text.split())


class Held:
    """A reply that waits until it is released."""

    def __init__(self, reply: Any) -> None:
        self.asked, self._released = threading.Event(), threading.Event()
        self._reply = reply

    def __call__(self, _: RecordedRequest) -> Any:
        self.asked.set()
        self._released.wait(120)
        return self._reply

    def release(self) -> None:
        self._released.set()


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_agents_are_listed_read_and_stopped(
    start: Start, place: Workplace, columns: int, rows: int
) -> None:
    write(
        place.home / "agents/poet.md",
        "---\nname: poet\ndescription: Writes.\n---\nWrite.\n",
    )
    verse, never = Held(says("Roses are red.")), Held(says("Violets."))
    family = Family(
        agent("poet", "verse"),
        agent("poet", "song"),
        verse=[runs("echo rhyme"), verse],
        song=[never],
    )
    with family.server() as server:
        program = start(server, "go", columns=columns, rows=rows)
        assert verse.asked.wait(120)
        assert never.asked.wait(120)
        program.wait_for("Working")
        program.wait_for("  Ada  $ echo rhyme")
        program.wait_for("  Alan  thinks")
        program.type("/agents")
        program.press("enter")
        program.wait_for("  Agents\n")
        program.wait_until(lambda: "> Ada (poet) running" in words(program))
        program.press("enter")
        program.wait_for("rhyme")
        # The conversation grows while it is read.
        verse.release()
        program.wait_for("Roses are red.")
        program.wait_for("Ada (poet)  completed")
        assert "stops it" not in program.text
        program.press("esc")
        program.wait_until(lambda: "> Ada (poet) completed" in words(program))
        # Those at work come first.
        assert words(program).index("Alan (poet)") < words(program).index(
            "> Ada (poet)"
        )
        program.press("up")
        program.wait_for("> Alan (poet)  running")
        program.press("enter")
        program.wait_for("Alan (poet)  running")
        program.wait_until(lambda: "> Alan" not in program.text)
        assert ("Ctrl-K stops it" in program.text) or columns == 40
        program.press("c-k")
        program.wait_for("Alan (poet)  interrupted")
        program.press("esc")
        program.wait_for("> Alan (poet)  interrupted")
        never.release()
        program.press("esc")
        program.wait_for("done")


def test_the_list_shows_what_the_agents_do_meanwhile(start: Start) -> None:
    held = Held(says("Roses are red."))
    family = Family({"message": "task"}, task=[held])
    with family.server() as server:
        program = start(server, "go")
        assert held.asked.wait(120)
        program.wait_for("esc to interrupt) 1 agent")
        program.type("/agents")
        program.press("enter")
        program.wait_for("> Ada  running, 0 tokens")
        held.release()
        program.wait_for("> Ada  completed, 120 tokens, Roses are red.")


def test_a_key_pressed_fast_is_none_of_the_list(start: Start, place: Workplace) -> None:
    held = Held(says("x"))
    family = Family({"message": "task"}, task=[held])
    with family.server() as server:
        program = start(server, "go")
        assert held.asked.wait(120)
        program.wait_for("esc to interrupt) 1 agent")
        program.type("/agents")
        program.press("enter")
        program.wait_for("> Ada  running")
        for key in ("down", "up", "enter", "down", "enter"):
            program.press(key)
        program.wait_until(
            lambda: "Ada  running" in program.text and "> Ada" not in program.text
        )
        # No letter stops it, or is for the list.
        program.type("so why")
        program.settle()
        program.press("esc")
        program.wait_for("> Ada  running")
        program.press("esc")
        program.wait_for("esc to interrupt) 1 agent")
        held.release()
        program.wait_for("done")


def test_the_question_of_a_subagent_has_its_name(
    start: Start, place: Workplace
) -> None:
    asking = ev_function_call(
        "c1",
        "exec_command",
        {"cmd": "touch made", "sandbox_permissions": "require_escalated"},
    )
    family = Family({"message": "task"}, task=[[*asking, ev_completed()], says("made")])
    with family.server() as server:
        program = start(server, "go")
        program.wait_for("Ada: Would you like to run the following command?")
        program.wait_for("  Ada  waits for you")
        program.settle(0.5)
        program.type("y")
        program.wait_for("done")
        assert "\u2714 Ada: You approved touch made" in "\n".join(program.scrollback)
    assert (place.cwd / "made").exists()


def test_esc_interrupts_the_agents_too(start: Start, place: Workplace) -> None:
    held = Held(says("x"))
    family = Family({"message": "task"}, task=[held])
    with family.server() as server:
        program = start(server, "go")
        assert held.asked.wait(120)
        program.press("esc")
        program.wait_for("Conversation interrupted")
        program.type("/agents")
        program.press("enter")
        program.wait_for("> Ada  interrupted")
        held.release()


def test_without_agents_there_is_a_hint(start: Start) -> None:
    with ScriptedServer([says("done")]) as server:
        program = start(server, "go")
        program.wait_for("done")
        program.type("/agents")
        program.press("enter")
        program.wait_for("no agent is open")


def test_an_agent_that_fails_has_a_line_at_once(start: Start) -> None:
    broken = Held([ev_failed("invalid_prompt", "beta boom")])
    never = Held(says("x"))
    family = Family(
        {"message": "alpha"}, {"message": "beta"}, alpha=[never], beta=[broken]
    )
    with family.server() as server:
        program = start(server, "go")
        assert never.asked.wait(120)
        assert broken.asked.wait(120)
        broken.release()
        program.wait_for("\u25a0 Alan failed: beta boom")
        # The other one goes on.
        program.wait_for("esc to interrupt) 1 agent")
        program.press("esc")
        program.wait_for("Conversation interrupted")
        assert "Ada failed" not in program.text
        never.release()
