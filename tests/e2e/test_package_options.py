"""Options of `exec` that installed packages add, as `docs/extensions.md` shows one.

Tests `api/options.py`, `command_line/options.py` and `command_line/extension_options.py`.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.support.packages import (
    install_package,
    run_with,
    shown_block,
    shown_points,
)
from tests.support.program import Workplace, jsonl
from tests.support.server import ScriptedServer

GROUP = "codex_py.options"

Done: TypeAlias = "subprocess.CompletedProcess[bytes]"
Run: TypeAlias = Callable[..., Done]


def says(text: str) -> list[dict[str, object]]:
    return [*ev_message(text), ev_completed()]


def install(packages: Path, module: str) -> None:
    points = shown_points(GROUP)
    install_package(packages, "codex_py_words", module, {GROUP: points})


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    return tmp_path / "packages"


@pytest.fixture
def run(place: Workplace, packages: Path) -> Run:
    def run(*argv: str) -> Done:
        return run_with(packages, place, *argv)

    return run


EXEC = ("exec", "--json", "--skip-git-repo-check")


@pytest.mark.parametrize(
    "words",
    [
        ("--most-words", "2", "go"),
        ("--most-words=2", "go"),
        ("go", "--most-words=2"),
        ("--most-words", "2", "--", "go"),
    ],
)
def test_an_option_of_a_package_makes_its_feature(
    place: Workplace, packages: Path, run: Run, words: tuple[str, ...]
) -> None:
    install(packages, shown_block("class WordsOptions"))
    with ScriptedServer([says("one two three"), says("one two")]) as server:
        place.configure(server)
        done = run(*EXEC, *words)
    assert done.returncode == 0, done.stderr
    texts = [
        event["item"]["text"]
        for event in jsonl(done.stdout)
        if event["type"] == "item.completed"
        and event["item"]["type"] == "agent_message"
    ]
    assert texts == ["one two three", "one two"]
    assert "Say it in 2 words." in str(server.requests[1].input[-1])


def test_without_the_option_the_package_is_not_imported(
    place: Workplace, packages: Path, run: Run
) -> None:
    install(packages, "raise SystemError('it was imported')\n")
    with ScriptedServer([says("one two three")]) as server:
        place.configure(server)
        done = run(*EXEC, "go")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*EXEC, "--most-words", "x", "go"], "--most-words: invalid int value: 'x'"),
        ([*EXEC, "--most-words", "0", "go"], "--most-words takes a number from 1"),
        ([*EXEC, "--most-words"], "--most-words: expected one argument"),
        ([*EXEC, "--most-wrods", "2", "go"], "unknown option --most-wrods."),
        (
            ["review", "--most-words", "2"],
            "--most-words is for `codex-py exec`",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    place: Workplace, packages: Path, run: Run, words: list[str], message: str
) -> None:
    install(packages, shown_block("class WordsOptions"))
    with ScriptedServer([]) as server:
        place.configure(server)
        done = run(*words)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("import no_such_module\n", "ModuleNotFoundError"),
        ("WordsOptions = 3\n", "is no subclass of `Options`"),
        (
            "from codex_py.api.options import Options\nclass WordsOptions(Options): ...\n",
            "its class declares no option --most-words",
        ),
    ],
)
def test_a_class_that_cannot_be_used_is_named(
    place: Workplace, packages: Path, run: Run, module: str, reason: str
) -> None:
    install(packages, module)
    with ScriptedServer([]) as server:
        place.configure(server)
        done = run(*EXEC, "--most-words", "2", "go")
    assert done.returncode == 78
    text = done.stderr.decode()
    assert (
        "the option 'most-words' (codex_py_words:WordsOptions) cannot be used: " in text
    )
    assert reason in text


def test_help_and_completion_name_the_option(packages: Path, run: Run) -> None:
    install(packages, "raise SystemError('it was imported')\n")
    text = run("help", "exec").stdout.decode()
    heading = "\nOptions of installed packages:\n"
    assert text.endswith(f"{heading}  --most-words  codex-py-words\n")
    words = run("completion", "--candidates", "--", "exec", "--most").stdout
    assert words.split() == [b"--most-words"]


IN_PLACE = """
from typing import Annotated
from codex_py.api.options import Options, UsageError, flag, option

class PlaceOptions(Options):
    in_place: Annotated[bool, flag("--in-place")] = False

    def run(self, arguments, environment):
        print("in place of", arguments.command)
        return 5

class WordsOptions(Options):
    most_words: Annotated[int, option("--most-words", type=int)] = 0

    def check(self, arguments):
        if self.most_words < 1:
            raise UsageError(f"a number from 1, not {self.most_words}")
"""


def test_options_may_take_the_place_of_the_command_once_all_are_checked(
    packages: Path, run: Run
) -> None:
    options = ("PlaceOptions", "WordsOptions")
    names = ("in-place", "most-words")
    points = {
        name: f"codex_py_words:{kind}"
        for name, kind in zip(names, options, strict=True)
    }
    install_package(packages, "codex_py_words", IN_PLACE, {GROUP: points})
    done = run(*EXEC, "--in-place", "--most-words", "1", "go")
    assert (done.returncode, done.stdout) == (5, b"in place of exec\n"), done.stderr
    wrong = run(*EXEC, "--in-place", "--most-words", "0", "go")
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert wrong.stderr == b"Error: a number from 1, not 0\n"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('{"wordz": {"most": 2}}', "there is no setting `wordz`"),
        ('{"history": {"persistance": "none"}}', "did you mean `history.persistence`?"),
    ],
)
def test_an_option_whose_setting_nobody_takes_ends_the_start(
    place: Workplace, packages: Path, run: Run, settings: str, said: str
) -> None:
    install(
        packages,
        f"""
from typing import Annotated
from codex_py.api.options import Options, option

class WordsOptions(Options):
    most_words: Annotated[int | None, option("--most-words", type=int)] = None

    def settings(self, arguments):
        return {settings}
""",
    )
    with ScriptedServer([]) as server:
        place.configure(server)
        done = run(*EXEC, "--most-words", "2", "go")
    text = done.stderr.decode()
    assert (done.returncode, text.count("\n")) == (78, 1), text
    assert text.startswith("Error: --most-words has no effect, because ")
    assert said in text


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (
            "def settings(self, arguments): pass",
            "`settings` returned None, not a mapping",
        ),
        (
            "async def settings(self, arguments): ...",
            "`settings` returned coroutine, not a mapping",
        ),
        (
            "def run(self, arguments, environment): return 'x'",
            "`run` returned str, not an exit code or None",
        ),
        (
            "def run(self, arguments, environment): return True",
            "`run` returned bool, not an exit code or None",
        ),
        (
            "def session(self, options): pass",
            "`session` returned None, not `SessionOptions`",
        ),
    ],
)
def test_a_method_that_returns_something_else_is_named(
    place: Workplace, packages: Path, run: Run, method: str, said: str
) -> None:
    install(
        packages,
        f"""
from typing import Annotated
from codex_py.api.options import Options, option

class WordsOptions(Options):
    most_words: Annotated[int | None, option("--most-words", type=int)] = None

    {method}
""",
    )
    with ScriptedServer([]) as server:
        place.configure(server)
        done = run(*EXEC, "--most-words", "2", "go")
    named = "Error: --most-words (codex_py_words:WordsOptions) cannot be used: "
    assert (done.returncode, done.stderr.decode()) == (78, f"{named}{said}\n")
