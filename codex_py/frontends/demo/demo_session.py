"""`codex-py demo`: a whole session without a key or a network.

The recorded answers of a model are replayed to the program that a live session runs too: it reads the
files of a small repository, runs its tests, patches it and runs them again, all of it for real.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from codex_py.command_line.arguments import Arguments
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError, UsageError, cause
from codex_py.patch.git import find_git
from codex_py.programs import programs_outside
from codex_py.streams.standard import OutputStream
from codex_py.streams.terminal import printable

PROMPT = "A test fails in this repo. Find out why, and fix the code."

_REPOSITORY = Path(__file__).with_name("repository")
TAPE = Path(__file__).with_name("tape.jsonl")
_PASSED_ON = ("TMPDIR", "TERM", "COLORTERM", "NO_COLOR", "CI", "LD_LIBRARY_PATH")
"""The variables that the session gets. Any other one may change its requests, or what its commands print."""


def play_demo(
    arguments: Arguments,
    environment: Mapping[str, str],
    run: Callable[[Sequence[str], Mapping[str, str]], int],
) -> int:
    """Play the demo in a folder that is left for the user to look at. Returns the exit code.

    Args:
        run: runs a command line of this program with these variables.

    Raises:
        CodexError: the folder cannot be made.
    """
    if len(arguments.words) > 1:
        raise UsageError("`codex-py demo` takes no prompt: it replays one")
    try:
        folder = Path(tempfile.mkdtemp(prefix="codex-py-demo-"))
        home = folder / "home"
        home.mkdir()
        own = demo_environment(home, environment)
        repository = make_repository(folder / "basket", own)
    except OSError as error:
        raise CodexError(
            f"no folder for the demo: {cause(error)}", code="demo"
        ) from error
    shown = printable(str(repository))
    stderr = OutputStream(2)
    stderr.write_text(
        "A recorded session, replayed without a key or a network.\n"
        f"The commands and the patch are run for real, in\n{shown}\n\n"
    )
    tape = ["--replay", str(TAPE)]
    if os.isatty(0) and os.isatty(1):
        command = _terminal_command(repository, tape)
    else:
        # The recorded prompt contains nothing from standard input.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        command = demo_command(repository, tape)
    code = run(command, own)
    shutil.rmtree(home, ignore_errors=True)
    if (repository / ".git").exists():
        stderr.write_text(f"\nWhat it changed:\n  git -C {shown} diff\n")
    return code


def demo_command(repository: Path, tape: list[str]) -> list[str]:
    """The command line of a session of `exec`. `tape`: the option that names the recording."""
    session = ["--ephemeral", "--skip-git-repo-check", *_settings(repository)]
    return ["exec", *session, *tape, PROMPT]


def _terminal_command(repository: Path, tape: list[str]) -> list[str]:
    """The command line of a session in the terminal. Nobody is asked in a replay."""
    no_questions = "tools.experimental_request_user_input.enabled=false"
    trust = f'projects."{repository}".trust_level="trusted"'
    alone = ["-a", "never", "-c", no_questions, "-c", trust]
    return [*_settings(repository), *alone, *tape, PROMPT]


def _settings(repository: Path) -> list[str]:
    """The options of a session in any form."""
    # Without git, the folder above may be that of somebody's project.
    session = ["--sandbox", "workspace-write", "-c", "project_root_markers=[]"]
    return [*session, "--cd", str(repository), "--model", "gpt-5.5"]


def demo_environment(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the session.

    They have none of the user's own settings, and `PATH` begins with the `python3` that runs this
    program.
    """
    python_folder = Path(sys.executable).parent
    path = f"{python_folder}{os.pathsep}{environment.get('PATH', os.defpath)}"
    passed = {name: environment[name] for name in _PASSED_ON if name in environment}
    locale = ""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        locale = locale or environment.get(name, "")
    if "utf" in locale.lower():
        # As `LANG`, bash does not warn of one that the system does not have.
        passed["LANG"] = locale
    return {**passed, "HOME": str(home), "CODEX_HOME": str(home), "PATH": path}


def make_repository(folder: Path, environment: Mapping[str, str]) -> Path:
    """Copy the demo's files, and commit them if git is installed, so that the change can be seen."""
    shutil.copytree(_REPOSITORY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    # What its tests leave behind is no change of the agent's.
    (folder / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")
    with suppress(CodexError, FileNotFoundError):
        programs = programs_outside(codex_home(environment), environment, Path.cwd())
        git = find_git(programs, environment)
        identity = ["-c", "user.name=demo", "-c", "user.email=demo@example.invalid"]
        git.run(folder, "init", "-q")
        git.run(folder, "add", ".")
        git.run(folder, *identity, "commit", "-qm", "A basket")
    return folder
