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
    target: str = ""
    """`module:function`. The function gets the command line, in the form that `own_options` says, and the
    environment. It returns the exit code, or raises a `CodexError` whose message is not printed yet."""
    aliases: tuple[str, ...] = ()
    members: Mapping[str, str] = field(default_factory=dict[str, str])
    """The targets of a group of commands, by the word that follows the name."""
    own_options: bool = False
    """The function parses the words behind the name itself. Otherwise it gets `Arguments`."""
    needs_terminal: bool = False
    help: Mapping[str, str] = field(default_factory=dict[str, str])
    """The lines of `codex-py --help`: how the command is called, and what it does."""


_TERMINAL = "codex_py.frontends.tui.run:run_terminal"
_MCP = "codex_py.frontends.admin.mcp"

WITHOUT_NAME = Command("", _TERMINAL, needs_terminal=True)

COMMANDS = (
    Command(
        "resume",
        _TERMINAL,
        needs_terminal=True,
        help={"resume [SESSION]": "Go on with an earlier session in the terminal, or --last"},
    ),
    Command(
        "fork",
        _TERMINAL,
        needs_terminal=True,
        help={"fork [SESSION]": "Go on with a copy of a session"},
    ),
    Command(
        "exec",
        "codex_py.frontends.exec.command:run_exec",
        aliases=("e",),
        help={
            "exec, e": "Work on one prompt without asking anything, and exit",
            "exec resume": "Go on with an earlier session",
        },
    ),
    Command(
        "apply",
        "codex_py.frontends.apply.run:run_apply",
        aliases=("a",),
        own_options=True,
        help={"apply, a [FILE]": "Apply a patch: an envelope or a unified diff"},
    ),
    Command(
        "undo",
        "codex_py.frontends.apply.undo:run_undo",
        own_options=True,
        help={"undo [ID]": "Bring back what a patch replaced"},
    ),
    Command(
        "sandbox",
        "codex_py.frontends.admin.sandbox:run_sandbox",
        own_options=True,
        help={"sandbox [MODE] CMD": "Run a command in the sandbox, as the model's commands are"},
    ),
    Command(
        "execpolicy",
        members={"check": "codex_py.frontends.admin.execpolicy:run_check"},
        own_options=True,
        help={"execpolicy check": "Say what the rule files decide about a command"},
    ),
    Command(
        "mcp",
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
        help={"mcp COMMAND": "Add, list, remove, try and log in to MCP servers"},
    ),
    Command(
        "mcp-server",
        "codex_py.frontends.mcp_server.run:run_mcp_server",
        help={"mcp-server": "Run an MCP server whose tools are this agent"},
    ),
    Command(
        "demo",
        "codex_py.cli.demo:run_demo",
        help={"demo": "Show a session that needs no key and no network"},
    ),
    Command(
        "config",
        "codex_py.frontends.admin.config:run_config",
        help={"config explain KEY": "Say what a setting is, and which file or option set it"},
    ),
    Command(
        "help",
        "codex_py.cli.help:run_help",
        help={"help [COMMAND]": "Print the help of a command"},
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
