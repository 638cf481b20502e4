"""The table of subcommands. To add one, write its module and a row here.

A long help text goes into `help_texts/NAME.txt`.
"""

from collections.abc import Mapping
from dataclasses import field

from codex_py.protocol.frozen import frozen


@frozen
class Command:
    """A subcommand; the module that runs it is loaded when it is asked for."""

    name: str
    usage: str
    """How the command is called, in `codex-py --help`."""
    summary: str
    target: str = ""
    """`module:function`. The function gets the command line, in the form that `own_options` says, and the
    environment. It returns the exit code. A `CodexError` that it raises is printed for it."""
    aliases: tuple[str, ...] = ()
    members: Mapping[str, str] = field(default_factory=dict[str, str])
    """The targets of a group of commands, by the word that follows the name."""
    own_options: bool = False
    """The function parses the words behind the name itself. Otherwise it gets `Arguments`."""
    needs_terminal: bool = False


_TERMINAL = "codex_py.frontends.tui.run:run_terminal"
_MCP = "codex_py.frontends.admin.mcp"

WITHOUT_NAME = Command("", "", "", _TERMINAL, needs_terminal=True)

COMMANDS = (
    Command(
        "resume",
        "resume [SESSION]",
        "Go on with an earlier session in the terminal, or --last",
        _TERMINAL,
        needs_terminal=True,
    ),
    Command(
        "fork", "fork [SESSION]", "Go on with a copy of a session", _TERMINAL, needs_terminal=True
    ),
    Command(
        "exec",
        "exec, e [resume]",
        "Work on one prompt, in a new session or an earlier one",
        "codex_py.frontends.exec.command:run_exec",
        aliases=("e",),
    ),
    Command(
        "apply",
        "apply, a [FILE]",
        "Apply a patch: an envelope or a unified diff",
        "codex_py.frontends.apply.run:run_apply",
        aliases=("a",),
        own_options=True,
    ),
    Command(
        "undo",
        "undo [ID]",
        "Bring back what a patch replaced",
        "codex_py.frontends.apply.undo:run_undo",
        own_options=True,
    ),
    Command(
        "sandbox",
        "sandbox [MODE] CMD",
        "Run a command in the sandbox, as the model's commands are",
        "codex_py.frontends.admin.sandbox:run_sandbox",
        own_options=True,
    ),
    Command(
        "execpolicy",
        "execpolicy check",
        "Say what the rule files decide about a command",
        members={"check": "codex_py.frontends.admin.execpolicy:run_check"},
        own_options=True,
    ),
    Command(
        "mcp",
        "mcp COMMAND",
        "Add, list, remove, try and log in to MCP servers",
        members={
            "add": f"{_MCP}_edit:run_add",
            "list": f"{_MCP}_listing:run_list",
            "get": f"{_MCP}_listing:run_get",
            "remove": f"{_MCP}_edit:run_remove",
            "test": f"{_MCP}_trial:run_test",
            "login": f"{_MCP}_login:run_login",
            "logout": f"{_MCP}_login:run_logout",
        },
        own_options=True,
    ),
    Command(
        "mcp-server",
        "mcp-server",
        "Run an MCP server whose tools are this agent",
        "codex_py.frontends.mcp_server.run:run_mcp_server",
    ),
    Command(
        "demo",
        "demo",
        "Show a session that needs no key and no network",
        "codex_py.cli.demo:run_demo",
    ),
    Command(
        "config",
        "config explain KEY",
        "Say what a setting is, and which file or option set it",
        "codex_py.frontends.admin.config:run_config",
    ),
    Command(
        "help",
        "help [COMMAND]",
        "Print the help of a command",
        "codex_py.cli.help:run_help",
    ),
)

NAMES = tuple(command.name for command in COMMANDS)
_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}

OF_CODEX = {
    *("agents", "app-server", "archive", "cloud", "completion", "debug", "delete"),
    *("doctor", "exec-server", "features", "login", "logout", "plugin", "queue"),
    *("remote-control", "review", "unarchive", "update"),
}
"""Commands of Codex that this program does not have."""


def find_command(word: str) -> Command | None:
    return _BY_NAME.get(word)
