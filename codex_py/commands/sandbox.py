"""`codex-py sandbox`: runs a command as the model's commands are run, or tests the sandbox."""

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from codex_py.app.standalone_command import StandaloneCommand
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import read_config, warn_of_config
from codex_py.command_line.parser import CommandParser, given
from codex_py.config.config import Config
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError, ExitCode, ToolError, UsageError
from codex_py.programs import programs_outside
from codex_py.protocol.approval import SandboxMode
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import platform_backends, problem
from codex_py.sandbox.probes import KNOWN_OPEN, PROBES, run_probes
from codex_py.streams.standard import OutputStream, tell
from codex_py.streams.terminal import aligned

_OPTIONS = {
    "cd",
    "deny",
    "allow_domain",
    "add_dir",
    "profile",
    "allow_unenforced",
    "overrides",
}
_SIGNAL_EXIT_BASE = 128
_CELLS = {True: "held", False: "OPEN", None: "?"}
"""The cell of a probe that a backend held, did not hold, or that could not be tried."""
_NOT_FOUND = 127
_NOT_EXECUTABLE = 126
"""The exit codes of shells for a command that cannot be run."""
_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""The signals that end a program."""


def run_sandbox(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command, or test the sandbox. Returns the exit code, which is the command's own."""
    parser = CommandParser(Arguments, only=_OPTIONS)
    parser.add_argument("--test", action="store_true")
    parser.add_argument("-P", "--permission-profile")
    # MODE may stand among the options; the command follows them.
    at = parser.first_word(argv)
    flags: dict[str, Any] = {}
    if at < len(argv) and argv[at] in get_args(SandboxMode):
        flags["sandbox_mode"] = argv[at]
        argv = [*argv[:at], *argv[at + 1 :]]
    found, command = parser.parse_before_command(argv)
    options = given(found)
    if options.pop("test"):
        return _test(environment)
    if not command:
        raise UsageError("say what to run: codex-py sandbox [MODE] [--] COMMAND")
    profile = options.pop("permission_profile", None)
    if profile is not None:
        flags["default_permissions"] = profile
    arguments = Arguments(**options)
    config = read_config(arguments, environment, flags)
    warn_of_config(config)
    config.require_enforced()
    add_dirs = [Path(folder) for folder in arguments.add_dir]
    return _run(command, config, add_dirs, environment)


def _run(
    command: Sequence[str],
    config: Config,
    add_dirs: Sequence[Path],
    environment: Mapping[str, str],
) -> int:
    """Run a command in the sandbox. Returns its exit code, or the one that a shell would return."""
    policy = config.sandbox_policy(add_dirs)
    prepared = StandaloneCommand(config, policy, environment, add_dirs)
    try:
        confined = prepared.argv(command)
        if prepared.warning is not None:
            tell(f"codex-py sandbox: {prepared.warning}")
        for number in (*_ENDING, signal.SIGCHLD):
            signal.signal(number, lambda _number, _frame: None)
        process = subprocess.Popen(confined, cwd=config.cwd, env=prepared.environment)
        code = _exit_code(process)
    except ToolError as error:
        raise CodexError(
            str(error), code="sandbox", exit_code=ExitCode.SANDBOX
        ) from error
    except OSError as error:
        tell(f"codex-py sandbox: cannot run {command[0]!r}: {error.strerror}")
        if isinstance(error, FileNotFoundError):
            return _NOT_FOUND
        return _NOT_EXECUTABLE
    finally:
        prepared.release()
    for blocked in prepared.network.take():
        text = f"codex-py sandbox: blocked {blocked}"
        if blocked.pattern:
            text += f"; `--allow-domain {blocked.pattern}` allows it"
        tell(text)
    if code >= 0:
        return code
    return _SIGNAL_EXIT_BASE - code


def _exit_code(command: subprocess.Popen[bytes]) -> int:
    """Wait for the command. Returns its exit code, negative after a signal.

    Signals of the terminal's keys also reach the command, which is in the same group and may catch
    them. A signal that another process sends to this process alone ends the command, and both
    report that signal.
    """
    if sys.platform != "linux":
        return command.wait()
    awaited = (*_ENDING, signal.SIGCHLD)
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    code = command.poll()
    while code is None:
        came = signal.sigwaitinfo(awaited)
        is_from_process = came.si_code <= 0
        if came.si_signo in _ENDING and is_from_process:
            # The launcher does not forward signals; killing it ends the whole command.
            command.kill()
            command.wait()
            return -came.si_signo
        code = command.poll()
    return code


def _test(environment: Mapping[str, str]) -> int:
    """Run the probes on every backend, and print which ones it held.

    Returns 1 if a backend held less than it should. A question mark stands for a probe that could
    not be tried.
    """
    stdout = OutputStream(1)
    working: list[Backend] = []
    programs = programs_outside(codex_home(environment), environment, Path.cwd())
    search_path = programs.environment(environment).get("PATH", "")
    for backend in platform_backends(search_path):
        why_not = problem(backend)
        stdout.write_text(f"{backend.name}: {why_not or 'works here'}\n")
        if why_not is None:
            working.append(backend)
    if not working:
        return ExitCode.SANDBOX
    results = {backend.name: run_probes(backend) for backend in working}
    rows = [["", *results]]
    for probe in PROBES:
        cells = [_CELLS[found[probe.name]] for found in results.values()]
        rows.append([probe.name, *cells])
    lines = [f"{line.rstrip()}\n" for line in aligned(rows)]
    stdout.write_text("\n" + "".join(lines))
    for backend_name, found in results.items():
        known_open = KNOWN_OPEN.get(backend_name, ())
        for probe_name, held in found.items():
            is_known = held is False and probe_name in known_open
            if not held and not is_known:
                return ExitCode.TURN_FAILED
    return ExitCode.DONE
