"""The table of subcommands, and their help. To add a command, write its module and a row here.

A long help text goes into `help_texts/NAME.txt`, for 80 columns; a test compares it with the options.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from codex_py.frontends.command_parser import UsageError, suggestion
from codex_py.frontends.streams import print_out
from codex_py.protocol.frozen import frozen

_HELP_TEXTS = Path(__file__).with_name("help_texts")


@frozen
class Command:
    """A subcommand; the module that runs it is loaded when it is asked for."""

    usage: str
    """How the command is called: its name and other names, split by commas, and its arguments."""
    summary: str
    target: str = ""
    """`module:function`, below `codex_py`. The function gets the command line, in the form that `own_options` says,
    and the environment. It returns the exit code. A `CodexError` that it raises is printed for it."""
    members: Mapping[str, str] = field(default_factory=dict[str, str])
    """The targets of a group of commands, by the word that follows the name."""
    own_options: bool = False
    """The function parses the words behind the name itself. Otherwise it gets `Arguments`."""

    @property
    def names(self) -> list[str]:
        *names, last = self.usage.split(", ")
        return [*names, last.partition(" ")[0]]


TERMINAL = "frontends.tui.run:run_terminal"
_ARCHIVE = "frontends.admin.archive"
_MCP = "frontends.admin.mcp"
_PROVIDERS = "frontends.admin.providers"

COMMANDS = (
    Command("resume [SESSION]", "Go on with an earlier session in the terminal", TERMINAL),
    Command("fork [SESSION]", "Go on with a copy of a session", TERMINAL),
    Command(
        "exec, e [resume|fork]",
        "Work on one prompt, in a new session or an earlier one",
        "frontends.exec.command:run_exec",
    ),
    Command(
        "apply, a [FILE]",
        "Apply a patch: an envelope or a unified diff",
        "frontends.apply.run:run_apply",
        own_options=True,
    ),
    Command(
        "undo [ID]",
        "Take back what a turn or a patch changed",
        "frontends.apply.undo:run_undo",
        own_options=True,
    ),
    Command(
        "redo",
        "Do again what the last undo took back",
        "frontends.apply.undo:run_redo",
        own_options=True,
    ),
    Command(
        "sandbox [MODE] CMD",
        "Run a command in the sandbox of the model's commands",
        "frontends.admin.sandbox:run_sandbox",
        own_options=True,
    ),
    Command(
        "execpolicy check",
        "Say what the rule files decide about a command",
        members={"check": "frontends.admin.explain:run_check"},
        own_options=True,
    ),
    Command(
        "mcp COMMAND",
        "Add, list, remove, try and log in to MCP servers",
        members={
            "add": f"{_MCP}:run_add",
            "list": f"{_MCP}_listing:run_list",
            "get": f"{_MCP}_listing:run_get",
            "remove": f"{_MCP}:run_remove",
            "test": f"{_MCP}_listing:run_test",
            "login": f"{_MCP}_login:run_login",
            "logout": f"{_MCP}_login:run_logout",
        },
        own_options=True,
    ),
    Command(
        "mcp-server",
        "Run an MCP server whose tools are this agent",
        "frontends.mcp_server.run:run_mcp_server",
    ),
    Command(
        "plugin COMMAND",
        "Add, list, show and remove plugins",
        members={
            name: f"frontends.admin.plugins:run_{name}"
            for name in ("add", "list", "show", "remove")
        },
        own_options=True,
    ),
    Command(
        "providers COMMAND",
        "List the providers of models, and try what they can do",
        members={"list": f"{_PROVIDERS}:run_list", "test": f"{_PROVIDERS}:run_test"},
        own_options=True,
    ),
    Command(
        "models list",
        "List models: window, output, abilities, prices",
        members={"list": f"{_PROVIDERS}:run_models"},
        own_options=True,
    ),
    Command(
        "skills COMMAND",
        "List the skills that are found here, and check skills",
        members={
            "list": "frontends.admin.skills:run_list",
            "check": "frontends.admin.skills:run_check",
        },
        own_options=True,
    ),
    Command(
        "sessions COMMAND",
        "List, show, search, export and import sessions",
        members={
            **{name: f"frontends.admin.sessions:run_{name}" for name in ("list", "show", "search")},
            **{name: f"frontends.admin.export:run_{name}" for name in ("export", "import")},
        },
        own_options=True,
    ),
    Command(
        "cost [SESSION]",
        "Show what the tokens of a session went to",
        "frontends.admin.cost:run_cost",
        own_options=True,
    ),
    Command(
        "archive SESSION",
        "Put a session away: lists leave it out",
        f"{_ARCHIVE}:run_archive",
        own_options=True,
    ),
    Command(
        "unarchive SESSION",
        "Bring an archived session back",
        f"{_ARCHIVE}:run_unarchive",
        own_options=True,
    ),
    Command(
        "delete SESSION", "Delete a session for good", f"{_ARCHIVE}:run_delete", own_options=True
    ),
    Command(
        "login [status]",
        "Store an API key from standard input: --with-api-key",
        "frontends.admin.login:run_login",
        own_options=True,
    ),
    Command(
        "logout",
        "Remove the stored login",
        "frontends.admin.login:run_logout",
        own_options=True,
    ),
    Command(
        "features COMMAND",
        "List the features of Codex, and switch them on and off",
        members={
            "list": "frontends.admin.features:run_list",
            "enable": "frontends.admin.features:run_enable",
            "disable": "frontends.admin.features:run_disable",
        },
        own_options=True,
    ),
    Command(
        "doctor",
        "Check the setup and the machine, and say what to do",
        "frontends.admin.doctor:run_doctor",
        own_options=True,
    ),
    Command(
        "debug COMMAND",
        "Print what is known of models, and the next request",
        members={
            "models": "frontends.admin.debug:run_models",
            "prompt-input": "frontends.admin.debug:run_prompt_input",
        },
        own_options=True,
    ),
    Command(
        "completion [SHELL]",
        "Print a completion script for bash, zsh or fish",
        "cli.completion:run_completion",
        own_options=True,
    ),
    Command(
        "exit-codes",
        "List the exit codes",
        "frontends.admin.exit_codes:run_exit_codes",
        own_options=True,
    ),
    Command(
        "worktree COMMAND",
        "List and remove the git worktrees of sessions",
        members={name: f"frontends.admin.worktree:run_{name}" for name in ("list", "remove")},
        own_options=True,
    ),
    Command("demo", "Show a session that needs no key and no network", "cli.main:run_demo"),
    Command(
        "config explain KEY",
        "Say what a setting is, and which file or option set it",
        "frontends.admin.explain:run_config",
    ),
    Command(
        "help [COMMAND]", "Print the help of a command", "cli.commands:run_help", own_options=True
    ),
)

_BY_NAME = {name: command for command in COMMANDS for name in command.names}
NAMES = tuple(command.names[0] for command in COMMANDS)

OF_CODEX = {
    *("agents", "app-server", "cloud"),
    *("exec-server", "queue"),
    *("remote-control", "review", "update"),
}
"""Commands of Codex that this program does not have."""


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
