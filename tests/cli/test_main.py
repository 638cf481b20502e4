"""The real program, as far as it gets without a session.

Also tests `__main__.py` and `commands/explain.py`.
"""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import codex_py
from codex_py import __version__
from codex_py.cli.commands import ELSEWHERE, find_command
from codex_py.cli.package_commands import known_commands


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return {"CODEX_HOME": str(home), "HOME": str(tmp_path), "PATH": os.defpath}


def run(
    *argv: str,
    cwd: Path,
    environment: dict[str, str],
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "codex_py", *argv],
        cwd=cwd,
        env=environment,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
        encoding="utf-8",
    )


@pytest.mark.parametrize("argv", [["--version"], ["-V"], ["exec", "--version"]])
def test_the_version_is_printed(
    tmp_path: Path, environment: dict[str, str], argv: list[str]
) -> None:
    done = run(*argv, cwd=tmp_path, environment=environment)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"codex-py {__version__}\n",
        "",
    )


def test_the_version_needs_no_imports(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "codex_py", "--version"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        encoding="utf-8",
    )
    assert "codex_py" in done.stderr
    assert "codex_py.frontends" not in done.stderr
    assert "argparse" not in done.stderr


def test_nothing_is_imported_from_the_working_directory(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    for name in ("json", "argparse", "asyncio", "httpx"):
        (tmp_path / f"{name}.py").write_text(
            "raise SystemExit('imported')", encoding="utf-8"
        )
    done = run("exec", cwd=tmp_path, environment=environment)
    assert (done.returncode, done.stderr) == (
        1,
        "Reading prompt from stdin...\n"
        "Error: Not inside a trusted directory and --skip-git-repo-check was not specified."
        " To use this folder: git init, or `codex-py exec --trust`.\n",
    )


@pytest.mark.parametrize(
    ("argv", "code", "stderr"),
    [
        ([], 2, "Error: stdin is not a terminal; without one, use `codex-py exec`\n"),
        (
            ["fix it"],
            2,
            "Error: stdin is not a terminal; without one, use `codex-py exec`\n",
        ),
        (["exec", ""], 2, "Error: the prompt is empty\n"),
        (["help", "frk"], 2, "Error: unknown command 'frk'. Did you mean fork?\n"),
        (
            ["-c", "a=1", "exec-server", "--listen", "stdio://"],
            2,
            "Error: `codex-py exec-server` is not there yet; `codex-py help` lists what is\n",
        ),
        (["exce", "hi"], 2, "Error: unknown command 'exce'. Did you mean exec?\n"),
        *(
            (
                [word],
                2,
                f"Error: unknown command {word!r}. Did you mean {name}?"
                f" As a prompt: codex-py -- {word}\n",
            )
            for word, name in (
                ("resumee", "resume"),
                ("exce", "exec"),
                ("sesions", "sessions"),
            )
        ),
        # Short words are near to many, and nobody means `help` by the first of these.
        *(
            (
                words,
                2,
                "Error: stdin is not a terminal; without one, use `codex-py exec`\n",
            )
            for words in (["hello"], ["do"], ["--", "resumee"], ["resumee "])
        ),
        *(
            (
                [word, "--all"],
                2,
                f"Error: `codex-py {word}` is not there yet; `codex-py help` lists what is\n",
            )
            for word in ("cloud", "man", "import")
        ),
        (
            ["update", "--all"],
            2,
            "Error: there is no command 'update'. Update codex-py in the way in which you installed it.\n",
        ),
        (["exec", "--jsn"], 2, "Error: unknown option --jsn. Did you mean --json?\n"),
        (
            ["-m", "x", "apply", "a.patch"],
            2,
            "Error: `apply` takes its own options, behind its name: codex-py help apply\n",
        ),
    ],
)
def test_usage_errors_are_one_sentence(
    tmp_path: Path, environment: dict[str, str], argv: list[str], code: int, stderr: str
) -> None:
    done = run(*argv, cwd=tmp_path, environment=environment)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", stderr)


@pytest.mark.parametrize("words", [[], ["set", "model", "x"], ["get", "model"]])
def test_config_says_how_a_setting_is_changed(
    tmp_path: Path, environment: dict[str, str], words: list[str]
) -> None:
    done = run("config", *words, cwd=tmp_path, environment=environment)
    file = Path(environment["CODEX_HOME"]) / "config.toml"
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "Error: say which setting: codex-py config explain KEY. No command changes a setting:"
        f" write `KEY = VALUE` into {file}, or pass -c KEY=VALUE\n",
    )


@pytest.mark.parametrize(
    ("argv", "start"),
    [
        (["--help"], "A streaming coding agent"),
        (["help"], "A streaming coding agent"),
        (["exec", "--help"], "Run one prompt"),
        (["help", "exec"], "Run one prompt"),
        (["config", "--help"], "Explain a setting"),
        (["mcp-server", "--help"], "Run as an MCP server"),
        (["app-server", "--help"], "Run as a Codex app server"),
        (["acp", "--help"], "Run as the agent of an editor"),
    ],
)
def test_help_goes_to_standard_output(
    tmp_path: Path, environment: dict[str, str], argv: list[str], start: str
) -> None:
    done = run(*argv, cwd=tmp_path, environment=environment)
    assert (done.returncode, done.stdout.startswith(start), done.stderr) == (
        0,
        True,
        "",
    )


def test_the_model_has_a_default_that_is_explained(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = run("config", "explain", "model", cwd=tmp_path, environment=environment)
    assert done.stdout == 'model = "gpt-6.1-sol"\n  the default; it is set nowhere\n'


def test_a_setting_is_explained(tmp_path: Path, environment: dict[str, str]) -> None:
    done = run(
        "config", "explain", "model", "-m", "x", cwd=tmp_path, environment=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        'model = "x"\n  from command line\n',
        "",
    )


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (
            ["-C", "missing", "hi"],
            2,
            "cannot work in 'missing': No such file or directory",
        ),
        (
            ["--skip-git-repo-check", "-o", "missing/file", "hi"],
            2,
            "Failed to write the last message to 'missing/file': No such file or directory",
        ),
        (
            ["-c", 'oss_provider="nope"', "--oss", "hi"],
            78,
            "`oss_provider`: 'nope' is no local provider; use one of ollama, lmstudio,",
        ),
        (
            ["-c", "model", "hi"],
            2,
            "Error parsing -c overrides: Invalid override (missing '='): model;"
            " -c is followed by KEY=VALUE",
        ),
    ],
)
def test_mistakes_before_the_session_leave_standard_output_empty(
    tmp_path: Path,
    environment: dict[str, str],
    argv: list[str],
    code: int,
    message: str,
) -> None:
    done = run("exec", "--json", *argv, cwd=tmp_path, environment=environment)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("argv", [["--help"], ["--version"]])
def test_a_reader_that_left_gives_no_traceback(
    tmp_path: Path, environment: dict[str, str], argv: list[str]
) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = run(*argv, cwd=tmp_path, environment=environment, stdout=theirs)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")


def test_closed_descriptors_are_no_reason_to_crash(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m codex_py exec --help <&- >&- 2>&-', sys.executable],
        cwd=tmp_path,
        env=environment,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0


def test_ctrl_c_while_the_prompt_is_awaited_ends_without_a_traceback(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    program = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "codex_py",
            "exec",
            "--skip-git-repo-check",
            "--ephemeral",
        ],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with program:
        assert program.stderr is not None
        assert program.stdout is not None
        notice = program.stderr.readline()
        program.send_signal(signal.SIGINT)
        code = program.wait(120)
        assert (notice, code) == ("Reading prompt from stdin...\n", 130)
        assert (program.stdout.read(), program.stderr.read()) == ("", "")


def test_no_module_of_the_working_directory_is_taken_for_one_of_pythons(
    tmp_path: Path,
) -> None:
    hostile = (
        "from pathlib import Path\nPath('found').touch()\nraise SystemExit('found')\n"
    )
    for name in (
        "typing",
        "gc",
        "json",
        "asyncio",
        "errno",
        "argparse",
        "tomllib",
        "httpx",
    ):
        (tmp_path / f"{name}.py").write_text(hostile, encoding="ascii")
    for words in (["--version"], ["exec", "--help"], ["config", "explain", "model"]):
        done = subprocess.run(
            [sys.executable, "-m", "codex_py", *words],
            cwd=tmp_path,
            env={
                "HOME": str(tmp_path),
                "PYTHONPATH": str(Path(codex_py.__file__).parents[1]),
            },
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
    assert not (tmp_path / "found").exists()


@pytest.mark.parametrize("how", ["module", "script"])
def test_nothing_is_imported_from_pythonpath(tmp_path: Path, how: str) -> None:
    """The project is at work on what we depend on; we are installed elsewhere, and listed too."""
    project, own = tmp_path / "project", str(Path(codex_py.__file__).parents[1])
    (project / "httpx").mkdir(parents=True)
    hostile = "from pathlib import Path\nPath('found').touch()\nraise RuntimeError('half edited')\n"
    for name in ("httpx/__init__", "json", "pydantic", "typing", "tomllib"):
        (project / f"{name}.py").write_text(hostile, encoding="ascii")
    script = tmp_path / "codex-py"
    script.write_text(
        "import sys\nfrom codex_py.__main__ import main\nsys.exit(main())\n", "ascii"
    )
    start = ["-m", "codex_py"] if how == "module" else [str(script)]
    for listed in (".", f":{own}", f"{project}:{own}:{os.path.dirname(os.__file__)}"):
        for words in (
            ["--version"],
            ["exec", "--help"],
            ["undo", "--list"],
            ["doctor", "--json"],
        ):
            done = subprocess.run(
                [sys.executable, *start, *words],
                cwd=project,
                env={
                    "HOME": str(tmp_path),
                    "PATH": os.environ["PATH"],
                    "PYTHONPATH": listed,
                },
                capture_output=True,
                check=False,
            )
            assert (b"Traceback" in done.stderr, done.stdout != b"") == (False, True), (
                done.stderr
            )
        assert b"because of PYTHONPATH, Python may load modules" in done.stdout
    assert not (project / "found").exists()


@pytest.mark.parametrize(
    "words", [["features", "enable", "undo"], ["mcp", "add", "x", "--", "y"]]
)
def test_a_slim_installation_names_the_part_that_it_lacks(
    tmp_path: Path, environment: dict[str, str], words: list[str]
) -> None:
    program = "import sys; sys.modules['tomlkit'] = None; from codex_py.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr.decode()) == (
        1,
        "Error: the Python module `tomlkit` is needed for this, and is not there: install codex-py in full,"
        " with its dependencies\n",
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("init", "In the terminal, `/init` writes an AGENTS.md."),
        ("hooks", "In the terminal, `/hooks` shows and reviews them."),
        ("chat", "`codex-py` opens the terminal."),
        ("run tests", "Use `codex-py exec PROMPT`."),
        ("version", "Use `codex-py --version`."),
        ("continue", "Use `codex-py resume --last`."),
    ],
)
def test_a_word_that_is_a_command_elsewhere_is_not_sent_as_a_prompt(
    tmp_path: Path, environment: dict[str, str], words: str, told: str
) -> None:
    done = run(*words.split(), cwd=tmp_path, environment=environment)
    word, *others = words.split()
    as_prompt = f'codex-py "{word} …"' if others else f"codex-py -- {word}"
    assert done.returncode == 2
    assert done.stderr == (
        f"Error: there is no command {word!r}. {told} As a prompt: {as_prompt}\n"
    )


def test_commands_of_other_agents_are_none_of_ours() -> None:
    assert ELSEWHERE.keys().isdisjoint(known_commands())
    for advice in ELSEWHERE.values():
        for command in re.findall(r"`codex-py ([a-z-]+)", advice):
            assert command.startswith("-") or find_command(command), command


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "export ID",
            "put quotes around the prompt, or write `codex-py sessions export`",
        ),
        ("search word", "put quotes around the prompt, or write"),
        ("list files", "put quotes around the prompt"),
        ("mend it", "put quotes around the prompt"),
        ("exce it", "unknown command 'exce'. Did you mean exec?"),
    ],
)
def test_several_words_are_a_command_of_a_group_or_a_prompt_without_quotes(
    tmp_path: Path, environment: dict[str, str], words: str, told: str
) -> None:
    done = run(*words.split(), cwd=tmp_path, environment=environment)
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: {told}")


_ENTRY = [
    Path(codex_py.__file__).with_name(f"{n}.py")
    for n in ("__init__", "__main__", "version")
]
"""The modules that an older Python reads before it is refused."""


def older_pythons() -> dict[str, str]:
    """The programs on PATH that are a Python before 3.11, by their version."""
    found: dict[str, str] = {}
    for minor in range(6, 11):
        name = f"python3.{minor}"
        program = shutil.which(name)
        # A version manager has a program of this name, which fails without the version.
        if (
            program
            and subprocess.run(
                [program, "-c", ""], capture_output=True, check=False
            ).returncode
            == 0
        ):
            found[name] = program
    return found


def test_an_older_python_is_told_in_one_sentence(tmp_path: Path) -> None:
    programs = older_pythons()
    if not programs:
        pytest.skip("there is no older Python")
    for name, program in programs.items():
        done = subprocess.run(
            [program, "-m", "codex_py", "--version"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(codex_py.__file__).parent.parent)},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        assert done.stderr == "codex-py needs Python 3.11 or newer\n", name
        assert done.returncode == 1


@pytest.mark.parametrize("path", _ENTRY, ids=lambda path: path.stem)
def test_an_older_python_can_parse_what_it_reads_before_it_is_refused(
    path: Path,
) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 7))
