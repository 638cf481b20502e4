"""Subcommands of installed packages, as `docs/extensions.md` shows one.

Tests `api/commands.py`, `api/configuration.py`, `cli/help.py`, `cli/package_commands.py` and `registry.py`.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from codex_py.cli.main import main
from tests.support.packages import (
    install_package,
    shown_block,
    shown_points,
)

GROUP = "codex_py.commands"

Run: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    for name in ("codex_py_count", "codex_py_other"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def documented(packages: Path) -> Path:
    install_package(
        packages,
        "codex_py_count",
        shown_block("Count the words of a file."),
        {GROUP: shown_points(GROUP)},
    )
    return packages


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*argv: str) -> tuple[int, str, str]:
        code = main(argv)
        out, err = capfd.readouterr()
        return code, out, err

    return run


def test_the_command_of_a_package_runs_with_its_options(
    documented: Path, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("to be or not to be", encoding="utf-8")
    assert run("count-words", "a") == (0, "6\n", "")
    by_count = run("count-words", "--each", "--order", "by-count", "a")
    assert by_count == (0, "2 be\n2 to\n1 not\n1 or\n", "")


@pytest.mark.parametrize("words", [("count-words", "--help"), ("help", "count-words")])
def test_its_help_is_its_own(
    documented: Path, run: Run, words: tuple[str, ...]
) -> None:
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert out.startswith("Count the words of a file.\n")


def test_the_list_of_commands_names_it_without_importing_it(
    documented: Path, run: Run
) -> None:
    code, out, _ = run("help")
    assert code == 0
    assert re.search(
        r"^Commands of installed packages:\n  count-words  codex-py-count$",
        out,
        re.MULTILINE,
    )
    assert "codex_py_count" not in sys.modules


def test_other_commands_do_not_import_it(documented: Path, run: Run) -> None:
    run("exit-codes")
    run("help", "exec")
    assert "codex_py_count" not in sys.modules


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["count-words"], "say which file: codex-py count-words FILE"),
        (["count-words", "--eahc", "a"], "unknown option --eahc. Did you mean --each?"),
        (["count-words", "a", "b"], "unexpected argument 'b'"),
        (["count-words", "--order", "x", "a"], "argument --order: 'x' is not"),
    ],
)
def test_a_mistake_is_one_sentence(
    documented: Path, run: Run, words: list[str], message: str
) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message.removeprefix("argument ") in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("before", "completions"),
    [
        (["count-"], ["count-words"]),
        (["count-words", "--"], ["--each", "--order", "--help"]),
        (["count-words", "--order", ""], ["by-name", "by-count"]),
    ],
)
def test_its_options_are_completed(
    documented: Path, run: Run, before: list[str], completions: list[str]
) -> None:
    code, out, _ = run("completion", "--candidates", "--", *before)
    assert (code, out.split()) == (0, completions)


def test_a_command_of_the_program_cannot_be_replaced(packages: Path, run: Run) -> None:
    install_package(
        packages,
        "codex_py_other",
        "raise SystemError('it was imported')\n",
        {GROUP: {"exit-codes": "codex_py_other:command"}},
    )
    code, out, _ = run("exit-codes")
    assert code == 0
    assert "53" in out


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("import no_such_module\n", "ModuleNotFoundError"),
        ("other = 1\n", "AttributeError"),
        ("command = print\n", "is a builtin_function_or_method, not a `Command`"),
        (
            "from codex_py.api.commands import Command\ncommand = Command()\n",
            "it has neither `run` nor `members`",
        ),
        ("1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_a_command_that_cannot_be_used_is_named(
    packages: Path, run: Run, module: str, reason: str
) -> None:
    target = {"broken": "codex_py_other:command"}
    install_package(packages, "codex_py_other", module, {GROUP: target})
    code, out, err = run("broken")
    assert (code, out) == (78, "")
    assert err.startswith(
        "Error: the command 'broken' (codex_py_other:command) cannot be used: "
    )
    assert reason in err
    assert err.count("\n") == 1


HEAD = """
from pathlib import Path
from typing import Annotated
from codex_py.api.commands import Command, flag, frozen

def run(options, environment):
    return 0

"""


@pytest.mark.parametrize(
    ("module", "words", "reason"),
    [
        (
            "command = Command(lambda *_: None)",
            [],
            "its function returned None, not an exit code from 0 to 255",
        ),
        ("command = Command(lambda *_: 'x')", [], "its function returned 'x', not"),
        ("command = Command(lambda *_: True)", [], "its function returned True, not"),
        ("command = Command(lambda *_: 256)", [], "its function returned 256, not"),
        (
            "async def run(*_): ...\ncommand = Command(run)",
            [],
            "its function returned <coroutine object run",
        ),
        (
            "command = Command(lambda options, _: options.file, 'Count.')",
            ["a"],
            "its `Command` has no class of options, so its function got the list of the"
            " words: 'list' object has no attribute 'file'",
        ),
        (
            "class Words:\n    loud: Annotated[bool, flag('--loud')] = False\n"
            "command = Command(run, '', Words)",
            [],
            "Words takes no options: it needs `@frozen`",
        ),
        (
            "@frozen\nclass Words:\n    file: str\ncommand = Command(run, '', Words)",
            [],
            "its options cannot be given to Words: Words takes the fields file; file must",
        ),
        (
            "@frozen\nclass Words:\n    loud: 'Absent' = 1\n"
            "command = Command(run, '', Words)",
            [],
            "its class of options is wrong: NameError(",
        ),
        (
            "command = Command(run, Path(__file__).with_name('absent.txt'))",
            ["--help"],
            "its help cannot be read: [Errno 2] No such file or directory",
        ),
        ("command = Command(run, 3)", ["--help"], "its help is a int, not a text"),
        (
            "@frozen\nclass Words:\n    loud: Annotated[bool, flag('--loud')] = False\n"
            "command = Command(run, 'See --any.\\n\\n  -l, --lout  Be loud\\n', Words)",
            ["--help"],
            "its help lists -l, which its class of options does not declare",
        ),
        (
            "command = Command(members={'show': Command(help='Show.')})",
            ["show"],
            "`broken show` has neither `run` nor `members`",
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_mistake_of_a_package_is_one_sentence(
    packages: Path, run: Run, module: str, words: list[str], reason: str
) -> None:
    target = {"broken": "codex_py_other:command"}
    text = f"{HEAD}{module}\n"
    install_package(packages, "codex_py_other", text, {GROUP: target})
    code, out, err = run("broken", *words)
    named = "Error: the command 'broken' (codex_py_other:command) cannot be used: "
    assert (code, out) == (78, "")
    assert err.startswith(f"{named}{reason}")
    assert err.count("\n") == 1
    if words == ["--help"]:
        assert run("help", "broken") == (code, out, err)


@pytest.mark.parametrize("error", ["TypeError('boom')", "AttributeError('boom')"])
def test_a_bug_of_a_command_keeps_its_traceback(
    packages: Path, run: Run, error: str
) -> None:
    module = f"{HEAD}def run(words, environment):\n    raise {error}\n"
    install_package(
        packages,
        "codex_py_other",
        f"{module}command = Command(run)\n",
        {GROUP: {"broken": "codex_py_other:command"}},
    )
    with pytest.raises(Exception, match="boom") as caught:
        run("broken")
    assert repr(caught.value) == error


def test_two_packages_with_one_command_are_named(packages: Path, run: Run) -> None:
    for module in ("codex_py_count", "codex_py_other"):
        install_package(packages, module, "", {GROUP: {"same": f"{module}:command"}})
    code, _, err = run("same")
    assert code == 78
    assert "codex-py-count, codex-py-other" in err


GROUP_MODULE = """
from codex_py.api.commands import Command, CodexError

def fail(words, environment):
    raise CodexError("it is full", exit_code=75)

def show(words, environment):
    print(words)
    return 3

command = Command(
    help="Keep things.\\n",
    members={"show": Command(show, "Show things.\\n"), "fail": Command(fail)},
)
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["show", "a", "--b"], (3, "['a', '--b']\n", "")),
        (["fail"], (75, "", "Error: it is full\n")),
        (["--help"], (0, "Keep things.\n", "")),
        (["show", "--help"], (0, "Show things.\n", "")),
        (
            [],
            (
                2,
                "",
                "Error: say what to do: codex-py keep COMMAND, one of show, fail\n",
            ),
        ),
        (
            ["shwo"],
            (2, "", "Error: unknown command `keep shwo`. Did you mean show?\n"),
        ),
    ],
)
def test_a_group_runs_its_members(
    packages: Path, run: Run, words: list[str], expected: tuple[int, str, str]
) -> None:
    target = {"keep": "codex_py_other:command"}
    install_package(packages, "codex_py_other", GROUP_MODULE, {GROUP: target})
    assert run("keep", *words) == expected
    candidates = run("completion", "--candidates", "--", "keep", "")[1]
    assert candidates.split() == ["show", "fail"]


MEMBER_MODULE = """
from pathlib import Path
from typing import Annotated, Literal

from codex_py.api.commands import Command, flag, frozen, option, print_table
from codex_py.api.configuration import ConfigOptions, command_config

@frozen
class Options(ConfigOptions):
    session: Annotated[str | None, option()] = None
    json: Annotated[bool, flag("--json")] = False
    unit: Annotated[Literal["words", "lines"], option("--unit")] = "words"

def run(options, environment):
    config = command_config(options, environment)
    return print_table([("model", config.model or ""), ("unit", options.unit)])

command = Command(run, options=Options)
with_file = Command(run, Path(__file__).with_suffix(".txt"), Options)
"""


@pytest.fixture
def members(packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("CODEX_HOME", str(home))
    names = {
        "sessions.count": "codex_py_other:command",
        "sessions.tell": "codex_py_other:with_file",
    }
    install_package(packages, "codex_py_other", MEMBER_MODULE, {GROUP: names})
    help_file = packages / "codex_py_other.txt"
    help_file.write_text("Tell the unit: --unit.\n", encoding="utf-8")


@pytest.mark.usefixtures("members")
@pytest.mark.parametrize("before", [[], ["-c", "model=m"]])
def test_a_member_of_a_group_of_the_program_reads_the_configuration(
    run: Run, before: list[str]
) -> None:
    out = run(*before, "sessions", "count", "-c", "model=n", "--unit", "lines")
    assert out == (0, "model  n\nunit   lines\n", "")


@pytest.mark.usefixtures("members")
def test_a_member_without_a_help_has_that_of_its_group(run: Run) -> None:
    assert run("sessions", "count", "--help") == run("sessions", "--help")
    assert run("sessions", "tell", "-h") == (0, "Tell the unit: --unit.\n", "")


@pytest.mark.usefixtures("members")
@pytest.mark.parametrize(
    ("before", "completions"),
    [
        (["sessions", "cou"], ["count"]),
        (["sessions", "count", "--json", "-"], ["--json"]),
        (["sessions", "tell", "--"], ["--unit"]),
        (["sessions", "tell", "--unit", ""], ["words", "lines"]),
    ],
)
def test_the_options_of_a_member_are_completed(
    run: Run, before: list[str], completions: list[str]
) -> None:
    code, out, _ = run("completion", "--candidates", "--", *before)
    assert (code, out.split()) == (0, completions)


@pytest.mark.usefixtures("members")
def test_words_that_begin_with_a_member_name_its_group(run: Run) -> None:
    _, _, err = run("count", "my", "sessions")
    assert err == (
        "Error: put quotes around the prompt, or write `codex-py sessions count`\n"
    )


LITERAL_MODULE = """
from typing import Annotated

from codex_py.api.commands import Command, frozen, option, print_out
from codex_py.api.options import parse_arguments

@frozen
class Options:
    words: Annotated[str | None, option()] = None
    literal_words: tuple[str, ...] = ()

def run(options, environment):
    arguments = parse_arguments(options.literal_words)
    return print_out(f"{options.words} {arguments.model}\\n")

command = Command(run, "The help.\\n", Options)
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["one", "--", "-m", "x"], (0, "one x\n", "")),
        (["one"], (0, "one None\n", "")),
        (["--", "--help"], (0, "The help.\n", "")),
    ],
)
def test_the_words_behind_two_dashes_may_be_options_of_another_command(
    packages: Path, run: Run, words: list[str], expected: tuple[int, str, str]
) -> None:
    install_package(
        packages,
        "codex_py_literal",
        LITERAL_MODULE,
        {GROUP: {"literal": "codex_py_literal:command"}},
    )
    assert run("literal", *words) == expected


def test_the_name_of_a_command_does_not_come_behind_options(
    documented: Path, run: Run
) -> None:
    assert run("--json", "count-words", "x") == (
        2,
        "",
        "Error: `count-words` takes its own options, behind its name: codex-py help"
        " count-words\n",
    )
