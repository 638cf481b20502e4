"""What the bytes of terminals are read as.

Also tests `frontends/tui/key_codes.py`.
"""

import pytest
from prompt_toolkit.key_binding.key_processor import KeyPress

from codex_py.frontends.tui.key_codes import ESCAPE
from codex_py.frontends.tui.keyboard import KeyParser


class Keyboard:
    """Gathers what is pressed: names of keys, and pastes as they are."""

    def __init__(self) -> None:
        self.pressed: list[str] = []
        self.focus: list[bool] = []
        self.backgrounds: list[str] = []
        self.now_s = 100.0
        self.parser = KeyParser(
            self._press,
            self.focus.append,
            self.backgrounds.append,
            clock=lambda: self.now_s,
        )

    def _press(self, press: KeyPress) -> None:
        name = str(getattr(press.key, "value", press.key))
        names = {ESCAPE.value: "ESC", "escape": "alt", "<bracketed-paste>": press.data}
        names["\uf8ff"] = press.data
        self.pressed.append(names.get(name, name))

    def send(self, *reads: str) -> list[str]:
        for read in reads:
            self.parser.feed(read)
        self.parser.flush()
        self.now_s += 1
        self.parser.end_burst()
        pressed, self.pressed = self.pressed, []
        return pressed


@pytest.mark.parametrize(
    "sequence",
    [
        *(
            "\x1b[27;5;44~",
            "\x1b[120;9u",
            "\x1b[44;10u",
            "\x1b[1;13A",
            "\x1b[57441;2u",
            "\x1b[57358u",
        ),
        *(
            "\x1b[27;1:3u",
            "\x1b[97;5:3u",
            "\x1b[1;1:3A",
            "\x1b[3;1:3~",
            "\x1b[99;6u",
            "\x1b[27;2u",
        ),
        *(
            "\x1b[0u",
            "\x1b[;u",
            "\x1b[99999999u",
            "\x1b[55296u",
            "\x1b[57344u",
            "\x1b[7u",
        ),
        *(
            "\x1b]11;rgb:0000/0000/0000\x07",
            "\x1b]11;rgb:0000/0000/0000\x1b\\",
            "\x1b]52;c;eQ==\x9c",
        ),
        *(
            "\x1b[?62;22;52c",
            "\x1b[>41;354;0c",
            "\x1b[?5u",
            "\x1b[?2026;2$y",
            "\x1b[12;40R",
            "\x1b[0n",
        ),
        *(
            "\x1bP1$r0m\x1b\\",
            "\x1bP>|kitty(0.35)\x1b\\",
            "\x1b_Gi=1;OK\x1b\\",
            "\x1b^x\x1b\\",
            "\x1bXy\x1b\\",
        ),
        *(
            "\x1b[<64;85;12M",
            "\x1b[M a1",
            "\x1b[96;14;13M",
            "\x1b[201~",
            "\x1b[999~",
            "\x1b[[Q"[:3] + "E",
        ),
        *(
            "\x1bOz",
            "\x1bO5z",
            "\x1b[I",
            "\x1b[O",
            "\x1b[E",
            "\x1b[" + "1" * 5000 + "u",
        ),
    ],
)
def test_an_unknown_key_is_swallowed_however_it_arrives(sequence: str) -> None:
    expected = ["f5"] if sequence == "\x1b[[E" else []
    assert Keyboard().send(sequence, "x") == [*expected, "x"]
    assert Keyboard().send(*sequence, "x") == [*expected, "x"]
    for cut in range(2, min(len(sequence), 40)):
        keyboard = Keyboard()
        keyboard.parser.feed(sequence[:cut])
        if sequence[:cut] not in {"\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX"}:
            keyboard.parser.flush()
        keyboard.parser.feed(sequence[cut:])
        assert keyboard.send("x") == [*expected, "x"]


@pytest.mark.parametrize(
    ("sent", "pressed"),
    [
        ("a\u00fc", ["a", "\u00fc"]),
        ("a\u00fc\u4f60", ["a\u00fc\u4f60"]),
        ("\x1b", ["ESC"]),
        ("\x1b\x1b", ["ESC", "ESC"]),
        ("\x1b[27u", ["ESC"]),
        ("\x1b[27;65u", ["ESC"]),
        ("\x1b[27;129;27~", ["ESC"]),
        ("\x1b[91;5u", ["ESC"]),
        ("\x1bp", ["alt", "p"]),
        ("\x1b\u00fc", ["alt", "\u00fc"]),
        ("\x1b]", ["alt", "]"]),
        ("\x1b\x1b[A", ["alt", "up"]),
        ("\x1b[1;3A", ["alt", "up"]),
        ("\x1b[112;3u", ["alt", "p"]),
        ("\x1b[97;7u", ["alt", "c-a"]),
        ("\x1b\x7f", ["alt", "c-h"]),
        ("\x1b[127;3u\x1b[127;5u", ["alt", "c-h", "alt", "c-h"]),
        ("\x7f\x08\x1b[127u\x1b[127;2u", ["c-h"] * 4),
        ("\r\x1b[13u\x1b[57414u", ["c-m"] * 3),
        (
            "\n\x1b\r\x1b[13;2u\x1b[13;3u\x1b[13;5u\x1b[27;2;13~\x1b[57414;2u",
            ["c-j"] * 7,
        ),
        ("\t\x1b[9u", ["c-i"] * 2),
        ("\x1b[Z\x1b[9;2u\x1b[27;2;9~", ["s-tab"] * 3),
        ("\x03\x1b[99;5u\x1b[99;69u\x1b[99;5:1u\x1b[99;5:2u\x1b[27;5;99~", ["c-c"] * 6),
        # Ctrl-C on a Cyrillic keyboard, Alt-B on a Greek one.
        ("\x1b[1089::99;5u\x1b[946::98;3u", ["c-c", "alt", "b"]),
        ("\x1b[32;5u\x1b[47;5u\x1b[55;5u", ["c-@", "c-_", "c-_"]),
        ("\x1b[57404u\x1b[57411u\x1b[97;2u\x1b[49:33;2u", ["5", "*", "A", "!"]),
        ("\x1b[57417u\x1b[57426u", ["left", "delete"]),
        # With Num Lock, which kitty counts as a modifier.
        (
            "\x1b[1;129A\x1b[3;129~\x1b[A\x1bOA\x1b[1;1:2A",
            ["up", "delete", "up", "up", "up"],
        ),
        (
            "\x1b[1;2D\x1b[1;5C\x1bOP\x1b[P\x1b[1P",
            ["s-left", "c-right", "f1", "f1", "f1"],
        ),
        ("\x1b[200~a\x1b[2Jb\x1b[201~c", ["a\x1b[2Jb", "c"]),
        ("\x1b[1\x03x", ["c-c", "x"]),
        ("\x1b]0;t\x03x", ["c-c", "x"]),
        ("\x1b[1\x1b[Ax", ["up", "x"]),
        ("\x1b\x1b\x1b[A", ["ESC", "alt", "up"]),
    ],
)
def test_keys_are_told_apart(sent: str, pressed: list[str]) -> None:
    assert Keyboard().send(sent) == pressed


def test_a_paste_is_one_however_it_is_cut() -> None:
    paste = "\x1b[200~one\rtwo \x1b[A \x1b[20 \x1b[201~"
    for cut in range(1, len(paste)):
        assert Keyboard().send(paste[:cut], paste[cut:], "x") == [
            "one\rtwo \x1b[A \x1b[20 ",
            "x",
        ]
    keyboard = Keyboard()
    assert keyboard.send("\x1b[200~one\x1b[20") == []
    keyboard.now_s += 5
    assert keyboard.send("1~") == ["one"]


def test_much_text_in_one_read_is_one_key_and_what_steers_in_it_is_not_text() -> None:
    text = "a line that nobody types at once, with \u4e2d\u6587"
    assert Keyboard().send(f"{text}\rxy\x1b[A{text}") == [f"{text}\nxy", "up", text]
    assert Keyboard().send(f"\u200b{text}") == [f"\u200b{text}"]


def test_the_rest_of_a_sequence_is_not_waited_for_without_end() -> None:
    for beginning in ("\x1b[", "\x1b[1;", "\x1bO", "\x1b]11;rgb", "\x1bP1", "\x1b[M"):
        keyboard = Keyboard()
        assert keyboard.send(beginning) == []
        keyboard.now_s += 1
        assert keyboard.send("ye", "\r") == ["y", "e", "c-m"]


@pytest.mark.parametrize("late_s", [0.06, 1])
def test_esc_counts_where_it_is_read_so_late_that_text_stands_behind_it(
    late_s: float,
) -> None:
    keyboard = Keyboard()
    keyboard.parser.feed("\x1b")
    # The program was busy, and has not been told that nothing followed.
    keyboard.now_s += late_s
    assert keyboard.send("ye") == ["ESC", "y", "e"]


def test_a_sequence_is_whole_though_its_rest_is_read_late() -> None:
    keyboard = Keyboard()
    keyboard.parser.feed("\x1b")
    keyboard.now_s += 0.2
    assert keyboard.send("[A") == ["up"]


def test_an_endless_string_is_swallowed_and_not_kept() -> None:
    keyboard = Keyboard()
    keyboard.parser.feed("\x1b]52;c;")
    for _ in range(1000):
        keyboard.parser.feed("A" * 1000)
    assert keyboard.send("\x1b", "\\x") == ["x"]


def test_the_focus_is_no_key() -> None:
    keyboard = Keyboard()
    assert keyboard.send("a\x1b[Ob", "\x1b", "[I") == ["a", "b"]
    assert keyboard.focus == [False, True]


@pytest.mark.parametrize("ctrl_c", ["\x03", "\x1b[99;5u", "\x1b[27;5;99~"])
def test_a_paste_that_lost_its_end_is_ended_by_ctrl_c(ctrl_c: str) -> None:
    keyboard = Keyboard()
    assert keyboard.send("\x1b[200~one\x03two", "\r", "\x1b[A", ctrl_c) == [
        "one\x03two\r\x1b[A"
    ]
    assert keyboard.send("x", "\x1b[201~") == ["x"]


def test_ctrl_d_that_was_typed_before_raw_mode_is_ctrl_d() -> None:
    keyboard = Keyboard()
    keyboard.parser.expect_cooked()
    assert keyboard.send("\0", "\0") == ["c-d", "c-@"]


@pytest.mark.parametrize(
    ("typed", "pressed"),
    [
        ("hi\n", ["hi", "c-m"]),
        ("hi", ["h", "i"]),
        ("hi\n\x1b[O", ["hi", "c-m"]),
        ("hi\x1b[O", ["h", "i"]),
        ("a\nb\x1b[O", ["a\nb"]),
        ("\n", ["c-j"]),
        ("a\nb\n", ["a\nb\n"]),
        ("a\nb", ["a\nb"]),
    ],
)
def test_only_a_single_line_that_was_typed_before_raw_mode_ends_in_enter(
    typed: str, pressed: list[str]
) -> None:
    keyboard = Keyboard()
    keyboard.parser.expect_cooked()
    assert keyboard.send(typed) == pressed
    assert keyboard.send("x\n") == ["x", "c-j"]


@pytest.mark.parametrize("end", ["\x07", "\x1b\\", "\x9c"])
@pytest.mark.parametrize("cut", [1, 2, 5, 12, 23])
def test_the_background_is_read_however_its_report_comes(cut: int, end: str) -> None:
    keyboard = Keyboard()
    report = f"\x1b]11;rgb:1e1e/2e2e/3e3e{end}"
    assert keyboard.send(f"a{report[:cut]}", f"{report[cut:]}b") == ["a", "b"]
    assert keyboard.backgrounds == ["rgb:1e1e/2e2e/3e3e"]


BURSTS = [
    "name\tage\tcity",
    "name\tage\tcity\r",
    "def f():\r\treturn 1\r\rdone",
    "all:\r\tgcc -o x x.c\r\t./x\r",
    "/mo\tx",
    "\tindented line",
    "\rx",
    "first\r\nsecond\r\n",
    "one\ntwo\n",
    "!rm -rf build\r!make\r",
    "/quit\r/new\r",
    "see @main\tand @test\t",
    "\u4f60\u597d\r\u4f60\u597d\r",
    "y\ry\ry\r",
    "x" * 3000 + "\r" + "y" * 3000 + "\r",
]


def as_text(burst: str) -> str:
    return burst.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize("burst", [*BURSTS, "a\x04b\x07c\x12d\x14e\x1af\x0fg\x02h"])
def test_a_burst_is_text_whatever_is_in_it(burst: str) -> None:
    assert "".join(Keyboard().send(burst)) == as_text(burst)


@pytest.mark.parametrize(
    ("burst", "text"),
    [
        ("ab\r\x03cd\r", "ab\n\x03cd\n"),
        ("ab\r\x03\x04cd\r", "ab\n\x03\x04cd\n"),
        ("ab\n\x03cd\n", "ab\n\x03cd\n"),
        ("ab\x03cd\r\x04ef\r", "ab\x03cd\n\x04ef\n"),
        ("one\r\x03\x03\x04\x04two", "one\n\x03\x03\x04\x04two"),
    ],
)
def test_a_control_in_a_burst_is_text(burst: str, text: str) -> None:
    assert "".join(Keyboard().send(burst)) == text


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("\x08", ["c-h"]),
        ("\x7f", ["c-h"]),
        ("\x1b[A", ["up"]),
        ("\x1b\x1b[A", ["alt", "up"]),
        ("\x1bb", ["alt", "b"]),
        ("\x1bOP", ["f1"]),
    ],
)
def test_a_key_in_a_burst_lets_no_enter_before_or_behind_it_be_pressed(
    key: str, names: list[str]
) -> None:
    assert Keyboard().send(f"ab\r{key}cd\r") == ["ab", "\n", *names, "cd\n"]


def test_an_enter_in_its_own_read_is_pressed_behind_keys_in_a_burst() -> None:
    reads = ("one\ntwo\x1b[Athree", "\r")
    assert Keyboard().send(*reads) == ["one\ntwo", "up", "three", "c-m"]


def test_only_the_last_control_of_a_burst_can_be_a_key() -> None:
    assert Keyboard().send("one\rtwo\x03\x04") == ["one\ntwo", "\x03", "c-d"]
    assert Keyboard().send("one\rtwo", "\x03", "\x04") == ["one\ntwo", "c-c", "c-d"]


@pytest.mark.parametrize("size", [4, 16, 17, 64, 1000, 4096])
@pytest.mark.parametrize("burst", BURSTS)
def test_a_burst_is_text_in_whatever_pieces_it_comes(burst: str, size: int) -> None:
    whole = "\tsome text before\r" + burst
    keyboard = Keyboard()
    for place in range(0, len(whole), size):
        keyboard.parser.feed(whole[place : place + size])
        keyboard.now_s += 0.05
        keyboard.parser.flush()
    assert "".join(keyboard.send()) == as_text(whole)


def test_characters_that_come_one_by_one_without_a_pause_are_a_burst() -> None:
    keyboard = Keyboard()
    for character in "one\ttwo\rthree\r":
        keyboard.parser.feed(character)
        keyboard.now_s += 0.001
    assert "".join(keyboard.send()) == "one\ttwo\nthree\n"


@pytest.mark.parametrize("pause_s", [0.01, 0.03, 0.1])
def test_quick_typing_is_read_as_keys(pause_s: float) -> None:
    keyboard = Keyboard()
    for character in "one @two\tthree\r":
        keyboard.parser.feed(character)
        keyboard.now_s += pause_s
    assert keyboard.send() == [*"one @two", "c-i", *"three", "c-m"]


@pytest.mark.parametrize(
    "reads", [["hello\r"], ["hel", "lo\r"], ["hello", "\r"], ["!ls -l", "\r"]]
)
def test_an_enter_at_the_end_of_a_single_line_is_pressed_when_nothing_follows(
    reads: list[str],
) -> None:
    keyboard = Keyboard()
    for read in reads:
        keyboard.parser.feed(read)
    keyboard.parser.flush()
    line = "".join(reads).removesuffix("\r")
    assert "".join(keyboard.pressed) == line
    assert "".join(keyboard.send()) == f"{line}c-m"


def test_the_enter_at_the_end_of_a_line_is_pressed_before_a_key_and_not_before_ctrl_c() -> (
    None
):
    assert Keyboard().send("hello\r\x1b[A") == ["hello", "c-m", "up"]
    assert Keyboard().send("hello\r\x1b") == ["hello", "c-m", "ESC"]
    assert Keyboard().send("hello\r\x03") == ["hello", "\n", "c-c"]
    # A report is no key.
    assert Keyboard().send("hello\r\x1b[I", "more") == ["hello", "\nmore"]


def test_keys_without_text_are_no_burst() -> None:
    assert Keyboard().send("\t\t\t") == ["c-i"] * 3
    assert Keyboard().send("\r\r\r\r") == ["c-m"] * 4
    assert Keyboard().send("abc\x7f\x7fd") == ["abc", "c-h", "c-h", "d"]
    assert Keyboard().send("\x15hello\r") == ["c-u", "hello", "c-m"]


def test_a_key_that_comes_alone_behind_a_burst_is_pressed() -> None:
    keyboard = Keyboard()
    for read in ("one @two", "\t"):
        keyboard.parser.feed(read)
    assert keyboard.send() == ["one @two", "c-i"]
    assert Keyboard().send("hello\x07") == ["hello", "c-g"]
    assert Keyboard().send("hello", "\x07", "\x0f") == ["hello", "c-g", "c-o"]
    keyboard.parser.feed("name")
    keyboard.parser.feed("\t")
    assert keyboard.send("age") == ["name", "\tage"]
    assert Keyboard().send("name\t") == ["name\t"]


def test_letters_are_keys_where_letters_are_commands() -> None:
    keyboard = Keyboard()
    keyboard.parser.reads_commands = lambda: True
    assert keyboard.send("0dw", "\r") == ["0", "d", "w", "c-m"]
    assert keyboard.send("dw\tx\r") == ["dw\tx\n"]


def test_there_are_no_bursts_where_the_user_wants_none() -> None:
    keyboard = Keyboard()
    keyboard.parser.finds_bursts = False
    assert keyboard.send("one\ttwo\r") == [*"one", "c-i", *"two", "c-m"]
