"""What is read as plain is what a shell makes of it: both are asked."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_py.execpolicy.safety import dangerous, is_known_safe
from codex_py.execpolicy.script import all_commands, plain_commands
from tests.support.searches import share

thorough = settings(max_examples=share(120), deadline=None, database=None)
quick = settings(max_examples=share(400), deadline=None, database=None)

NAMES = ("zq0", "zq1", "zq2")
SHELLS = [
    shell for shell in ("/bin/bash", "/bin/dash", "/bin/zsh") if Path(shell).exists()
]

characters = st.sampled_from("ab0-_./:@%+,^=!#~{}'\"\\$`*?[]()<>|&; \n\t\ré\u00a0")
values = st.one_of(
    st.text(characters, max_size=6), st.sampled_from(["HEAD~1", "{}", "a=b", "--", "#"])
)


@st.composite
def quoted(draw: st.DrawFn, value: str) -> str:
    """One of the ways to write a word that stands for `value`."""
    raw = "".join(
        draw(
            st.sampled_from(
                [
                    shlex.quote(character),
                    '"'
                    + (f"\\{character}" if character in '"\\$`' else character)
                    + '"',
                    character if character.isalnum() else shlex.quote(character),
                    "\\" + character if character != "\n" else "'\n'",
                ]
            )
        )
        for character in value
    )
    return raw or "''"


@st.composite
def scripts(draw: st.DrawFn) -> str:
    text = ""
    for index in range(draw(st.integers(1, 4))):
        if index:
            text += draw(
                st.sampled_from(
                    [" && ", "||", " ; ", ";", " | ", "\n", " # c\n", " \\\n&& "]
                )
            )
        words = [draw(st.sampled_from(NAMES))]
        words += [draw(quoted(value)) for value in draw(st.lists(values, max_size=3))]
        text += draw(st.sampled_from([" ", "  ", "\t", " \\\n "])).join(words)
    return text


@st.composite
def damaged_scripts(draw: st.DrawFn) -> str:
    text = draw(scripts())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        text = (
            text[:at]
            + draw(st.text(characters, max_size=2))
            + text[at + draw(st.integers(0, 1)) :]
        )
    return text


def commands_run_by(shell: str, script: str, folder: Path) -> set[tuple[str, ...]]:
    """What a shell calls, taken together from one run where all succeed and one where all fail."""
    log = shlex.quote(str(folder / "log"))
    # A file for each call: those of a pipeline run at the same time.
    record = (
        f"set -C; n=0; until {{ true >{log}.$n; }} 2>/dev/null; do n=$((n+1)); done; set +C; "
        f"printf '%s\\0' \"$@\" >>{log}.$n; return"
    )
    found: set[tuple[str, ...]] = set()
    for status in (0, 1):
        functions = (
            f'{name}() {{ set -- {name} "$@"; {record} {status}; }}\n' for name in NAMES
        )
        subprocess.run(
            [shell, "-c", "".join(functions) + script],
            cwd=folder,
            env={"PATH": "/nowhere", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        for file in folder.glob("log.*"):
            found.add(tuple(file.read_bytes().decode().split("\0")[:-1]))
            file.unlink()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shell")


@thorough
@given(script=scripts(), shell=st.sampled_from(SHELLS))
def test_a_shell_gets_the_words_that_were_read(
    script: str, shell: str, folder: Path
) -> None:
    commands = plain_commands(["bash", "-c", script])
    if commands is None:
        # Written with a character that is never plain, or not at the start of a word.
        assert set(script) & set("\r\u00a0=")
    else:
        assert commands_run_by(shell, script, folder) == set(commands)


@thorough
@given(script=damaged_scripts(), shell=st.sampled_from(SHELLS))
def test_a_damaged_script_is_read_as_a_shell_reads_it_or_not_at_all(
    script: str, shell: str, folder: Path
) -> None:
    commands = plain_commands(["bash", "-c", script])
    if commands is None:
        return
    checked = subprocess.run(
        ["/bin/bash", "-nc", script], capture_output=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, b"")
    if all(command[0] in NAMES for command in commands):
        assert commands_run_by(shell, script, folder) == set(commands)


@thorough
@given(st.lists(st.lists(values, min_size=1, max_size=4), min_size=1, max_size=3))
def test_words_that_are_quoted_again_are_read_as_they_were(
    commands: list[list[str]],
) -> None:
    script = " && ".join(shlex.join(command) for command in commands)
    read = plain_commands(["bash", "-c", script])
    assert read is None or read == tuple(tuple(command) for command in commands)


@quick
@given(st.lists(st.one_of(st.text(), damaged_scripts(), st.sampled_from(
    ["bash", "sh", "-c", "-lc", "sudo", "-u", "env", "A=1", "xargs", "find", "-exec", ";", "rm", "-f", "--"]
)), max_size=5))  # fmt: skip
def test_anything_can_be_asked_about(argv: list[str]) -> None:
    plain, found = plain_commands(argv), all_commands(argv).commands
    assert found[:1] == ((tuple(argv),) if argv else ())
    is_known_safe(argv)
    dangerous(argv)
    if plain is not None:
        # What is plain is also found by the other way.
        assert set(plain) <= set(found)


@quick
@given(scripts())
def test_the_grammar_finds_the_names_of_what_is_plain(script: str) -> None:
    plain = plain_commands(["bash", "-c", script])
    if plain is not None:
        # A subshell around it is beyond plain words.
        found = all_commands(["bash", "-c", f"(\n{script}\n)"]).commands
        assert {command[0] for command in plain} <= {command[0] for command in found}
