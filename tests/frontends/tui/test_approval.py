from codex_py.testing import ScriptedServer, ev_completed, ev_function_call, ev_message
from codex_py.testing.events import Event
from tests.frontends.tui.terminals import Start
from tests.support.program import Workplace


def asks(command: str) -> list[Event]:
    arguments = {
        "cmd": command,
        "sandbox_permissions": "require_escalated",
        "justification": "Because it is needed.",
    }
    return [*ev_function_call("call_1", "exec_command", arguments), ev_completed()]


def test_a_yes_lets_the_command_run(start: Start, place: Workplace) -> None:
    with ScriptedServer([asks("touch made"), [*ev_message("Made."), ev_completed()]]) as server:
        program = start(server, "Make it.")
        program.wait_for("Would you like to run the following command?")
        assert "Because it is needed." in program.text
        assert "touch made" in program.text
        program.type("y")
        program.wait_for("Made.")
        assert (place.cwd / "made").exists()
        program.press("c-d")
        assert program.wait() == 0


def test_enter_alone_says_no(start: Start, place: Workplace) -> None:
    with ScriptedServer([asks("touch made"), [*ev_message("Well."), ev_completed()]]) as server:
        program = start(server, "Make it.")
        program.wait_for("Would you like to run the following command?")
        program.press("enter")
        program.wait_for("interrupted")
        assert not (place.cwd / "made").exists()
        program.press("c-d")
        assert program.wait() == 0
