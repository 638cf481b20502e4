"""The table of subcommands, and their help. To add a command, write its module and a row here.

A long help text goes into `help_texts/NAME.txt`, for 80 columns; a test compares it with the options.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from codex_py.command_line.parser import suggestion
from codex_py.errors import UsageError
from codex_py.streams.standard import print_out

_HELP_TEXTS = Path(__file__).with_name("help_texts")


class Command(NamedTuple):
    """A subcommand; the module that runs it is loaded when it is asked for."""

    usage: str
    """How the command is called: its name and other names, split by commas, and its arguments."""
    summary: str
    module: str = ""
    """Below `codex_py`. Its function `run_NAME` gets the command line, in the form that `own_options` says, and the
    environment. It returns the exit code. A `CodexError` that it raises is printed for it. `module:function` names
    another."""
    members: Mapping[str, str] = MappingProxyType({})
    """The modules of a group of commands, by the word that follows the name; the functions are named for that word."""
    own_options: bool = True
    """The function parses the words behind the name itself. Otherwise it gets `Arguments`."""

    @property
    def names(self) -> list[str]:
        *names, last = self.usage.split(", ")
        return [*names, last.partition(" ")[0]]

    def target(self, member: str = "") -> str:
        """The function of the command, or of a member of the group: `codex_py.module:function`."""
        module, _, function = self.members.get(member, self.module).partition(":")
        name = (member or self.names[0]).replace("-", "_")
        return f"codex_py.{module}:{function or f'run_{name}'}"


TERMINAL = "frontends.tui.start:run_terminal"
BEST_OF = "frontends.exec.best_of:run_best_of"
_SESSIONS = "commands.sessions.run"

COMMANDS = (
    Command(
        "resume [SESSION]",
        "Go on with an earlier session in the terminal",
        TERMINAL,
        own_options=False,
    ),
    Command("fork [SESSION]", "Go on with a copy of a session", TERMINAL, own_options=False),
    Command(
        "exec, e [resume|fork|review]",
        "Work on one prompt, in a new or earlier session",
        "frontends.exec.command",
        own_options=False,
    ),
    Command(
        "review [PROMPT]",
        "Review a change, and report what is found",
        "frontends.exec.review",
        own_options=False,
    ),
    Command("batch TASKS", "Work on many tasks, an agent for each", "commands.batch.run"),
    Command(
        "apply, a [FILE]", "Apply a patch: an envelope or a unified diff", "commands.apply.run"
    ),
    Command("undo [ID]", "Take back what a turn or a patch changed", "commands.undo"),
    Command("redo", "Do again what the last undo took back", "commands.undo"),
    Command("blame-agent FILE", "Say which lines which session wrote", "commands.provenance.run"),
    Command(
        "provenance --note|--trace|--trailer",
        "Say in a commit which sessions wrote it",
        "commands.provenance.run",
    ),
    Command(
        "sandbox [MODE] CMD",
        "Run a command in the sandbox of the model's commands",
        "commands.sandbox",
    ),
    Command(
        "execpolicy check",
        "Say what the rule files decide about a command",
        members={"check": "commands.explain"},
    ),
    Command(
        "mcp COMMAND",
        "Add, list, remove, try and log in to MCP servers",
        members={
            "add": "commands.mcp.run",
            **dict.fromkeys(("list", "get"), "commands.mcp.listing"),
            "remove": "commands.mcp.run",
            "test": "commands.mcp.listing",
            **dict.fromkeys(("login", "logout"), "commands.mcp.login"),
        },
    ),
    Command(
        "mcp-server",
        "Run an MCP server whose tools are this agent",
        "frontends.mcp_server.run",
        own_options=False,
    ),
    Command(
        "app-server",
        "Serve the Python SDK of Codex and other programs",
        "frontends.app_server.run",
        members={"generate-json-schema": "frontends.app_server.run:run_app_server"},
        own_options=False,
    ),
    Command(
        "acp [login]",
        "Be the agent of an editor: Agent Client Protocol",
        "frontends.acp.run",
        own_options=False,
    ),
    Command(
        "plugin COMMAND",
        "Add, list, show and remove plugins",
        members=dict.fromkeys(("add", "list", "show", "remove"), "commands.plugins.run"),
    ),
    Command(
        "providers COMMAND",
        "List the providers of models, and try what they can do",
        members=dict.fromkeys(("list", "test"), "commands.providers.run"),
    ),
    Command(
        "models list",
        "List models: window, output, abilities, prices",
        members={"list": "commands.providers.run:run_models"},
    ),
    Command(
        "skills COMMAND",
        "List the skills that are found here, and check skills",
        members=dict.fromkeys(("list", "check"), "commands.skills"),
    ),
    Command(
        "sessions COMMAND",
        "List, show, search, export and import sessions",
        members={
            **dict.fromkeys(("list", "show", "search"), _SESSIONS),
            **dict.fromkeys(("export", "import"), "commands.sessions.export"),
        },
    ),
    Command("cost [SESSION]", "Show what the tokens of a session went to", _SESSIONS),
    Command("archive SESSION", "Put a session away: lists leave it out", _SESSIONS),
    Command("unarchive SESSION", "Bring an archived session back", _SESSIONS),
    Command("delete SESSION", "Delete a session for good", _SESSIONS),
    Command(
        "login [status]", "Store an API key from standard input: --with-api-key", "commands.login"
    ),
    Command("logout", "Remove the stored login", "commands.login"),
    Command(
        "features COMMAND",
        "List the features of Codex, and switch them on and off",
        members=dict.fromkeys(("list", "enable", "disable"), "commands.features"),
    ),
    Command("doctor", "Check the setup and the machine, and say what to do", "commands.doctor.run"),
    Command(
        "debug COMMAND",
        "Print what is known of models, and the next request",
        members={
            "models": "commands.providers.run:run_catalogue",
            "prompt-input": "commands.debug",
        },
    ),
    Command(
        "completion [SHELL]", "Print a completion script for bash, zsh or fish", "cli.completion"
    ),
    Command("exit-codes", "List the exit codes", "commands.exit_codes"),
    Command(
        "worktree COMMAND",
        "List and remove the git worktrees of sessions",
        members=dict.fromkeys(("list", "remove"), "commands.worktree"),
    ),
    Command(
        "demo", "Show a session that needs no key and no network", "cli.main", own_options=False
    ),
    Command(
        "config explain KEY",
        "Say what a setting is, and which file or option set it",
        "commands.explain",
        own_options=False,
    ),
    Command("help [COMMAND]", "Print the help of a command", "cli.commands"),
)

_BY_NAME = {name: command for command in COMMANDS for name in command.names}
NAMES = tuple(command.names[0] for command in COMMANDS)

OF_CODEX = {
    *("agents", "cloud"),
    *("exec-server", "import", "man", "queue"),
    *("remote-control", "update"),
}
"""Commands that this program does not have: nearly all are Codex's."""


def find_command(word: str) -> Command | None:
    return _BY_NAME.get(word)


def help_text(word: str) -> str:
    """The text for a command; for one without its own text, the list of all commands."""
    command = find_command(word)
    if command is not None and (path := _HELP_TEXTS / f"{command.names[0]}.txt").exists():
        return path.read_text(encoding="utf-8")
    lines = (f"  {row.usage:21}  {row.summary}\n" for row in COMMANDS)
    text = (_HELP_TEXTS / "top.txt").read_text(encoding="utf-8")
    return text.format(commands="".join(lines))


def run_help(argv: Sequence[str], environment: Mapping[str, str]) -> int:  # noqa: ARG001 - every command gets it
    """Print the help of the command that the words name; of `exec resume` that of `exec`."""
    word = next((word for word in argv if not word.startswith("-")), "")
    if word and find_command(word) is None:
        raise UsageError(f"unknown command {word!r}.{suggestion(word, NAMES)}")
    return print_out(help_text(word))
