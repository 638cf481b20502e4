"""`codex-py sandbox`: run a command as the model's commands are run, or try how well that holds."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.app.model import secret_names
from codex_py.config.config import Config, load_config
from codex_py.config.environment import allowed_environment, hidden_names
from codex_py.config.login_shell import without_variables
from codex_py.errors import CodexError, ExitCode, ToolError
from codex_py.frontends.arguments import (
    Arguments,
    CommandParser,
    UsageError,
    add_overrides,
    first_word,
    protection,
)
from codex_py.frontends.help import SANDBOX
from codex_py.frontends.session_config import working_directory
from codex_py.frontends.streams import OutputStream
from codex_py.frontends.terminal import printable
from codex_py.protocol.approval import SandboxPolicy
from codex_py.sandbox.backends.backend import Rung, platform_rungs, problem
from codex_py.sandbox.choice import LadderSandbox
from codex_py.sandbox.escapes import ESCAPES, KNOWN_OPEN, try_escape

_WITH_VALUE = {
    *("-C", "--cd", "--add-dir", "-P", "--permission-profile", "-p", "--profile"),
    *("-c", "--config", "--enable", "--disable", "--allow-unenforced"),
}
"""Options that take the next word."""
_MODES = ("read-only", "workspace-write", "danger-full-access")
_SIGNAL_EXIT_BASE = 128
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def run_sandbox(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Do what the words after `sandbox` ask for; the exit code, which is the command's own.

    Raises:
        CodexError: nothing on this machine can hold a command, or the configuration is not good.
    """
    options, command = _parse(argv)
    if options.help:
        OutputStream(1).write_text(SANDBOX)
        return ExitCode.DONE
    if options.test:
        return _test(environment)
    if not command:
        raise UsageError("say what to run: codex-py sandbox [MODE] [--] COMMAND")
    cwd = working_directory(Arguments(cd=options.cd))
    config = load_config(
        cwd=cwd,
        environment=environment,
        overrides=options.overrides or (),
        flags={
            key: value
            for key, value in (
                ("sandbox_mode", options.mode),
                ("default_permissions", options.permission_profile),
                ("allow_unenforced", options.allow_unenforced),
            )
            if value is not None
        },
        profile=options.profile,
    )
    for warning in config.warnings:
        OutputStream(2).write_text(f"Warning: {printable(warning)}\n")
    config.require_enforced()
    policy = config.sandbox_policy([Path(folder) for folder in options.add_dir or ()])
    return _run(command, policy, cwd, config, environment)


def _parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, and the command: what follows `--`, or else the first word that is neither option nor MODE."""
    parser = CommandParser()
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--test", action="store_true")
    parser.add_argument("-C", "--cd")
    parser.add_argument("--add-dir", action="append")
    parser.add_argument("-P", "--permission-profile")
    parser.add_argument("-p", "--profile")
    parser.add_argument("--allow-unenforced", type=protection, action="append")
    add_overrides(parser)
    at = first_word(argv, _WITH_VALUE)
    before, rest = list(argv[:at]), list(argv[at:])
    mode = rest.pop(0) if rest and rest[0] in _MODES else None
    if mode is not None:
        at = first_word(rest, _WITH_VALUE)
        before, rest = before + rest[:at], rest[at:]
    options = parser.parse_args(before)
    options.mode = mode
    return options, rest[1:] if rest[:1] == ["--"] else rest


def _run(
    command: Sequence[str],
    policy: SandboxPolicy,
    cwd: Path,
    config: Config,
    environment: Mapping[str, str],
) -> int:
    secrets = secret_names(config)
    variables = allowed_environment(config.shell_environment, environment, secrets)
    hidden = hidden_names(config.shell_environment, environment, secrets)
    if not policy.network_access:
        variables["CODEX_SANDBOX_NETWORK_DISABLED"] = "1"
    sandbox = LadderSandbox(variables, home=config.home, limits=config.sandbox_limits)
    try:
        confined = sandbox.command(without_variables(command, hidden), policy, cwd)
        for number in (*_ENDING, signal.SIGCHLD):
            signal.signal(number, lambda _number, _frame: None)
        code = _exit_code(subprocess.Popen(confined, cwd=cwd, env=variables))
    except ToolError as error:
        raise CodexError(str(error), code="sandbox", exit_code=ExitCode.SANDBOX) from error
    except OSError as error:
        OutputStream(2).write_text(
            f"codex-py sandbox: cannot run {command[0]!r}: {error.strerror}\n"
        )
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
    finally:
        sandbox.release()
    return code if code >= 0 else _SIGNAL_EXIT_BASE - code


def _exit_code(command: subprocess.Popen[bytes]) -> int:
    """Wait for the command; negative after a signal.

    The keys of the terminal are for the command, which is in the same group and may catch them. A signal that a
    process has sent to us alone ends the command, and is how both have ended.
    """
    if sys.platform != "linux":
        return command.wait()
    signal.pthread_sigmask(signal.SIG_BLOCK, (*_ENDING, signal.SIGCHLD))
    while (code := command.poll()) is None:
        came = signal.sigwaitinfo((*_ENDING, signal.SIGCHLD))
        if came.si_signo in _ENDING and came.si_code <= 0:
            # Its launcher leaves signals to the command; without the launcher, all of it ends.
            command.kill()
            command.wait()
            return -came.si_signo
    return code


def _test(environment: Mapping[str, str]) -> int:
    """Try every way out on every rung, and print what happened. 1 if one held less than it should.

    A question mark stands where the attempt could not even be made.
    """
    stdout = OutputStream(1)
    rungs = platform_rungs(environment.get("PATH", os.defpath))
    working: list[Rung] = []
    for rung in rungs:
        why = problem(rung)
        stdout.write_text(f"{rung.name}: {why or 'works here'}\n")
        if why is None:
            working.append(rung)
    if not working:
        return ExitCode.SANDBOX
    width = max(len(escape.name) for escape in ESCAPES)
    columns = [max(len(rung.name), len("held")) for rung in working]
    head = "  ".join(rung.name.ljust(n) for rung, n in zip(working, columns, strict=True))
    stdout.write_text(f"\n{'':{width}}  {head.rstrip()}\n")
    unexpected = False
    for escape in ESCAPES:
        cells: list[str] = []
        for rung, n in zip(working, columns, strict=True):
            try:
                found = "held" if try_escape(escape, rung) else "OPEN"
            except (OSError, ToolError):
                found = "?"
            known = escape.name in KNOWN_OPEN.get(rung.name, ())
            unexpected |= found == "?" or (found == "OPEN" and not known)
            cells.append(found.ljust(n))
        stdout.write_text(f"{escape.name:{width}}  {'  '.join(cells).rstrip()}\n")
    return ExitCode.TURN_FAILED if unexpected else ExitCode.DONE
