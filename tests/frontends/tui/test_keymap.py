import re

import pytest

from codex_py.config.config import load_config
from codex_py.errors import ConfigError
from codex_py.frontends.tui.keymap import COMPOSING, Keymap
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
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
        # Right behind it, the keys would be a part of it.
        program.read_for(0.3)
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
        vim_search__next='"ctrl-u"',
    )
    with ScriptedServer([]) as server:
        program = start(server, *own, rows=40)
        program.wait_for("Without effect here: tui.keymap.vim_search.next")
        program.wait_for(IDLE)
        program.type("?b")
        _draft(program, "?b")
        # Ctrl-A has no action any more.
        program.type("\x01c\x1bqa")
        _draft(program, "a?bc")
        program.type("\x1bOP")
        program.wait_for("no key ")
        assert "  F1 " in program.text
        program.press("esc")
        _draft(program, "a?bc")


def test_a_key_that_has_no_name_in_codex_is_not_named_where_the_keymap_takes_it(
    start: Start,
) -> None:
    own = _keymap(global__copy='"ctrl-o"', editor__move_left='["left", "ctrl-b"]')
    call = ev_function_call("call_1", "exec_command", {"cmd": "sleep 417"})
    with ScriptedServer([[*call, ev_completed()], ANSWER]) as server:
        program = start(server, *own, "-s", "danger-full-access", "Begin.", rows=40)
        program.wait_for("Running sleep 417")
        program.wait_for("esc to interrupt")
        assert "ctrl-b" not in program.text
        program.paste("a line\n" * 40)
        program.wait_for("[Pasted 40 lines]")
        program.press("c-c")
        program.type("?")
        program.wait_for("show these keys")
        assert "Ctrl-B" not in program.text


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
    own = _keymap(
        approval__approve='"ctrl-y"', list__move_down='"ctrl-j"', pager__close='"x"'
    )
    call = ev_function_call(
        "call_1",
        "exec_command",
        {
            "cmd": "touch made",
            "sandbox_permissions": "require_escalated",
            "justification": "so",
        },
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


def _checked(*options: str) -> Keymap:
    environment, own = {"HOME": "/"}, options[1::2]
    return Keymap(
        load_config(
            cwd="/", environment=environment, overrides=own, ignore_user_config=True
        )
    )


# As the released Codex 0.171 takes and refuses them.
@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            {"composer__submit": '"ctrl-c"'},
            "`ctrl-c` interrupts and leaves; take another key",
        ),
        ({"chat__interrupt_turn": '"ctrl-d"'}, "`ctrl-d` leaves; take another key"),
        (
            {"composer__submit": '"ctrl-v"'},
            "`ctrl-v` pastes an image; take another key",
        ),
        (
            {"global__copy": '"shift-tab"'},
            "`shift-tab` switches to Plan mode; take another key",
        ),
        (
            {"editor__move_left": '"ctrl-t"'},
            "`ctrl-t` is a key of `global.open_transcript` too",
        ),
        (
            {"composer__submit": '"ctrl-a"'},
            "`ctrl-a` is a key of `editor.move_line_start` too",
        ),
        ({"approval__approve": '"down"'}, "`down` is a key of `list.move_down` too"),
        ({"vim_normal__undo": '"x"'}, "`x` is a key of `vim_normal.delete_char` too"),
        (
            {"composer__submit": '["ctrl-x", "ctrl-x ctrl-e"]'},
            "`ctrl-x ctrl-e` cannot go with the keys of `composer.submit` too",
        ),
        ({"global__leader": '"ctrl-z"'}, "`ctrl-z` is no single key that is free"),
        (
            {"global__leader": '"ctrl-x ctrl-b"'},
            "`ctrl-x ctrl-b` is no single key that is free",
        ),
        ({"global__leader": '"a"'}, "`a` is no single key that is free"),
        (
            {"global__leader": '["ctrl-a", "f12"]', "composer__submit": '"leader s"'},
            "`ctrl-a s` cannot go with the keys of `editor.move_line_start` too",
        ),
    ],
)
def test_keys_that_codex_refuses_are_refused(own: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        _checked(*_keymap(**own))


@pytest.mark.parametrize(
    "own",
    [
        {"composer__submit": '["ctrl-s", "ctrl-s", "ctrl-z"]'},
        {
            "composer__submit": '"shift-enter"',
            "editor__insert_newline": '["enter", "ctrl-j"]',
        },
        {"composer__submit": "[]", "chat__interrupt_turn": "[]", "list__cancel": "[]"},
        {"global__leader": "[]", "composer__submit": '"leader s"'},
        {"approval__approve": '"ctrl-c"', "editor__move_left": '"ctrl-c"'},
        {"vim_normal__undo": '"ctrl-t"', "vim_operator__motion_left": '"ctrl-h"'},
    ],
)
def test_keys_that_codex_takes_are_taken(own: dict[str, str]) -> None:
    _checked(*_keymap(**own))


def test_a_leader_may_be_one_of_several_and_what_follows_no_key_of_ours_is_kept() -> (
    None
):
    keymap = _checked(
        *_keymap(global__leader='["f11", "f12"]', composer__submit='"leader s"')
    )
    assert keymap.keys("composer.submit") == ["f11 s", "f12 s"]
    assert keymap.pressed("", ("f12",), "", COMPOSING) == ((), "")
    assert keymap.pressed("", ("s",), "s", COMPOSING) == (("c-m",), "")
    keymap = _checked(*_keymap(global__copy='"leader y"'))
    assert keymap.pressed("", ("c-x",), "", COMPOSING) == ((), "")
    # Emacs has it.
    assert keymap.pressed("", ("c-e",), "", COMPOSING) == (("c-x", "c-e"), "")


@pytest.mark.parametrize("key", ["c-c", "c-z"])
def test_ctrl_c_and_ctrl_z_are_themselves_whatever_the_keymap_says(key: str) -> None:
    own = _keymap(approval__approve='"ctrl-c"', composer__submit='["ctrl-z", "enter"]')
    for contexts in (COMPOSING, ("approval", "list")):
        assert _checked(*own).pressed("", (key,), "", contexts) == ((key,), "")


def test_letters_of_lists_are_text_where_one_writes() -> None:
    keymap = _checked(*_keymap(list__move_down='["down", "j"]'))
    assert keymap.pressed("", ("j",), "j", ("approval", "list")) == (("down",), "")
    for contexts in (("list",), ("list", *COMPOSING)):
        assert keymap.pressed("", ("j",), "j", contexts) == (("j",), "j")


def test_keys_of_vi_can_be_moved(start: Start) -> None:
    own = _keymap(
        vim_normal__move_word_backward='"n"',
        vim_normal__start_delete_operator='"k"',
        vim_normal__move_up='"d"',
        vim_operator__select_inner_text_object='"o"',
        vim_text_object__word='"v"',
        vim_normal__jump_top='"ctrl-f f"',
    )
    with ScriptedServer([ANSWER]) as server:
        program = start(server, *own, "-c", "tui.vim_mode_default=true")
        program.wait_for("INSERT")
        program.type("one two three")
        program.press("esc")
        program.wait_for("NORMAL")
        # One after the other: `n` has the default of another action, and `b` none any more.
        for keys in ("b", "n", "n", "kov"):
            for key in keys:
                program.type(key)
                program.settle(0.1)
        program.wait_for("\u203a one  three")
        for keys in ("\x06", "f", "i", "x", "\x1b"):
            program.type(keys)
            program.settle(0.1)
        # What an operator or a search waits for is that key, whatever it does else.
        for key in "fn":
            program.type(key)
            program.settle(0.1)
        program.type("iY")
        program.wait_for("\u203a xoYne  three")


def test_texts_that_name_a_key_name_the_users_own(start: Start) -> None:
    own = _keymap(
        global__open_transcript='"f2"',
        composer__queue='"f3"',
        approval__open_fullscreen='"f4"',
        list__accept='"f6"',
        chat__edit_queued_message='"f7"',
        pager__find='"f9"',
    )
    script = "\n".join(f"echo {n}" for n in range(40))
    long = {"cmd": script, "sandbox_permissions": "require_escalated"}
    replies = [
        [
            *ev_function_call("call_1", "exec_command", {"cmd": "seq 90"}),
            ev_completed(),
        ],
        [*ev_function_call("call_2", "exec_command", long), ev_completed()],
    ]
    with ScriptedServer(replies) as server:
        program = start(server, *own, "-a", "on-request", "Begin.", rows=30)
        program.wait_for("lines (F2)")
        program.wait_for("(F4 shows all)")
        program.wait_for("F6 or a key answers")
        program.type("\x1bOS")
        program.wait_for("F9 search")
        program.press("esc")
        program.wait_for("(F4 shows all)")
        program.type("later")
        program.wait_for("(F3 to answer)")
        program.press("c-c")
        program.wait_for("F6 or a key answers")
        program.type("\x1b[17~")
        program.wait_for("Conversation interrupted")
        program.type("/trans")
        program.wait_for("the whole conversation (F2)")


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
