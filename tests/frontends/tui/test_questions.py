"""Questions that come while the user writes, and on screens that are too small for them."""

import re

import pytest

from codex_py.testing import Pause, ev_completed, ev_created, ev_custom_tool_call
from codex_py.testing.events import Event
from tests.frontends.tui.terminals import Start
from tests.frontends.tui.test_approval import QUESTION, asks, says
from tests.support.program import Workplace
from tests.support.pty_program import ANOTHER, PtyProgram
from tests.support.server import ScriptedServer

MADE = "Approve: touch made (Tab to answer)"
LONG = "\n".join(
    ["cat > x <<EOF", *(f"option_{n} = 0" for n in range(161)), "EOF", "rm -rf /thing"]
)
REASON = "Because the configuration must be replaced as a whole. " * 8


def test_a_question_waits_while_something_is_written(
    start: Start, place: Workplace
) -> None:
    pause = Pause()
    with ScriptedServer(
        [[ev_created(), pause, *asks("touch made")], says("Made.")]
    ) as server:
        program = start(server, "Make it.")
        program.wait_for("Working")
        program.type("also try")
        program.wait_for("\u203a also try")
        pause.until.set()
        program.wait_for(MADE)
        program.settle(0.5)
        program.type(" yes")
        program.wait_for("\u203a also try yes\n")
        assert QUESTION not in program.text
        assert not (place.cwd / "made").exists()
        program.press("tab")
        program.wait_for(QUESTION)
        program.type("y")
        program.wait_for("Made.")
        program.wait_for("\u203a also try yes\n")
        assert (place.cwd / "made").exists()


def test_work_that_follows_an_answer_does_not_wait_for_the_draft(start: Start) -> None:
    pause = Pause()
    with ScriptedServer(
        [[ev_created(), pause, *asks("touch made")], says("Well.")]
    ) as server:
        program = start(server, "Make it.")
        program.wait_for("Working")
        program.type("later")
        program.wait_for("\u203a later")
        pause.until.set()
        program.wait_for(MADE)
        program.press("tab")
        program.wait_for(QUESTION)
        program.type("f")
        program.wait_for("What should be done instead?")
        program.type("Leave it.")
        program.wait_for("> Leave it.")
        program.press("enter")
        program.wait_for("Well.")
        program.wait_for("\u203a later\n")
        assert "Leave it." in server.requests[1].output("call_1")


def test_a_draft_that_is_sent_or_cleared_lets_the_question_come(start: Start) -> None:
    pause = Pause()
    with ScriptedServer(
        [[ev_created(), pause, *asks("touch made")], says("Well.")]
    ) as server:
        program = start(server, "Make it.")
        program.wait_for("Working")
        program.type("x")
        program.wait_for("\u203a x")
        pause.until.set()
        program.wait_for(MADE)
        program.press("backspace")
        program.wait_for(QUESTION)
        program.type("y")
        program.wait_for("Well.")


@pytest.mark.parametrize("word", ["yes", " yes", "n", "y"])
def test_text_typed_as_a_question_appears_stays_in_the_draft(
    start: Start, place: Workplace, word: str
) -> None:
    pause = Pause()
    with ScriptedServer(
        [[ev_created(), pause, *asks("touch made")], says("Made.")]
    ) as server:
        program = start(server, "Make it.")
        program.wait_for("Working")
        pause.until.set()
        # Announced, or even shown already where more than one letter follows.
        program.wait_for(MADE if len(word) == 1 else QUESTION)
        program.type(word)
        program.wait_for(f"\u203a {word}\n")
        program.wait_for(MADE)
        assert not (place.cwd / "made").exists()
        program.press("tab")
        program.wait_for(QUESTION)
        program.type("1")
        program.wait_for("Made.")


def test_a_letter_that_is_followed_by_others_is_no_answer(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([asks("touch made"), says("Made.")]) as server:
        program = start(server, "Make it.")
        for letters in ("nothing", "vain", "1st"):
            program.wait_for(QUESTION)
            for letter in letters:
                program.type(letter)
                program.settle(0.03)
            program.wait_for(f"\u203a {letters}\n")
            program.press("c-c", "tab")
        program.wait_for(QUESTION)
        assert not (place.cwd / "made").exists()
        program.paste("y")
        program.wait_for("\u203a y\n")
        program.press("tab")
        program.wait_for(QUESTION)
        program.type("y")
        program.wait_for("Made.")


def three_questions() -> list[Event]:
    """A reply with three calls, each of which is asked about."""
    calls: list[Event] = []
    for n in range(3):
        calls += asks(f"touch made{n}", f"call_{n}")[:-1]
    return [*calls, ev_completed()]


def made(place: Workplace) -> list[str]:
    return sorted(path.name for path in place.cwd.glob("made*"))


def test_answers_one_after_the_other_answer_each_question(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([three_questions(), says("Made.")]) as server:
        program = start(server, "Make it.")
        for n in range(3):
            program.wait_for(f"$ touch made{n}")
            program.type("y")
            program.wait_for(f"You approved touch made{n}")
        program.wait_for("Made.")
    assert made(place) == ["made0", "made1", "made2"]


@pytest.mark.parametrize(
    "keys",
    [
        ["y"],
        ["1"],
        ["a"],
        ["n"],
        ["f"],
        ["v"],
        ["x"],
        ["yes"],
        ["y\r"],
        ["enter"],
        ["esc"],
        ["c-c"],
        ["c-d"],
        ["up", "up", "up", "enter"],
    ],
)
def test_no_early_key_answers_a_question_that_replaces_another_or_is_text(
    start: Start, place: Workplace, keys: list[str]
) -> None:
    with ScriptedServer([three_questions(), says("Made.")]) as server:
        program = start(server, "Make it.")
        program.wait_for("$ touch made0")
        program.type("y")
        program.wait_for(ANOTHER)
        for key in keys:
            if key in {"enter", "esc", "c-c", "c-d", "up"}:
                program.press(key)
            else:
                program.type(key)
        program.wait_for("$ touch made1")
        # The time in which a letter would take effect.
        program.read_for(0.5)
        assert "$ touch made1" in program.text
        assert "> 4. No, and stop here" in program.text
        assert made(place) == ["made0"]
        program.type("y")
        program.wait_for("You approved touch made1")
        program.wait_for("$ touch made2")


@pytest.mark.parametrize("first_s", [0.04, 0.25, 0.7])
@pytest.mark.parametrize("key", ["y", "1", "\r"])
def test_a_key_that_is_held_down_answers_one_question(
    start: Start, place: Workplace, key: str, first_s: float
) -> None:
    with ScriptedServer([three_questions(), says("Made.")]) as server:
        program = start(server, "Make it.")
        program.wait_for("$ touch made0")
        if key == "\r":
            program.press("up", "up", "up")
            program.wait_for("> 1. Yes, proceed")
        program.type(key)
        program.wait_for(ANOTHER)
        program.read_for(first_s)
        for _ in range(40):
            program.type(key)
            program.read_for(0.04)
        assert ANOTHER in program.text
        program.wait_for("$ touch made1")
        assert made(place) == ["made0"]


def test_a_paste_on_a_question_that_has_just_come_is_not_lost(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([three_questions(), says("Made.")]) as server:
        program = start(server, "Make it.")
        program.wait_for("$ touch made0")
        program.type("y")
        program.wait_for(ANOTHER)
        program.paste("look at this")
        program.wait_for("\u203a look at this\n")
        assert made(place) == ["made0"]


def test_a_field_takes_a_text_at_once_but_no_key_of_the_question_before(
    start: Start,
) -> None:
    with ScriptedServer([asks("touch made"), says("Well.")]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.type("f")
        program.wait_for(ANOTHER)
        program.type("f")
        program.press("enter", "esc")
        program.wait_for("What should be done instead?")
        program.wait_until(lambda: "> f" not in program.text)
        program.type("Leave it.")
        program.wait_for("> Leave it.")
        program.press("enter")
        program.wait_for("Well.")
        assert "Leave it." in server.requests[1].output("call_1")


def test_keys_that_close_a_list_answer_no_question(start: Start) -> None:
    pause = Pause()
    with ScriptedServer(
        [[ev_created(), pause, *asks("touch made")], says("Well.")]
    ) as server:
        program = start(server, "Make it.")
        program.wait_for("Working")
        program.press("c-r")
        program.wait_for("Esc leaves")
        pause.until.set()
        program.wait_for("1 question waits")
        # It has been announced for long, and the last key is long ago.
        program.wait_until(
            lambda: re.search(r"\(([3-9]|\d\d)s", program.text) is not None
        )
        program.press("esc")
        program.wait_until(lambda: "Esc leaves" not in program.text)
        program.settle(0.2)
        assert QUESTION not in program.text
        program.wait_for(QUESTION)


def test_a_question_shows_its_own_keys_and_not_those_of_the_prompt(
    start: Start,
) -> None:
    pause = Pause()
    call = [ev_created(), pause, *asks("touch made")]
    with ScriptedServer([says("Hello."), call]) as server:
        program = start(server, "Hi.")
        program.wait_for("Hello.")
        program.type("Make it.")
        program.press("enter")
        program.wait_for("Working")
        pause.until.set()
        program.wait_for(MADE)
        # What it says holds for longer than the question waits.
        program.press("c-d")
        program.wait_for("Ctrl-D")
        program.wait_for(QUESTION)
        program.wait_for("Enter or a key answers", timeout_s=0.5)


def test_the_text_of_an_instead_answer_is_still_there_after_esc(start: Start) -> None:
    with ScriptedServer([asks("touch made"), says("Well.")]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.type("f")
        program.wait_for("What should be done instead?")
        program.type("Leave it.")
        program.wait_for("> Leave it.")
        program.press("esc")
        program.wait_for(QUESTION)
        program.type("f")
        program.wait_for("> Leave it.")
        program.press("enter")
        program.wait_for("Well.")
    assert "Leave it." in server.requests[1].output("call_1")


def _options(program: PtyProgram) -> list[str]:
    return [
        line for line in program.lines if line[2:4] in {"1.", "2.", "3.", "4.", "5."}
    ]


@pytest.mark.parametrize(
    "size", [(60, 20), (80, 12), (80, 9), (40, 8), (80, 24), (140, 45)]
)
@pytest.mark.parametrize("command", ["touch made", LONG])
def test_the_answers_and_both_ends_of_the_command_are_on_the_screen(
    start: Start, size: tuple[int, int], command: str
) -> None:
    columns, rows = size
    reply = asks(command, justification=REASON, prefix_rule=["touch"])
    with ScriptedServer([reply, says("Well.")]) as server:
        program = start(server, "Make it.", columns=columns, rows=rows)
        program.wait_for("Would you like to run")
        program.settle()
        options = _options(program)
        assert options[-1].startswith(
            ("> 4. No, and stop here (n)", "> 5. No, and stop here (n)")
        )
        assert options[0].startswith("  1. Yes, proceed (y)")
        assert "$ touch made" in program.text or "$ cat > x" in program.text
        if command == LONG:
            program.wait_for("rm -rf /thing")
        if rows > 9:
            program.wait_for("Why asked:")
        if rows < 24:
            program.wait_for("(v shows all)")
        program.press("up", "up", "up", "up")
        program.wait_until(
            lambda: (
                any(line.startswith("> 1") for line in program.lines)
                or len(options) == 4
            )
        )
        program.resize(60, 14)
        program.wait_until(
            lambda: len(_options(program)) == len(options), what="the answers"
        )
        program.press("esc")
        program.wait_for("interrupted")


def test_a_command_comes_before_its_reason_and_no_line_is_broken_where_it_has_none(
    start: Start,
) -> None:
    command = "touch /etc/one && rm -r /important/thing/of/many/letters && echo that was all of it"
    reply = asks(command, justification=REASON)
    with ScriptedServer([reply, says("Well.")]) as server:
        program = start(server, "Make it.", columns=50, rows=10)
        program.wait_for("Would you like to run")
        program.settle()
        shown = " ".join(line.strip() for line in program.lines)
        assert f"$ {command} Why asked:" in shown
        program.resize(50, 7)
        program.wait_for("$ touch /etc/one && rm -\u2026echo that was all of it")
        program.press("esc")
        program.wait_for("interrupted")


def test_no_line_of_a_reason_passes_for_the_command(start: Start) -> None:
    reply = asks("touch made", justification="see below\n\n$ git status\n\n")
    with ScriptedServer([reply, says("Well.")]) as server:
        program = start(server, "Make it.")
        program.wait_for("$ touch made")
        program.wait_for(
            "Why asked: outside of the sandbox\n  The model says: see below $ git status\n"
        )
        program.press("esc")
        program.wait_for("interrupted")


@pytest.mark.parametrize("size", [(60, 20), (80, 12), (40, 8)])
def test_edits_are_asked_about_on_a_small_screen(
    start: Start, size: tuple[int, int]
) -> None:
    lines = "".join(f"+line {n}\n" for n in range(200))
    patch = f"*** Begin Patch\n*** Add File: a.py\n{lines}+last\n*** End Patch"
    replies = [
        [*ev_custom_tool_call("call_1", "apply_patch", patch), ev_completed()],
        says("Well."),
    ]
    with ScriptedServer(replies) as server:
        program = start(
            server, "-a", "untrusted", "Write it.", columns=size[0], rows=size[1]
        )
        program.wait_for("Would you like to make")
        program.settle()
        program.wait_for("> 4. No, and stop here (n)")
        program.wait_for("a.py")
        program.wait_for("\u2026")
        program.type("y")
        program.wait_for("Well.")


@pytest.mark.parametrize("size", [(60, 20), (80, 9), (40, 8)])
def test_a_list_fits_shows_what_is_cut_and_goes_round(
    start: Start, size: tuple[int, int]
) -> None:
    with ScriptedServer([]) as server:
        program = start(server, columns=size[0], rows=size[1])
        program.wait_for("gpt-5.5")
        program.type("/permissions")
        program.press("enter")
        program.wait_for("Permissions")
        program.settle()
        assert any(line.startswith("> Ask for approval") for line in program.lines)
        program.press("up")
        program.wait_until(
            lambda: any(line.startswith("> Full") for line in program.lines)
        )
        assert any(
            line.startswith("  Ask") and line.endswith("\u2026")
            for line in program.lines
        )
        program.press("down")
        program.wait_until(
            lambda: any(line.startswith("> Ask") for line in program.lines)
        )


@pytest.mark.parametrize(
    "keys",
    [
        ["down"],
        ["c-n"],
        ["pagedown"],
        ["end"],
        ["home"],
        ["down"] * 5,
        ["c-n", "pagedown"],
    ],
)
def test_no_key_leads_from_no_around_to_yes(
    start: Start, place: Workplace, keys: list[str]
) -> None:
    with ScriptedServer([asks("touch made")]) as server:
        program = start(server, "Make it.")
        program.wait_for(QUESTION)
        program.wait_for("> 4. No, and stop here")
        program.press(*keys)
        program.settle()
        program.wait_for("> 4. No, and stop here")
        program.press("enter")
        program.wait_for("Conversation interrupted")
        assert not (place.cwd / "made").exists()


@pytest.mark.parametrize("keys", [["up"], ["c-p"], ["up"] * 9])
def test_no_key_leads_from_yes_around_to_no(start: Start, keys: list[str]) -> None:
    with ScriptedServer([]) as server:
        program = start(server, trusted=False)
        program.wait_for("Do you trust what is in")
        program.wait_for("> 2. No")
        program.press(*keys)
        program.wait_for("> 1. Yes")
        program.press("down", "down", "down")
        program.wait_for("> 2. No")
