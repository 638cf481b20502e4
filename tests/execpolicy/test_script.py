"""What a command line is read as. The dangerous ones among them are only read.

Also tests `execpolicy/grammar.py` and `execpolicy/words.py`.
"""

import pytest

from codex_py.execpolicy.script import all_commands, plain_commands
from codex_py.execpolicy.words import UNKNOWN
from tests.support.searches import sample

MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("ls", [["ls"]]),
        (
            "cd a && git status | head -5; pwd || true",
            "cd a/git status/head -5/pwd/true",
        ),
        ("\n\n ls -l \n\n\tpwd\n", "ls -l/pwd"),
        ("ls;", "ls"),
        ("ls &&\n\n pwd |\n wc", "ls/pwd/wc"),
        ("# first\nls # second\n#", "ls"),
        ("echo a#b", "echo a#b"),
        (
            "echo 'a  b' \"c d\" e\\ f g'h'\"i\"",
            [["echo", "a  b", "c d", "e f", "ghi"]],
        ),
        ("echo '' \"\"", [["echo", "", ""]]),
        (
            'echo \'\\n$x`y`!*\' "\\$x \\` \\" \\\\ \\n"',
            [["echo", "\\n$x`y`!*", '$x ` " \\ \\n']],
        ),
        (
            "echo \"a\\\nb\" 'c\\\nd' e\\\nf \\\n g",
            [["echo", "ab", "c\\\nd", "ef", "g"]],
        ),
        ("echo 'a\nb'", [["echo", "a\nb"]]),
        ("git show HEAD~1 HEAD^ @{}", [["git", "show", "HEAD~1", "HEAD^", "@{}"]]),
        ("find . -name \\*.py -exec cat {} \\;", "find . -name *.py -exec cat {} ;"),
        ("test a != b", "test a != b"),
        ("make CC=gcc", "make CC=gcc"),
        ("cat é 日本", "cat é 日本"),
        ("\\rm x; 'r'm y; r\"\"m z", "rm x/rm y/rm z"),
        ("-x", None),
    ],
)
def test_a_script_of_plain_words_gives_its_commands(
    script: str, commands: str | list[list[str]] | None
) -> None:
    if isinstance(commands, str):
        commands = [command.split(" ") for command in commands.split("/")]
    expected = None if commands is None else tuple(tuple(words) for words in commands)
    assert plain_commands(["bash", "-lc", script]) == expected


@pytest.mark.parametrize(
    "script",
    [
        *("", " ", "# only this", "&&", "ls &&", "ls |", "; ls", "ls ;; pwd", "ls && ; pwd", "\n;"),
        *("ls > x", "ls 2>&1", "cat < x", "cat <<A\nA", "cat <<< x", "ls &", "ls |& wc", "ls & pwd"),
        *("echo $x", 'echo "$x"', "echo $(ls)", 'echo "$(ls)"', "echo `ls`", 'echo "`ls`"'),
        *("diff <(ls) x", "echo $'a'", 'echo $"a"', "echo $((1))", "echo *", "echo a?", "echo [a]"),
        *("echo {a,b}", "echo {1..3}", "ls ~", "ls ~/x", "echo a=~", "echo a:~", "echo !(a)"),
        *("(ls)", "{ ls; }", "! ls", "[ -f x ]", "[[ -f x ]]", "((1))", "f() { ls; }", "function f"),
        *("A=1", "A=1 ls", "A+=1 ls", "A[0]=1 ls", "=ls", "echo =ls", '"a=b"', "time ls", "coproc ls"),
        *("if true; then ls; fi", "for x in a; do ls; done", "while true; do ls; done", "case a in"),
        *("echo 'a", 'echo "a', "echo a\\", "ls\r\npwd", "ls \0", "ls \x07", "ls \u00a0x", "ls\u2028x"),
        *("ls \u202ex", "ls \ufeffx", "ls \ud800", "noglob ls", "repeat 3 ls", "+x"),
        *("echo 'a'# b", "echo \\ # b", "echo a\\\n# b"),
    ],
)  # fmt: skip
def test_anything_else_is_not_plain(script: str) -> None:
    assert plain_commands(["bash", "-lc", script]) is None


@pytest.mark.parametrize(
    ("argv", "commands"),
    [
        (["ls", "a b", "$x", "*", "\n"], (("ls", "a b", "$x", "*", "\n"),)),
        (["/bin/zsh", "-c", "ls; pwd"], (("ls",), ("pwd",))),
        (["/usr/bin/sh", "-lc", "ls"], (("ls",),)),
        (["bash", "script.sh"], (("bash", "script.sh"),)),
        (["bash", "-lc"], (("bash", "-lc"),)),
        (["bash", "-c", "-x"], None),
        (["bash", "-lc", "ls", "zero"], None),
        (["bash", "-xc", "ls"], None),
        (["bash", "-o", "pipefail", "-c", "ls"], None),
        (["fish", "-c", "ls"], (("fish", "-c", "ls"),)),
        (["ls", "a\0"], None),
        ([], None),
    ],
)
def test_only_the_plain_way_to_start_a_shell_is_looked_into(
    argv: list[str], commands: tuple[tuple[str, ...], ...] | None
) -> None:
    assert plain_commands(argv) == commands


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("a | b && c; d &", ["a", "b", "c", "d"]),
        ("if a; then b; else c; fi; while d; do e; done; for x in y; do f; done", [*list("abdef"), "c"]),
        ("case x in y) a;; esac; (b; c); { d; }; f() { e; }", list("abcde")),
        ("a $(b `c`) <(d) \"$(e)\" ${x:-$(f)}", ["a ? ? ? ?", "b ?", "c", "d", "e", "f"]),
        ("A=$(a) b; export C=$(c); [[ -n $(d) ]]", list("abcd")),
        ("cat <<E\n$(a)\nE\ncat <<'E'\n$(b)\nE", ["cat", "a", "cat"]),
        ("a >x -b 2>&1 c", ["a -b c"]),
        ("a <<E -b\nE\n", ["a -b"]),
        (">x a -b", ["a -b"]),
        ("! a; time b; coproc c", ["a", "time b", "b", "coproc c", "c"]),
        ("sudo -u x -H A=1 a -b", ["sudo -u x -H A=1 a -b", "a -b"]),
        ("env -i -u B A=1 a", ["env -i -u B A=1 a", "a"]),
        ("timeout -k 5 -s9 1m nice -n 5 a", ["timeout -k 5 -s9 1m nice -n 5 a", "nice -n 5 a", "a"]),
        ("a | xargs -0 -n 1 -I{} b {}", ["a", "xargs -0 -n 1 -I{} b {}", "b {}"]),
        ("nohup setsid -- a -b", ["nohup setsid -- a -b", "setsid -- a -b", "a -b"]),
        ("command -v a; command -p b", ["command -v a", "command -p b", "b"]),
        ("find . -exec a {} + -ok b \\;", ["find . -exec a {} + -ok b ;", "a {}", "b"]),
        ("eval 'a; b' c", ["eval a; b c", "a", "b c"]),
        ("eval a \"$x\"", ["eval a ?", "a ?"]),
        ("bash -xc 'a; zsh -o errexit -c \"b\" 0'", ["bash -xc …", "a", "zsh …", "b"]),
        ("$(a) b; $c d; `e` f", ["? b", "a", "? d", "? f", "e"]),
        ("a\\\nb -\\\nc", ["ab -c"]),
        ("a; if b", list("aba")),
        ("r''m \\-f; \"r\"m", ["rm -f", "rm"]),
    ],
)  # fmt: skip
def test_commands_are_found_wherever_they_are(script: str, found: list[str]) -> None:
    commands = all_commands(["bash", "-lc", script]).commands
    assert commands[0] == ("bash", "-lc", script)
    shown = [" ".join(command).replace(UNKNOWN, "?") for command in commands[1:]]
    expected = [part.removesuffix("…").rstrip() for part in found]
    assert len(shown) == len(expected)
    for part in expected:
        assert any(
            text == part or (text.startswith(part) and "…" in str(found))
            for text in shown
        )


def test_scripts_that_are_nested_too_deep_are_not_followed() -> None:
    argv = ["sudo"] * 100_000
    assert [len(command) for command in all_commands(argv).commands] == list(
        range(100_000, 99_991, -1)
    )


@pytest.mark.parametrize(
    "script",
    sample(
        [
            "(" * 100_000 + "ls" + ")" * 100_000,
            "$(" * 100_000 + "ls" + ")" * 100_000,
            "`" * MEGABYTE,
            "'" * (MEGABYTE + 1),
            '"' * (MEGABYTE + 1),
            "\\" * MEGABYTE,
            "\\\n" * (MEGABYTE // 2),
            "ls;" * (MEGABYTE // 3),
            "a'b'" * (MEGABYTE // 4),
            "a" * MEGABYTE + "$",
            "echo " + "a " * (MEGABYTE // 2) + ">x",
            "a | " * (MEGABYTE // 4),
            "cat <<A " * (MEGABYTE // 8),
            "bash -c " * (MEGABYTE // 8),
            "eval " * (MEGABYTE // 5) + "$x",
            "if " * (MEGABYTE // 3),
            "\U0001f600" * (MEGABYTE // 4),
            "x" * (2 * MEGABYTE),
        ]
    ),
    ids=sample(range(18)),
)
@pytest.mark.timeout(30)
def test_a_large_script_takes_bounded_time(script: str) -> None:
    plain_commands(["bash", "-lc", script])
    all_commands(["bash", "-lc", script])


@pytest.mark.parametrize(
    "script",
    [
        *("cat <<A " * 15_000, "a | " * 30_000, "a=(" * 40_000, "f() " * 30_000, "<<<" * 40_000),
*("sudo " * 20 + "ls", "a " + "x" * MEGABYTE * 2),
    ],
    ids=range(7),
)  # fmt: skip
@pytest.mark.timeout(60)
def test_scripts_that_are_too_long_to_read_are_reported(script: str) -> None:
    padded = "git push 2>&1\n: $x\n" + script
    assert not all_commands(["bash", "-lc", padded]).is_complete


@pytest.mark.parametrize(
    "script",
    [
        "cat > f <<'EOF'\n"
        + "some ordinary line (with 'quotes' and $vars | <b>)\n" * 10_000
        + "EOF\n",
        "cat > f <<EOF\n"
        + "some ordinary line (with quotes and | <b>)\n" * 11_000
        + "EOF\n",
        "python3 -c '" + 'print("x" | 3)\n' * 30_000 + "' > x",
        "for i in 1 2 3; do echo $i; if [ -f x ]; then cat x; fi; done\n" * 800,
    ],
    ids=range(4),
)
def test_a_long_script_of_the_ordinary_kind_is_read(script: str) -> None:
    found = all_commands(["bash", "-lc", script + "\ngit push > log"])
    assert found.is_complete
    assert found.commands[-1] == ("git", "push")


def test_the_words_of_an_error_are_looked_at() -> None:
    found = all_commands(["bash", "-c", "if then git push; fi"])
    assert ("git", "push") in found.commands


def test_a_script_is_read_after_one_that_took_too_long() -> None:
    all_commands(["bash", "-c", "cat <<A " * 20_000])
    assert all_commands(["bash", "-c", "(ls)"]).commands[1:] == (("ls",),)
