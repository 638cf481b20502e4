"""Reads the command line and runs the frontend or command for it. No other one is loaded."""

import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, cast

from codex_py.app.loading import load
from codex_py.cli.commands import (
    ELSEWHERE,
    OF_CODEX,
    TERMINAL,
    Command,
    find_command,
    may_be_command,
)
from codex_py.command_line.parser import (
    HelpRequested,
    not_there_yet,
    suggestion,
)
from codex_py.command_line.stopping import Stopped
from codex_py.errors import CodexError, UsageError
from codex_py.streams.standard import print_out, tell
from codex_py.version import __version__

_FORK_SERVER = "--fork-server"
"""The only word on the command line of a process that forks agents; see `app.exec_process`."""
_HELP = {"-h", "--help"}
_OVERRIDES = {"-c", "--config", "--enable", "--disable"}


def main(argv: Sequence[str]) -> int:
    """Run the command line and print errors. Returns the exit code."""
    environment = dict(os.environ)
    keep_libraries_light()
    try:
        return run(argv, environment)
    except (CodexError, Stopped) as error:
        text = str(error)
        # Codex's message about a bad configuration has the word: "Error loading config.toml: …".
        if not text.startswith("Error "):
            text = f"Error: {text}"
        tell(text)
        return error.exit_code
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in {"", "codex_py"}:
            raise
        missing = f"the Python module `{package}` is needed for this, and is not there"
        tell(f"Error: {missing}: install codex-py in full, with its dependencies")
        return 1


def keep_libraries_light() -> None:
    """Stop libraries from loading what this program does not use.

    pydantic looks for plugins, which are foreign code, and takes 60 us for each installed package.
    httpx loads its command-line program wherever click and rich are installed, which takes 60 ms.
    Programs that we start get the original environment.
    """
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    sys.modules["httpx._main"] = cast("ModuleType", None)


def run(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command line. Returns the exit code, or raises a `CodexError` to be printed."""
    try:
        if _is_plain_request_for_help(argv):
            raise HelpRequested
        return _run(argv, environment)
    except HelpRequested:
        from codex_py.cli.help_pages import help_text  # 1 ms

        commands = [word for word in argv if find_command(word) is not None]
        word = commands[0] if commands else ""
        return print_out(help_text(word))


def _is_plain_request_for_help(argv: Sequence[str]) -> bool:
    """True for `--help` behind nothing but the names of a command and its member.

    Then the options need not be loaded, which takes 30 ms. Any other command line may be wrong, or
    have `--help` for another program.
    """
    if not argv or argv[-1] not in _HELP:
        return False
    words = argv[:-1]
    if not words:
        return True
    command = find_command(words[0])
    if command is None:
        return False
    return len(words) == 1 or (len(words) == 2 and words[1] in command.members)


def run_demo(arguments: Any, environment: Mapping[str, str]) -> int:
    """Run the demo, see `play_demo`. It is the only command that runs another command."""
    from codex_py.frontends.demo.demo_session import play_demo  # 30 ms

    return play_demo(arguments, environment, run)


def _run(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    if argv == [_FORK_SERVER]:
        return load("codex_py.cli.fork_server:serve_forks")(argv, environment)
    word, rest = _split(argv)
    if word in OF_CODEX:
        # Say so before its options are read, most of which are unknown here.
        raise _missing_command(word)
    command = find_command(word)
    if command is not None and command.own_options:
        member = ""
        if command.members:
            member, rest = _member(command, rest)
            if member not in command.members:
                name = command.names[0]
                return _run_extension(f"{name}.{member}", rest, environment)
        return load(command.target(member))(rest, environment)
    if command is None and _is_of_extension(word):
        return _run_extension(word, rest, environment)
    from codex_py.command_line.parsing import parse_arguments, run_options  # 25 ms

    arguments = parse_arguments(argv)
    if arguments.version:
        return print_out(f"codex-py {__version__}\n")
    target = _session_target(arguments.words, arguments.literal_words)
    asks_for_help = arguments.words[1:] == ("help",)
    if asks_for_help:
        raise HelpRequested
    code = run_options(arguments, environment)
    if code is not None:
        return code
    if target.endswith(TERMINAL):
        _require_terminal()
    return load(target)(arguments, environment)


def _is_of_extension(name: str) -> bool:
    """True if an extension has this command, or this further member of a group: `GROUP.MEMBER`."""
    if not all(map(may_be_command, name.split("."))):
        return False
    return _package_commands().has_command(name)


def _run_extension(
    name: str, argv: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Run a command of an extension. Returns the exit code."""
    return _package_commands().run_package_command(name, argv, environment)


def _package_commands():
    """Load what runs the commands of extensions, and what says which command was meant."""
    from codex_py.cli import package_commands  # 15 ms, for words that are no command

    return package_commands


def _session_target(words: Sequence[str], literal_words: Sequence[str]) -> str:
    """Name the function that runs a prompt, or a command with the options of a session.

    Args:
        words: the words that are not options. The first may be a command; if not, they are a
            prompt for the terminal.
        literal_words: the words after `--`.
    """
    word = words[0] if words else ""
    if tuple(words[:2]) in {("exec", "review"), ("e", "review")}:
        word = "review"
    command = find_command(word)
    if command is None and not _is_of_extension(word):
        _require_prompt(words, literal_words)
        return f"codex_py.{TERMINAL}"
    if command is None or command.own_options:
        raise UsageError(
            f"`{word}` takes its own options, behind its name: codex-py help {word}"
        )
    return command.target()


def _missing_command(word: str) -> UsageError:
    """The error for a command that Codex or another agent has."""
    if word in ELSEWHERE:
        return UsageError(f"there is no command {word!r}. {ELSEWHERE[word]}")
    return not_there_yet(word)


def _require_prompt(words: Sequence[str], literal_words: Sequence[str]) -> None:
    """Refuse words that begin with no command, unless they may be a prompt."""
    if not words:
        return
    word = words[0]
    has_spaces = word.split() != [word]
    if len(words) == 1 and (literal_words or has_spaces):
        return
    as_prompt = f"As a prompt: codex-py -- {word}"
    if len(words) > 1:
        as_prompt = f'As a prompt: codex-py "{word} …"'
    if word in ELSEWHERE:
        raise UsageError(f"{_missing_command(word)} {as_prompt}")
    commands = _package_commands()
    if len(words) > 1:
        raise commands.several_words(word)
    meant = commands.misspelt_command(word)
    if meant:
        mistake = f"unknown command {word!r}. Did you mean {meant}?"
        raise UsageError(f"{mistake} {as_prompt}")


def _require_terminal() -> None:
    for fd, name in ((0, "stdin"), (1, "stdout")):
        if not os.isatty(fd):
            raise UsageError(
                f"{name} is not a terminal; without one, use `codex-py exec`"
            )


def _split(argv: Sequence[str]) -> tuple[str, list[str]]:
    """Split off the command, which may follow overrides, as in Codex.

    Returns the command, or "" if there is none, and all other words.
    """
    at = 0
    while at < len(argv) and argv[at] in _OVERRIDES:
        at += 2
    if at >= len(argv):
        return "", list(argv)
    others = [*argv[:at], *argv[at + 1 :]]
    return argv[at], others


def _member(group: Command, argv: Sequence[str]) -> tuple[str, list[str]]:
    """Split the words into the group's member that they name, and all other words."""
    word, rest = _split(argv)
    if word in group.members:
        return word, rest
    if word in {"-h", "--help", "help"}:
        raise HelpRequested
    name = group.names[0]
    if _is_of_extension(f"{name}.{word}"):
        return word, rest
    members = [*group.members, *_package_commands().further_members(name)]
    names = ", ".join(members)
    if not word or word.startswith("-"):
        raise UsageError(f"say what to do: codex-py {name} COMMAND, one of {names}")
    near = suggestion(word, members) or f" Use one of {names}."
    raise UsageError(f"unknown command `{name} {word}`.{near}")
