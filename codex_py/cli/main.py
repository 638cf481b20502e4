"""From the command line to the frontend that it asks for. Only that one is imported."""

import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import cast

from codex_py import __version__
from codex_py.errors import CodexError
from codex_py.frontends.arguments import (
    Arguments,
    TerminalTarget,
    UsageError,
    parse_arguments,
    suggestion,
    terminal_target,
)
from codex_py.frontends.streams import OutputStream, print_out
from codex_py.frontends.terminal import printable

_COMMANDS = (
    "exec",
    "resume",
    "fork",
    "apply",
    "undo",
    "sandbox",
    "execpolicy",
    "mcp",
    "demo",
    "mcp-server",
    "config",
    "help",
)

_OVERRIDES = {"-c", "--config", "--enable", "--disable"}

_CODEX_COMMANDS = {
    *("agents", "app-server", "archive", "cloud", "completion", "debug", "delete"),
    *("doctor", "exec-server", "features", "login", "logout", "plugin", "queue"),
    *("remote-control", "review", "unarchive", "update"),
}


def main(argv: Sequence[str]) -> int:
    """Run what the command line asks for; the exit code."""
    environment = dict(os.environ)
    # Plugins are code of others, and looking for some takes pydantic 60 us for each package that is
    # installed. Set behind the copy: what we start is not to know of it.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    # httpx loads a command-line program of its own wherever click and rich are installed: 60 ms.
    sys.modules["httpx._main"] = cast("ModuleType", None)
    try:
        word = argv[_first_word(argv) :][:1]
        if word and word[0] in _CODEX_COMMANDS:
            # Before its options are read, which are none of ours.
            raise UsageError(f"`{word[0]}` is not supported by codex-py")
        # The options of these are their own.
        if argv[:1] in (["apply"], ["a"]):
            from codex_py.frontends.apply.run import run_apply  # noqa: PLC0415

            return run_apply(argv[1:], environment)
        if argv[:1] == ["undo"]:
            from codex_py.frontends.apply.undo import run_undo  # noqa: PLC0415

            return run_undo(argv[1:], environment)
        if argv[:1] == ["sandbox"]:
            from codex_py.frontends.admin.sandbox import run_sandbox  # noqa: PLC0415

            return run_sandbox(argv[1:], environment)
        if argv[:1] == ["execpolicy"]:
            from codex_py.frontends.admin.execpolicy import run_execpolicy  # noqa: PLC0415

            return run_execpolicy(argv[1:])
        if word == ["mcp"]:
            from codex_py.frontends.admin.mcp import run_mcp  # noqa: PLC0415

            start = _first_word(argv)
            return run_mcp([*argv[:start], *argv[start + 1 :]], environment)
        return _run(parse_arguments(argv), environment)
    except CodexError as error:
        text = printable(str(error))
        # What Codex says of a bad configuration begins with the word: "Error loading config.toml: …".
        label = "" if text.startswith("Error ") else "Error: "
        OutputStream(2).write_text(f"{label}{text}\n")
        return error.exit_code


def _first_word(argv: Sequence[str]) -> int:
    """Where the word stands that follows the overrides which Codex takes before a command."""
    start = 0
    while start < len(argv) and argv[start] in _OVERRIDES:
        start += 2
    return start


def _run(arguments: Arguments, environment: Mapping[str, str]) -> int:
    command = arguments.words[0] if arguments.words else None
    words = arguments.words[1:]
    if arguments.version:
        return print_out(f"codex-py {__version__}\n")
    if arguments.help:
        return _help(command)
    match command:
        case "exec" | "e":
            if words == ("help",):
                return _help("exec")
            from codex_py.frontends.exec.command import run_exec  # noqa: PLC0415

            return run_exec(words, arguments, environment)
        case "demo":
            from codex_py.frontends.demo.run import run_demo  # noqa: PLC0415

            return run_demo(arguments, environment)
        case "mcp-server":
            return _mcp_server(words, arguments, environment)
        case "config":
            return _config(words, arguments, environment)
        case "help":
            return _help_on(words)
        case "resume" | "fork":
            return _terminal(terminal_target(arguments), arguments, environment)
        case _ if len(arguments.words) < 2:
            return _terminal(terminal_target(arguments), arguments, environment)
        case _:
            raise UsageError(_no_command(command))


def _terminal(target: TerminalTarget, arguments: Arguments, environment: Mapping[str, str]) -> int:
    for fd, name in ((0, "stdin"), (1, "stdout")):
        if not os.isatty(fd):
            raise UsageError(f"{name} is not a terminal; without one, use `codex-py exec`")
    from codex_py.frontends.tui.run import run_terminal  # noqa: PLC0415

    return run_terminal(target, arguments, environment)


def _mcp_server(words: Sequence[str], arguments: Arguments, environment: Mapping[str, str]) -> int:
    if words:
        raise UsageError(f"unexpected argument {words[0]!r}: the prompts come with the calls")
    from codex_py.frontends.mcp_server.run import run_mcp_server  # noqa: PLC0415

    return run_mcp_server(arguments, environment)


def _config(words: Sequence[str], arguments: Arguments, environment: Mapping[str, str]) -> int:
    if len(words) != 2 or words[0] != "explain":
        raise UsageError("say which setting: codex-py config explain KEY")
    from codex_py.config.explain import explain  # noqa: PLC0415
    from codex_py.frontends.session_config import flags, working_directory  # noqa: PLC0415

    text = explain(
        words[1],
        cwd=working_directory(arguments),
        environment=environment,
        overrides=arguments.overrides,
        flags=flags(arguments),
        profile=arguments.profile,
        ignore_user_config=arguments.ignore_user_config,
    )
    return print_out(f"{text}\n")


def _help(command: str | None) -> int:
    from codex_py.frontends.help import (  # noqa: PLC0415
        APPLY,
        CONFIG,
        EXEC,
        EXECPOLICY,
        MCP,
        MCP_SERVER,
        SANDBOX,
        TOP,
        UNDO,
    )

    texts = {"exec": EXEC, "e": EXEC, "apply": APPLY, "a": APPLY, "config": CONFIG, "undo": UNDO}
    texts |= {"sandbox": SANDBOX, "execpolicy": EXECPOLICY, "mcp": MCP, "mcp-server": MCP_SERVER}
    return print_out(texts.get(command or "", TOP))


def _help_on(words: Sequence[str]) -> int:
    """Print the help of a command; of `exec resume` that of `exec`."""
    command = words[0] if words else None
    if command not in {None, "e", "a", *_COMMANDS}:
        raise UsageError(f"unknown command {command!r}.{suggestion(command or '', _COMMANDS)}")
    return _help(command)


def _no_command(word: str | None) -> str:
    assert word is not None
    if near := suggestion(word, _COMMANDS):
        return f"unknown command {word!r}.{near}"
    return "put quotes around the prompt"
