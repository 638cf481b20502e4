"""Questions about calls: what they show, and what each answer does."""

import pytest

from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from codex_py.testing.events import Event
from tests.frontends.tui.terminals import Start, leave
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

EXCLUDED = (
    "sandbox_workspace_write={exclude_slash_tmp=true,exclude_tmpdir_env_var=true}"
)
QUESTION = "Would you like to run the following command?"
PATCH = (
    "*** Begin Patch\n*** Add File: a.py\n+import os\n+print(os.environ)\n*** End Patch"
)


def asks(command: str, name: str = "call_1", **more: object) -> list[Event]:
    arguments = {
        "cmd": command,
        "sandbox_permissions": "require_escalated",
        "justification": "Because it is needed.",
        **more,
    }
    return [*ev_function_call(name, "exec_command", arguments), ev_completed()]


def says(text: str) -> list[Event]:
    return [*ev_message(text), ev_completed()]


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_a_yes_lets_the_command_run(
    start: Start, place: Workplace, columns: int
) -> None:
    with ScriptedServer([asks("touch made"), says("Made.")]) as server:
        program = start(server, "Make it.", columns=columns)
        program.wait_for(QUESTION)
        program.wait_for("No, and stop here (n)")
        program.wait_for("Because it is needed.")
        assert "  $ touch made" in program.lines
        program.type("y")
        program.wait_for("Made.")
        assert "\u2714 You approved touch made" in "\n".join(program.scrollback)
        assert (place.cwd / "made").exists()
        leave(program)


def test_a_declined_command_is_told_of_once_with_the_reason_below_it(
    start: Start,
) -> None:
    with ScriptedServer([asks("touch made"), says("Well.")]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.type("f")
        program.wait_for("What should be done instead?")
        program.type("Leave it.")
        program.wait_for("> Leave it.")
        program.press("enter")
        program.wait_for("Well.")
        told = "\n".join(program.scrollback)
        assert told.count("\u2717") == 1
        head = told.splitlines().index("\u2717 Declined touch made")
        assert "Leave it." in told.splitlines()[head + 1]


@pytest.mark.parametrize("keys", [["enter"], ["esc"], ["c-c"], ["c-d"]])
def test_enter_alone_says_no(start: Start, place: Workplace, keys: list[str]) -> None:
    with ScriptedServer([asks("touch made"), says("Well.")]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.press(*keys)
        program.wait_for("Conversation interrupted")
        assert QUESTION not in program.text
        assert not (place.cwd / "made").exists()
        leave(program)


def test_a_no_with_a_word_to_it_lets_the_turn_go_on(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([asks("touch made"), says("As you like.")]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.type("f")
        program.wait_for("What should be done instead?")
        program.type("Use mkdir.")
        program.press("enter")
        program.wait_for("As you like.")
        assert not (place.cwd / "made").exists()
    output = server.requests[-1].body["input"][-1]["output"]
    assert output == "[ERROR:ApprovalDenied] exec command rejected by user: Use mkdir."


def test_a_yes_for_the_session_is_not_asked_for_again(start: Start) -> None:
    replies = [asks("touch made"), asks("touch made", "call_2"), says("Twice.")]
    with ScriptedServer(replies) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.type("a")
        program.wait_for("Twice.")


def test_a_yes_with_a_rule_is_written_down(start: Start, place: Workplace) -> None:
    replies = [asks("touch made", prefix_rule=["touch"]), says("Made.")]
    with ScriptedServer(replies) as server:
        program = start(server, "Make it.")
        program.wait_for("commands that start with `touch`")
        program.type("p")
        program.wait_for("Made.")
    rules = (place.home / "rules" / "default.rules").read_text(encoding="utf-8")
    assert 'pattern=["touch"]' in rules


@pytest.mark.parametrize(
    ("columns", "rows", "label"),
    [
        (60, 24, "commands that start with"),
        (80, 24, "commands that start with `df`"),
        (140, 45, "commands that start with `df`"),
        (40, 10, "Yes, always: `df`"),
    ],
)
def test_a_known_prefix_is_offered_and_shown_in_full(
    start: Start, place: Workplace, columns: int, rows: int, label: str
) -> None:
    with ScriptedServer(
        [asks("df ."), says("Done."), asks("df /"), says("Well.")]
    ) as server:
        program = start(server, "Look.", columns=columns, rows=rows)
        program.wait_for(label)
        program.type("p")
        program.wait_for("Done.")
        program.type("Again.")
        program.press("enter")
        program.wait_for("Well.")
        assert "You approved" not in program.text.partition("Again.")[2]
        leave(program)
    rules = (place.home / "rules" / "default.rules").read_text(encoding="utf-8")
    assert rules == 'prefix_rule(pattern=["df"], decision="allow")\n'


def test_a_prefix_that_does_not_fit_is_not_offered(start: Start) -> None:
    words = ["touch", "a" * 30]
    with ScriptedServer([asks(" ".join(words), prefix_rule=words)]) as server:
        program = start(server, "Make it.", columns=40)
        program.wait_for("No, and stop here (n)")
        assert "(a)" in program.text
        assert "(p)" not in program.text


def test_a_shell_of_the_workspace_is_shown_and_so_is_another_folder(
    start: Start, place: Workplace
) -> None:
    (place.cwd / "sub").mkdir()
    arguments = {
        "command": ["./bash", "-lc", "git status"],
        "workdir": "sub",
        "sandbox_permissions": "require_escalated",
    }
    call = [*ev_function_call("call_1", "shell", arguments), ev_completed()]
    with ScriptedServer([call, says("Well.")]) as server:
        program = start(server, "Look.", columns=200)
        program.wait_for(QUESTION)
        program.wait_for("$ ./bash -lc 'git status'")
        assert f"  In the folder {place.cwd / 'sub'}" in program.lines
        # The model can change that shell: a yes holds once.
        program.wait_for("2. No, and say what to do instead (f)")
        assert "in this session" not in program.text
        program.type("n")
        program.wait_for("Conversation interrupted")
        assert f"./bash -lc 'git status' in {place.cwd / 'sub'}" in "\n".join(
            program.scrollback
        )


def test_a_long_command_is_folded_and_shown_whole_when_asked_for(start: Start) -> None:
    command = "\n".join(f"echo line {n:03}" for n in range(100))
    with ScriptedServer([asks(command), says("Well.")]) as server:
        program = start(server, "Make it.", rows=24)
        program.wait_for(QUESTION)
        program.wait_for("lines (v shows all)")
        program.wait_for("echo line 099")
        assert "echo line 050" not in program.text
        program.type("v")
        program.wait_for("What is to be decided")
        for _ in range(2):
            program.press("pagedown")
        program.wait_for("echo line 050")
        # No key of the overlay answers.
        program.type("y1")
        program.press("enter")
        program.settle()
        program.press("esc")
        program.wait_for(QUESTION)
        program.type("n")
        program.wait_for("Conversation interrupted")


def test_edits_are_asked_about_with_their_diff(start: Start, place: Workplace) -> None:
    replies = [
        [*ev_custom_tool_call("call_1", "apply_patch", PATCH), ev_completed()],
        says("Written."),
    ]
    with ScriptedServer(replies) as server:
        program = start(server, "-a", "untrusted", "Write it.")
        program.wait_for("Would you like to make the following edits?")
        program.wait_for("1 +import os")
        program.type("y")
        program.wait_for("Written.")
    assert (place.cwd / "a.py").exists()


def test_edits_elsewhere_are_named_with_their_first_slash(
    start: Start, place: Workplace
) -> None:
    elsewhere = place.cwd.parent / "elsewhere"
    elsewhere.mkdir()
    (place.cwd / "link").symlink_to(elsewhere)
    patch = f"*** Begin Patch\n*** Add File: {elsewhere}/a\n+a\n*** Add File: link/b\n+b\n*** End Patch"
    replies = [[*ev_custom_tool_call("call_1", "apply_patch", patch), ev_completed()]]
    with ScriptedServer(replies) as server:
        options = ("-a", "on-request", "-s", "workspace-write", "-c", EXCLUDED)
        program = start(server, *options, "Write it.", columns=240)
        program.wait_for("Would you like to make the following edits?")
        program.wait_for(f"writes outside of the sandbox: {elsewhere}/a, {elsewhere}/b")
        program.wait_for(f"Added {elsewhere}/a (+1 -0)")
        program.type("n")
        program.wait_for("Conversation interrupted")


def test_a_question_waits_until_a_list_is_closed(
    start: Start, place: Workplace
) -> None:
    pause = Pause()
    first = [ev_created(), pause, *asks("touch made")]
    with ScriptedServer([first, says("Well.")]) as server:
        program = start(server, "Make it.")
        program.wait_for("Working")
        program.type("/theme")
        program.press("enter")
        program.wait_for("Background")
        pause.until.set()
        program.wait_for("1 question waits")
        assert QUESTION not in program.text
        program.press("esc")
        program.wait_for(QUESTION)
        program.type("y")
        program.wait_for("Well.")


def test_the_cursor_is_hidden_while_a_question_is_open(start: Start) -> None:
    with ScriptedServer([asks("touch made"), says("Not made.")]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.settle()
        assert program.screen.cursor.hidden
        program.type("why ")
        program.wait_for("\u203a why")
        program.settle()
        assert not program.screen.cursor.hidden
