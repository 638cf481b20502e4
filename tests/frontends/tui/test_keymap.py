import pytest

from codex_py.testing import Pause, ev_completed, ev_created, ev_function_call, ev_message
from tests.frontends.tui.terminals import IDLE, Start
from tests.support.program import Workplace
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

ANSWER = [*ev_message("Understood."), ev_completed()]


def _keymap(**actions: str) -> list[str]:
    """Options that set actions, whose context stands before two underscores."""
    return [
        part
        for name, keys in actions.items()
        for part in ("-c", f"tui.keymap.{name.replace('__', '.')}={keys}")
    ]


def _draft(program: PtyProgram, text: str) -> None:
    program.wait_for(f"\u203a {text}\n\n  {IDLE}")


@pytest.mark.parametrize(
    ("keys", "pressed"),
    [
        ('"ctrl-enter"', "\x1b[13;5u"),
        ('"ctrl-enter"', "\x1b[27;5;13~"),
        ('["f6", "alt-s"]', "\x1bs"),
        ('["f6", "alt-s"]', "\x1b[17~"),
        ('"ctrl-x s"', "\x18s"),
        ('"leader s"', "\x18s"),
        ('"leader s d"', "\x18sd"),
    ],
)
def test_a_prompt_is_sent_by_its_own_key_and_enter_begins_a_line(
    start: Start, keys: str, pressed: str
) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server, *_keymap(composer__submit=keys))
        program.wait_for(IDLE)
        program.type("one\rtwo")
        _draft(program, "one\n  two")
        program.type(pressed)
        program.wait_for("Understood.")
    assert server.requests[-1].input[-1]["content"][0]["text"] == "one\ntwo"


def test_keys_without_an_action_are_typed_and_question_mark_names_those_that_hold(
    start: Start,
) -> None:
    own = _keymap(
        composer__toggle_shortcuts='"f1"',
        editor__move_line_start='"alt-q"',
        global__open_transcript="[]",
        vim_normal__undo='"ctrl-u"',
    )
    with ScriptedServer([]) as server:
        program = start(server, *own, rows=40)
        program.wait_for("Without effect here: tui.keymap.vim_normal.undo")
        program.wait_for(IDLE)
        program.type("?b")
        _draft(program, "?b")
        # Ctrl-A has no action any more.
        program.type("\x01c\x1bqa")
        _draft(program, "a?bc")
        program.type("\x1bOP")
        program.wait_for("(no key)")
        assert "  F1 " in program.text
        program.press("esc")
        _draft(program, "a?bc")


def test_another_key_interrupts_and_esc_does_not(start: Start) -> None:
    with ScriptedServer([[ev_created(), Pause()]]) as server:
        program = start(server, *_keymap(chat__interrupt_turn='"f8"'), "Begin.")
        program.wait_for("f8 to interrupt")
        program.press("esc")
        program.wait_for("Press Esc again to go back")
        program.type("\x1b[19~")
        program.wait_for("Conversation interrupted")


def test_questions_lists_and_the_pager_have_keys_of_their_own(
    start: Start, place: Workplace
) -> None:
    own = _keymap(approval__approve='"ctrl-y"', list__move_down='"ctrl-j"', pager__close='"x"')
    call = ev_function_call(
        "call_1",
        "exec_command",
        {"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "so"},
    )
    with ScriptedServer([[*call, ev_completed()], ANSWER]) as server:
        program = start(server, *own, "Begin.")
        program.wait_for("Yes, proceed (Ctrl-Y)")
        program.settle()
        # It is no answer any more, and so it is text.
        program.type("y")
        program.wait_for("(Tab to answer)")
        assert not (place.cwd / "made").exists()
        program.press("backspace")
        program.wait_for("Would you like")
        program.type("\x19")
        program.wait_for("Understood.")
        assert (place.cwd / "made").exists()
        program.press("c-t")
        program.wait_for("Esc leaves")
        program.type("q")
        program.type("x")
        program.wait_for("Ask codex-py")


def test_a_key_with_two_actions_stops_the_start(start: Start, place: Workplace) -> None:
    with ScriptedServer([]) as server:
        program = start(server, *_keymap(composer__submit='"ctrl-t"'), columns=200)
        program.wait_for(
            "`tui.keymap.composer.submit`: `ctrl-t` is a key of `global.open_transcript` too"
        )
        assert program.wait() == 78
    with ScriptedServer([]) as server:
        moved = _keymap(composer__submit='"ctrl-t"', global__open_transcript='"f2"')
        start(server, *moved).wait_for(IDLE)
