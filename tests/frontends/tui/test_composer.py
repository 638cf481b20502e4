import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codex_py.config.declared.settings import Settings
from codex_py.frontends.tui.composer import Composer
from codex_py.testing import (
    Pause,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from tests.frontends.tui.terminals import IDLE, Start
from tests.support.images import PNG
from tests.support.program import Workplace, environment
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

SIZES = pytest.mark.parametrize("columns", [60, 80, 140])
ANSWER = [*ev_message("Understood."), ev_completed()]


def prompts(server: ScriptedServer) -> list[str]:
    """What the user said, in the last request."""
    return [
        part["text"]
        for item in server.requests[-1].body["input"]
        if item.get("role") == "user"
        for part in item["content"]
        if part["type"] == "input_text"
        and not part["text"].startswith("<environment_context>")
    ]


def begin(start: Start, server: ScriptedServer, *, columns: int = 80) -> PtyProgram:
    program = start(server, columns=columns)
    program.wait_for(IDLE)
    return program


def send(program: PtyProgram, text: str = "") -> None:
    """Type and send it, and wait for the answer."""
    program.type(text)
    program.press("enter")
    program.wait_for("Understood.")


@SIZES
def test_a_prompt_of_several_lines_is_sent_as_one(start: Start, columns: int) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server, columns=columns)
        program.wait_for("Ask codex-py to do anything")
        program.type("one\\")
        program.wait_for("one\\")
        program.press("enter")
        program.wait_until(lambda: "one\\" not in program.text)
        program.type("two\x1b\rthree\nfour\x1b[27;2;13~five\x1b[13;2usix")
        program.wait_for("six")
        assert [line for line in program.lines if line.strip() in {"two", "five"}]
        send(program)
        assert prompts(server) == ["one\ntwo\nthree\nfour\nfive\nsix"]


def test_a_long_prompt_grows_to_half_the_screen_and_scrolls(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        for number in range(30):
            program.type(f"line {number}\n")
        program.type("end")
        program.wait_for("end")
        assert IDLE in program.lines[-1]
        assert sum("line" in line for line in program.lines) == 11


@SIZES
def test_a_long_paste_is_folded_and_sent_whole(start: Start, columns: int) -> None:
    pasted = "\n".join(f"pasted {n}" for n in range(300))
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server, columns=columns)
        program.type("read ")
        program.paste(pasted.replace("\n", "\r"))
        program.paste("x" * 2001)
        program.wait_for("read [Pasted 300 lines, Ctrl-O]")
        program.wait_until(lambda: "2,001" in program.text)
        program.press("c-o")
        program.wait_for("pasted 1\n")
        program.press("end")
        program.wait_for("x" * columns)
        program.press("esc")
        program.wait_for("read [Pasted 300 lines")
        program.press("backspace")
        program.wait_until(lambda: "2,001" not in program.text)
        program.press("left", "backspace")
        program.press("right")
        program.type(" now")
        program.wait_for("Ctrl-O] now")
        send(program)
        assert prompts(server) == [f"read{pasted} now"]


def test_pasted_text_steers_no_terminal(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        program.paste("a\x1b[2Jb\x07\u202ec\td")
        program.wait_for("a^[[2Jb^G\\u202ec    d")
        send(program)
        assert prompts(server) == ["a\x1b[2Jb\x07\u202ec\td"]
        assert "\u202e".encode() not in program.raw


def test_lines_that_come_all_at_once_are_taken_for_a_paste(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        program.type("first\rsecond")
        program.wait_for("second")
        # Right behind it, an Enter would be a part of it.
        program.read_for(0.3)
        send(program)
        assert prompts(server) == ["first\nsecond"]


def test_no_piece_of_a_long_paste_that_is_not_marked_is_sent(start: Start) -> None:
    # However it is read, some piece ends with a line.
    lines = [f"line {n:04} of it" for n in range(640)]
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        program.type("".join(f"{line}\r" for line in lines))
        program.wait_for(lines[-1])
        program.settle(0.5)
        assert server.requests == []
        send(program)
        assert prompts(server) == ["\n".join(lines)]


def test_images_are_attached_by_the_paths_that_are_pasted(
    start: Start, place: Workplace
) -> None:
    for name in ("a.png", "two words.png"):
        (place.cwd / name).write_bytes(PNG)
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        program.type("compare ")
        program.paste(f"'{place.cwd}/two words.png'")
        program.wait_for("[Image #1]")
        program.paste(f"{place.cwd}/a.png\n")
        program.wait_for("[Image #2]")
        send(program)
        said = server.requests[-1].body["input"][-1]["content"]
    names = [part["text"] for part in said if part.get("text", "").startswith("<image")]
    assert names == [
        f'<image name=[Image #1] path="{place.cwd}/two words.png">',
        f'<image name=[Image #2] path="{place.cwd}/a.png">',
    ]
    assert said[-1]["text"] == "compare [Image #1] [Image #2]"


def test_ctrl_v_says_what_it_needs(start: Start, place: Workplace) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server, PATH=str(place.home))
        program.wait_for(IDLE)
        program.press("c-v")
        program.wait_for("wl-paste, xclip or pngpaste")


@SIZES
def test_files_are_found_by_a_few_letters(
    start: Start, place: Workplace, columns: int
) -> None:
    subprocess.run(["git", "init", "-q", str(place.cwd)], check=True)
    (place.cwd / ".gitignore").write_text("ignored*\n", encoding="utf-8")
    (place.cwd / "src").mkdir()
    for name in (
        "src/my notes.md",
        "src/main.py",
        "ignored_notes.md",
        "e\x1b[31m\u202evil.md",
    ):
        (place.cwd / name).write_text("", encoding="utf-8")
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server, columns=columns)
        program.type("see @notes")
        program.wait_for("> src/my notes.md")
        assert "ignored" not in program.text
        program.press("tab")
        program.wait_for('see "src/my notes.md"')
        program.type("and @evil")
        program.wait_for("\\u202evil.md")
        assert b"\x1b[31m\\u202e" not in program.raw
        program.press("esc")
        program.wait_until(lambda: "> e" not in program.text)
        program.press("backspace", "backspace", "backspace", "backspace", "backspace")
        program.type("@srcmyn")
        program.press("enter")
        program.wait_for('and "src/my notes.md"')
        send(program)
        assert prompts(server) == ['see "src/my notes.md" and "src/my notes.md"']


def test_files_are_found_by_several_words_behind_a_quotation_mark(
    start: Start, place: Workplace
) -> None:
    (place.cwd / "src").mkdir()
    for name in ("src/my notes.md", "src/notes.md", "other.md"):
        (place.cwd / name).write_text("", encoding="utf-8")
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        program.type('see @"notes my')
        program.wait_for("> src/my notes.md")
        program.press("tab")
        program.wait_for('see "src/my notes.md"')
        program.type('and @"src ')
        program.wait_for("> src/notes.md")
        program.press("down")
        program.wait_for("> src/my notes.md")
        program.press("enter")
        program.wait_for('and "src/my notes.md"')
        # Without the mark the words are those of a sentence.
        program.type("not @other md")
        program.settle()
        assert "> other.md" not in program.text
        send(program)
        assert prompts(server) == [
            'see "src/my notes.md" and "src/my notes.md" not @other md'
        ]


def test_commands_are_offered_with_what_they_do(start: Start) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        program.type("/")
        program.wait_for("> /model")
        program.press("up")
        program.wait_for("> /export")
        program.type("stat")
        program.wait_for("> /status  show the settings")
        program.press("enter")
        program.wait_for("directory")


def test_a_prompt_of_the_users_own_is_filled_in(start: Start, place: Workplace) -> None:
    folder = place.home / "prompts"
    folder.mkdir()
    text = "---\ndescription: Explain a file\nargument-hint: FILE\n---\nExplain $1 to $WHO.\n"
    (folder / "explain.md").write_text(text, encoding="utf-8")
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        program.type("/expl")
        program.wait_for("> /prompts:explain FILE  Explain a file")
        program.press("enter")
        program.wait_for("\u203a /prompts:explain")
        program.type("main.py")
        program.press("enter")
        program.wait_for("give it WHO=")
        # What was refused is still there.
        program.wait_for("\u203a /prompts:explain main.py")
        program.type(" WHO='my mother'")
        send(program)
        assert prompts(server) == ["Explain main.py to my mother."]


def test_a_skill_that_is_mentioned_is_told(start: Start, place: Workplace) -> None:
    folder = place.cwd / ".agents" / "skills" / "release"
    folder.mkdir(parents=True)
    text = "---\nname: release\ndescription: How we \x1b[7m release\n---\nTag it.\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        program.settle()
        program.type("do $rel")
        program.wait_for("> $release  How we")
        program.press("tab")
        program.wait_for("do $release")
        send(program)
        skill = f"<skill>\n<name>release</name>\n<path>{folder}/SKILL.md</path>\n{text}\n</skill>"
        assert prompts(server) == ["do $release", skill]


@SIZES
def test_a_command_of_the_users_own_is_shown_and_told(
    start: Start, columns: int
) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server, columns=columns)
        program.type("!echo one; exit 3")
        program.press("enter")
        program.wait_for("You ran echo one")
        send(program, "What now?")
        told, asked = prompts(server)
    assert told.startswith(
        "<user_shell_command>\n<command>\necho one; exit 3\n</command>\n<result>"
    )
    assert "Exit code: 3\n" in told
    assert told.endswith("\nOutput:\none\n\n</result>\n</user_shell_command>")
    assert asked == "What now?"


def test_sent_prompts_come_back_in_the_next_session(
    start: Start, place: Workplace
) -> None:
    history = place.home / "history.jsonl"
    old = {"session_id": "s", "ts": 1, "text": "an older\nprompt"}
    history.write_text(f"{json.dumps(old)}\n{{damaged\n", encoding="utf-8")
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        send(program, "a newer prompt")
        program.type("draft")
        program.press("up")
        program.wait_for("\u203a a newer prompt\n\n  " + IDLE)
        program.press("up")
        program.wait_for("\u203a an older\n  prompt\n\n  " + IDLE)
        program.press("down", "down")
        program.wait_for("\u203a draft\n\n  " + IDLE)
        program.press("c-r")
        program.wait_for("Earlier prompts")
        program.type("older")
        program.wait_until(lambda: "> a newer prompt" not in program.text)
        program.press("enter")
        program.wait_for("\u203a an older\n  prompt\n\n  " + IDLE)
        program.press("c-c", "c-d")
        assert program.wait() == 0
    last = json.loads(history.read_text(encoding="utf-8").splitlines()[-1])
    assert (last["text"], sorted(last)) == (
        "a newer prompt",
        ["session_id", "text", "ts"],
    )
    assert history.stat().st_mode & 0o777 == 0o600


def test_an_editor_takes_the_terminal_and_gives_it_back(
    start: Start, place: Workplace
) -> None:
    editor = place.home / "editor"
    script = (
        '#!/bin/sh\nprintf "IN THE EDITOR"\nread line\nprintf "%s" "$line" >>"$1"\n'
    )
    editor.write_text(script, encoding="utf-8")
    editor.chmod(0o755)
    with ScriptedServer([ANSWER]) as server:
        program = start(server, VISUAL=str(editor))
        program.wait_for(IDLE)
        program.type("so far, ")
        program.press("c-g")
        program.wait_for("IN THE EDITOR")
        # Its keys are those that it asks for.
        assert program.raw.rfind(b"\x1b[<2u") > program.raw.rfind(b"\x1b[>5u")
        program.type("edited\n")
        program.wait_for("\u203a so far, edited")
        program.wait_until(
            lambda: program.raw.rfind(b"\x1b[>5u") > program.raw.rfind(b"\x1b[<2u")
        )
        send(program)
        assert prompts(server) == ["so far, edited"]


@pytest.mark.parametrize(
    ("editor", "said"),
    [
        ("'", "set VISUAL or EDITOR"),
        ("no-such-editor", "no editor"),
        ("false", "exit code 1"),
    ],
)
def test_an_editor_that_fails_is_told_in_a_sentence(
    start: Start, editor: str, said: str
) -> None:
    with ScriptedServer([ANSWER]) as server:
        program = start(server, VISUAL="", EDITOR=editor)
        program.wait_for(IDLE)
        program.type("kept")
        program.press("c-g")
        program.wait_for(said)
        assert "\u203a kept" in program.lines


def test_the_keys_of_vi_and_their_mode(start: Start, place: Workplace) -> None:
    (place.home / "config.toml").touch()
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        program.type("/vim")
        program.press("enter")
        program.wait_for("vi keys are on")
        program.type("one two")
        program.wait_for("INSERT")
        # A draft is not emptied by the other key that leads there.
        program.press("c-c")
        program.wait_for("NORMAL")
        program.wait_for("\u203a one two")
        program.type("0dw")
        program.wait_for("\u203a two")
        program.type("v")
        program.wait_for("VISUAL")
        program.press("esc")
        program.wait_for("NORMAL")
        send(program)
        assert prompts(server) == ["two"]


def test_a_prompt_that_was_not_sent_returns_to_the_composer(
    start: Start, place: Workplace
) -> None:
    call = ev_function_call("call_1", "exec_command", {"cmd": "echo begun; sleep 600"})
    with ScriptedServer([[*call, ev_completed()], ANSWER]) as server:
        program = start(server, "-s", "danger-full-access", "Begin.")
        program.wait_for("Running")
        program.type("steered")
        program.press("enter")
        program.wait_for("  \u203a steered")
        program.type("queued")
        program.wait_for("\u203a queued")
        program.press("tab")
        program.wait_for("  \u203a queued")
        program.type("\x1b[1;2D")
        program.wait_for("\u203a queued\n\n  " + IDLE)
        program.type(", changed")
        program.wait_for("\u203a queued, changed")
        program.press("tab")
        program.wait_for("  \u203a queued, changed")
        program.type("draft")
        program.press("esc")
        program.wait_for("\u203a steered\n\n  queued, changed\n\n  draft\n\n  " + IDLE)


@SIZES
def test_wide_characters_and_narrow_terminals(start: Start, columns: int) -> None:
    text = "\u4f60\u597d" * columns
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server, columns=columns)
        program.type(text)
        program.press("left", "backspace")
        program.type("!")
        program.wait_for("!")
        program.resize(24, 12)
        program.wait_until(lambda: all(len(line) <= 24 for line in program.lines))
        program.resize(columns, 24)
        program.settle()
        send(program)
        assert prompts(server) == [f"{text[:-2]}!{text[-1]}"]


_REFUSING = """
from codex_py.app.features import table
from codex_py.errors import PromptRefused
from codex_py.protocol.extension import Extension
async def before_prompt(prompt):
    if "password" in prompt.text:
        raise PromptRefused("it has a password in it")
    return ()
def refusing(_): return lambda _: Extension(before_prompt=before_prompt)
rows = table._table
row = table.Row(True, "__main__:refusing")
table._table = lambda setup: (*rows(setup), row)
from codex_py.__main__ import main
main()
"""


def test_a_refused_prompt_comes_back_while_the_turn_goes_on(place: Workplace) -> None:
    first, second = Pause(), Pause()
    streams = [
        [ev_created(), first, ev_completed()],
        [ev_created(), second, ev_completed()],
    ]
    with ScriptedServer(streams) as server:
        place.configure(server)
        variables = environment(
            place.home, {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        )
        argv = [sys.executable, "-c", _REFUSING, "Begin."]
        with PtyProgram(argv, place.cwd, variables) as program:
            program.wait_for("Do you trust what is in")
            program.press("enter")
            program.wait_for("Working")
            program.type("The password is x.")
            program.press("enter")
            program.wait_for("  \u203a The password is x.")
            first.until.set()
            program.wait_for("it has a password in it")
            program.wait_for("\n\u203a The password is x.")
            program.wait_for("Working")
            second.until.set()
            program.wait_until(lambda: "Working" not in program.text)
            program.wait_for(f"\n\u203a The password is x.\n\n  {IDLE}")
            assert len(server.requests) == 2


def test_a_text_that_is_written_for_long_is_undone_in_steps_that_are_not_kept_for_each_key() -> (
    None
):
    config: Any = SimpleNamespace(
        cwd=Path("/"),
        home=Path("/"),
        settings=Settings({"history": {"persistence": "none"}}),
    )
    buffer = Composer(config, lambda _: None, sources=(), changed=lambda: None).buffer
    for n in range(20_000):
        buffer.save_to_undo_stack()
        buffer.insert_text(str(n % 10))
    buffer.save_to_undo_stack()
    buffer.text = ""
    sizes: list[int] = []
    while not sizes or sizes[-1]:
        buffer.undo()
        sizes.append(len(buffer.text))
    assert sizes[0] == 20_000
    assert len(sizes) < 500
    assert all(before - after <= before // 20 + 1 for before, after in pairwise(sizes))


def test_keys_take_as_one_what_is_seen_as_one_character(start: Start) -> None:
    family, flag, accent = (
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",
        "\U0001f1e9\U0001f1ea",
        "e\u0301",
    )
    with ScriptedServer([ANSWER]) as server:
        program = begin(start, server)
        program.type(f"a{family}{flag}{accent}b")
        program.wait_for("b\n")
        program.press("left", "left")
        program.type("1")
        program.press("backspace", "backspace", "left")
        program.type("2")
        program.press("right")
        send(program, "\x1b[3~3")
        assert prompts(server) == [f"a2{family}3b"]
