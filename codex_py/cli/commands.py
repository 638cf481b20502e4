"""The table of subcommands. To add a command, write its module, a row here, and a
line in `help_texts/top.txt`.

A long help text goes into `help_texts/NAME.txt`, in 80 columns. A test compares it to the options.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple


class Command(NamedTuple):
    """A subcommand. Its module is loaded only when the subcommand is run."""

    called: str
    """The name and its aliases, separated by `, `."""
    module: str = ""
    """The module, below `codex_py`. Its function `run_NAME` gets the command line, in the form that
    `own_options` selects, and the environment. It returns the exit code; a `CodexError` that it
    raises is printed by the caller. `module:function` names another function."""
    members: Mapping[str, str] = MappingProxyType({})
    """The modules of a group of commands, by subcommand. The subcommand also names the function."""
    words: Sequence[str] = ()
    """Words that may follow the name of a command that is not a group."""
    own_options: bool = True
    """True: the function parses the words after the name itself. False: it gets `Arguments`."""

    @property
    def names(self) -> list[str]:
        return self.called.split(", ")

    def target(self, member: str = "") -> str:
        """Name the function of the command, or of a member: `codex_py.module:function`."""
        module, _, function = self.members.get(member, self.module).partition(":")
        if not function:
            name = member or self.names[0]
            function = f"run_{name.replace('-', '_')}"
        return f"codex_py.{module}:{function}"


EXEC = "frontends.exec.command:run_exec"
TERMINAL = "frontends.tui.start:run_terminal"
_SESSIONS = "commands.sessions.sessions_command"

COMMANDS = (
    Command("resume", TERMINAL, own_options=False),
    Command("fork", TERMINAL, own_options=False),
    Command(
        "exec, e",
        EXEC,
        words=("resume", "fork", "review"),
        own_options=False,
    ),
    Command("review", "frontends.exec.review", own_options=False),
    Command("apply, a", "commands.apply.apply_command"),
    Command("undo", "commands.undo"),
    Command("redo", "commands.undo"),
    Command("sandbox", "commands.sandbox"),
    Command("execpolicy", members={"check": "commands.explain"}),
    Command(
        "mcp",
        members={
            "add": "commands.mcp.mcp_command",
            "list": "commands.mcp.listing",
            "get": "commands.mcp.listing",
            "remove": "commands.mcp.mcp_command",
            "test": "commands.mcp.listing",
            "login": "commands.mcp.login",
            "logout": "commands.mcp.login",
        },
    ),
    Command("mcp-server", "frontends.mcp_server.mcp_server_command", own_options=False),
    Command(
        "app-server",
        "frontends.app_server.app_server_command",
        members={
            "generate-json-schema": "frontends.app_server.app_server_command:run_app_server"
        },
        own_options=False,
    ),
    Command("acp", "frontends.acp.acp_command", words=("login",), own_options=False),
    Command(
        "plugin",
        members=dict.fromkeys(
            ("add", "list", "show", "remove"), "commands.plugins.plugin_command"
        ),
    ),
    Command(
        "providers",
        members=dict.fromkeys(("list", "test"), "commands.providers.providers_command"),
    ),
    Command(
        "models", members={"list": "commands.providers.providers_command:run_models"}
    ),
    Command("skills", members=dict.fromkeys(("list", "check"), "commands.skills")),
    Command(
        "sessions",
        members={
            "list": _SESSIONS,
            "show": _SESSIONS,
            "search": _SESSIONS,
        },
    ),
    Command("cost", _SESSIONS),
    Command("archive", _SESSIONS),
    Command("unarchive", _SESSIONS),
    Command("delete", _SESSIONS),
    Command("login", "commands.login.login_command", words=("status",)),
    Command("logout", "commands.login.login_command"),
    Command(
        "features",
        members=dict.fromkeys(("list", "enable", "disable"), "commands.features"),
    ),
    Command("doctor", "commands.doctor.doctor_command"),
    Command(
        "debug",
        members={
            "models": "commands.providers.providers_command:run_catalogue",
            "prompt-input": "commands.debug",
            "wrappers": "commands.debug:run_wrappers",
        },
    ),
    Command("completion", "cli.completion"),
    Command("exit-codes", "commands.exit_codes"),
    Command("worktree", members=dict.fromkeys(("list", "remove"), "commands.worktree")),
    Command("demo", "cli.main", own_options=False),
    Command("config", "commands.explain", words=("explain",), own_options=False),
    Command("help", "cli.help"),
)

_BY_NAME = {name: command for command in COMMANDS for name in command.names}
"""The commands by their names and aliases."""
NAMES = tuple(command.names[0] for command in COMMANDS)
"""The names of all commands, without aliases."""

OF_CODEX = {
    "agents",
    "cloud",
    "exec-server",
    "import",
    "man",
    "queue",
    "remote-control",
    "update",
}
"""Commands that this program does not have. Nearly all are commands of Codex."""

_ASKS = "Use `codex-py exec PROMPT`."
_OPENS = "`codex-py` opens the terminal."
_KEYS = (
    "Use `codex-py login`, or set the variable of a provider such as OPENAI_API_KEY."
)
_UPDATES = "Update codex-py in the way in which you installed it."
ELSEWHERE: Mapping[str, str] = {
    "ask": _ASKS,
    "prompt": _ASKS,
    "run": _ASKS,
    "chat": _OPENS,
    "start": _OPENS,
    "tui": _OPENS,
    "auth": _KEYS,
    "configure": _KEYS,
    "setup": _KEYS,
    "setup-token": _KEYS,
    "signin": _KEYS,
    "continue": "Use `codex-py resume --last`.",
    "history": "Use `codex-py sessions list`.",
    "hooks": "In the terminal, `/hooks` shows and reviews them.",
    "init": "In the terminal, `/init` writes an AGENTS.md.",
    "install": "Use `codex-py plugin add`, or `codex-py mcp add`.",
    "permissions": "In the terminal, `/permissions` shows and changes them.",
    "serve": "Use `codex-py app-server`, or `codex-py mcp-server`.",
    "settings": "Use `codex-py config explain KEY`.",
    "stats": "Use `codex-py cost`.",
    "status": "Use `codex-py doctor`; in the terminal, `/status`.",
    "update": _UPDATES,
    "upgrade": _UPDATES,
    "usage": "Use `codex-py cost`.",
    "version": "Use `codex-py --version`.",
}
"""Commands of other agents, and words that users try as commands, each with what does the same here. As
a prompt, none of them alone makes sense, and it would cost a request."""


def find_command(word: str) -> Command | None:
    return _BY_NAME.get(word)


def may_be_command(word: str) -> bool:
    """False for a word that no command is called, such as a prompt or an option."""
    return re.fullmatch(r"[a-z][a-z0-9-]*", word) is not None
