"""`codex-py acp`: the agent of an editor, over standard input and output.

Source: the Agent Client Protocol, version 1, https://agentclientprotocol.com. The package of its
authors (`acp`) reads the params. The connection is our own, because theirs drops broken lines and
answers unknown methods with a success.
"""

import getpass
import os
from collections.abc import Mapping

from codex_py.app.stored_login import checked_key, store_key
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import read_config
from codex_py.command_line.serving import run_server
from codex_py.errors import CodexError, ExitCode, UsageError
from codex_py.frontends.acp.agent import EditorAgent
from codex_py.streams.standard import tell


def run_acp(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Serve one client until it leaves; `acp login` stores a key instead.

    Returns the exit code.
    """
    words = arguments.words[1:]
    if words == ("login",):
        return _login(arguments, environment)
    if words:
        raise UsageError(
            f"unexpected argument {words[0]!r}: the client sends the prompts"
        )
    if arguments.worktree is not None:
        raise UsageError(
            "--worktree belongs to `exec` and the terminal: the client names a folder"
        )
    read_config(arguments, environment).require_enforced()
    return run_server(
        "acp", lambda rpc: EditorAgent(rpc, arguments, environment), jsonrpc="2.0"
    )


def _login(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Ask for a key at the terminal that a client opens, and store it."""
    config = read_config(arguments, environment)
    if not os.isatty(0):
        raise CodexError(
            "a login needs a terminal; see `codex-py login --help`", code="login"
        )
    try:
        key = getpass.getpass("API key (it is not shown): ").strip()
    except EOFError:
        key = ""
    if not key:
        raise CodexError("no API key was given", code="login")
    store_key(config, checked_key(key))
    tell("API key saved.")
    return ExitCode.DONE
