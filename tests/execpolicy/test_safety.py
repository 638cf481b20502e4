"""Also tests `execpolicy/wrappers.py`."""

import sys

import pytest

from codex_py.execpolicy.safety import dangerous, is_known_safe


def lc(script: str) -> list[str]:
    return ["bash", "-lc", script]


@pytest.mark.parametrize(
    "argv",
    [
        *([name] for name in ("cat", "cd", "cut", "echo", "expr", "false", "grep", "head", "id", "ls")),
        *([name] for name in ("nl", "paste", "pwd", "rev", "seq", "stat", "tail", "tr", "true")),
        *([name] for name in ("uname", "uniq", "wc", "which", "whoami")),
        ["/usr/bin/cat", "/etc/passwd"],
        ["echo", "$(rm x)", ">", "y"],
        ["base64", "-d", "file"],
        ["find", ".", "-name", "*.py", "-executable", "-print0"],
        ["rg", "-n", "--files", "-tzig", "-ez", "pre"],
        ["sed", "-n", "1,5p", "file"],
        ["sed", "-n", "10p"],
        ["uniq", "-c", "-f", "1", "in"],
        lc("ls"),
        lc("grep -R 'Cargo.toml' -n | head -5 && cat a || true; pwd"),
        ["/bin/zsh", "-c", "ls\npwd"],
    ],
)  # fmt: skip
def test_commands_that_only_read_are_safe(argv: list[str]) -> None:
    assert is_known_safe(argv)


@pytest.mark.skipif(
    sys.platform != "linux", reason="other programs of the name elsewhere"
)
def test_more_is_safe_on_linux() -> None:
    assert is_known_safe(["tac", "x"])
    assert is_known_safe(["numfmt", "1000"])


@pytest.mark.parametrize(
    "argv",
    [
        *([], [""], ["foo"], ["git", "status"], ["cargo", "check"], ["rm"], ["env", "ls"], ["sudo", "ls"]),
        *(["./ls"], ["/tmp/ls"], ["bin/ls"], ["./bash", "-lc", "ls"], ["bash"], ["bash", "ls"]),
        *(["base64", option] for option in ("-o", "-oout", "-do", "--output", "--output=x")),
        *(["find", ".", action, "x"] for action in ("-exec", "-execdir", "-ok", "-okdir", "-delete")),
        *(["find", ".", action, "x"] for action in ("-fls", "-fprint", "-fprint0", "-fprintf")),
        *(["rg", option, "x"] for option in ("--pre", "--pre=x", "--hostname-bin", "--hostname-bin=x")),
        *(["rg", option, "x"] for option in ("-z", "--search-zip", "-nz")),
        *(["sed", "-n", script, "x"] for script in ("xp", "1,p", ",1p", "1,2,3p", "1p;w y", "p", "1p\n")),
        *(["sed", "-n"], ["sed", "1p", "x"], ["sed", "-n", "1p", "x", "y"], ["sed", "-n", "1p", "-fx"]),
        *(["uniq", "in", "out"], ["uniq", "-", "out"], ["uniq", "--", "-a", "out"]),
        *(lc(script) for script in ("", "ls > x", "(ls)", "ls && rm x", "ls $x", "'git status'", "ls &")),
        *(lc(script) for script in ("ls || (pwd && echo hi)", "cat <(ls)", "echo `ls`", "A=1 ls", "./ls")),
        ["bash", "-lc", "ls", "zero"],
    ],
)  # fmt: skip
def test_anything_else_is_not_known_to_be_safe(argv: list[str]) -> None:
    assert not is_known_safe(argv)


@pytest.mark.parametrize(
    "script",
    [
        *("rm -f x", "rm -rf x", "rm -r -f x", "rm -fr x", "rm --force x", "rm x -f", "/bin/rm -f x"),
        *("\\rm -f x", '"r"m -f x', "r''m -f x", "r\\\nm -f x", "rm -'f' x", 'rm "-rf" "$x"', "rm -f *"),
        *("sudo rm -f x", "sudo -u x rm -fr y", "sudo -E env A=1 rm -f x", "env A=1 rm -f x"),
        *("command rm -f x", "nohup rm -f x", "timeout -s KILL 5 rm -f x", "nice -n 5 rm -f x"),
        *("find . | xargs rm -f", "xargs -0 -n1 rm -rf <x", "find . -exec rm -f {} +", "exec rm -f x"),
        *("bash -c 'rm -f x'", "sh -ec \"bash -lc 'rm -f x'\"", "eval 'rm -f x'", "eval rm -f '$x'"),
        *("a | rm -f x", "a && rm -f x", "for x in a; do rm -r -f $x; done", "if a; then rm -f x; fi"),
        *('echo "$(rm -rf x)"', "echo `rm -f x`", "cat <(rm -f x)", "f() { rm -f x; }", "A=$(rm -f x)"),
        *("rm -f x > log", "rm >log -f x", "rm -f x &", "(rm -f x)", "! rm -f x", "time rm -f x"),
        *("rm --forc x", "env -S 'rm -f x'", "env --split-string='rm -f x'", "env -iS'rm -f x'"),
        *("watch -n 1 'rm -f x'", "watch rm -f x", "trap 'rm -f x' EXIT", "su x -c 'rm -f x'"),
        *("flock l rm -f x", "flock l -c 'rm -f x'", "script -qc 'rm -f x'", "taskset 1 rm -f x"),
        *("bash <<E\nrm -f x\nE", "sh -s <<'E'\nls && rm -f x\nE", "bash <<< 'rm -f x'"),
        *("rm -f x\nif [", "rm -f ünï", "ls\r\nrm -f x\r\n", "case a in a) rm -f x;; esac", "if then rm -rf x"),
    ],
)  # fmt: skip
def test_forced_rm_is_dangerous_wherever_it_is(script: str) -> None:
    assert dangerous(lc(script)) == "`rm -f` deletes without asking"


@pytest.mark.parametrize(
    "script",
    [
        *("rm x", "rm -r x", "rm -- -f", "rm -r -- --force", "rm -i x", "rm --foo", "rm ./-f", "rm"),
        *("echo 'rm -rf x'", "echo rm -f", "sudo echo rm -f", "git rm -f x", "# rm -f x", "rmdir -f x"),
        *("cmd=rm; $cmd -rf x", "$(echo rm) -rf x", "rm $(echo -f)", "command -v rm -f"),
        *("cat <<E\nrm -f x\nE", "cat <<< 'rm -f x'", "trap - EXIT", "env -S 'ls -f'", "rm --fx"),
        *("git reset --hard", "git clean -fdx", "dd if=a of=b", "chmod -R 777 x", "mv -f a b"),
        *("", "rm\0 -f", "(" * 1000),
    ],
)  # fmt: skip
def test_nothing_else_is_dangerous(script: str) -> None:
    assert dangerous(lc(script)) is None


def test_scripts_that_cannot_be_searched_count_as_dangerous() -> None:
    unread = "the command is too long or too deeply nested to be checked"
    assert dangerous(lc("touch v; r''m -f v\n: $x\n" + "cat <<A " * 15_000)) == unread
    assert dangerous(["sudo"] * 20 + ["rm", "-f"]) == unread
    assert dangerous(lc("touch v\n: $x\n" + "cat <<A " * 15_000)) is None


def test_a_program_that_is_not_in_a_shell_is_looked_at_too() -> None:
    assert dangerous(["rm", "-f", "x"])
    assert dangerous(["sudo", "rm", "-f", "x"])
    assert dangerous(["rm", "x"]) is None
    assert dangerous(["echo", "rm -f x"]) is None
    assert dangerous([]) is None


def test_uncertain_commands_are_not_safe_either() -> None:
    assert not is_known_safe(lc("$(echo rm) -rf x"))
    assert not is_known_safe(lc("echo $(rm -f x)"))
