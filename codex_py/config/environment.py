"""The environment of the commands that the model runs."""

import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Final, Literal

from codex_py.protocol.frozen import frozen
from codex_py.version import __version__


@frozen
class ShellEnvironmentPolicy:
    """The settings of `[shell_environment_policy]`. Patterns are globs and ignore case."""

    inherit: Literal["all", "core", "none"] = "all"
    ignore_default_excludes: bool = True
    """False removes variables whose names look like credentials."""
    exclude: tuple[str, ...] = ()
    set: Mapping[str, str] = field(default_factory=dict[str, str])
    include_only: tuple[str, ...] = ()
    """Applied last, to `set` too; empty keeps everything."""


_CORE: Final = frozenset(
    {"HOME", "LOGNAME", "PATH", "SHELL", "TEMP", "TMP", "TMPDIR", "USER", "USERNAME"}
)
_CREDENTIALS: Final = ("*KEY*", "*SECRET*", "*TOKEN*")

_PLAIN_OUTPUT: Final = {
    "COLORTERM": "",
    "GH_PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LC_CTYPE": "C.UTF-8",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "TERM": "dumb",
}
"""Variables that keep programs from using colours and pagers, and from asking for a password."""

_SHELLS: Final = {"bash", "dash", "ksh", "sh", "zsh"}
_LOGIN: Final = (["-lc"], ["-cl"], ["-l", "-c"], ["--login", "-c"])
"""The options of a login shell that runs a script."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IN_QUOTES: Final = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n"})
"""Escapes for a text between `$'` and `'`. They keep it on one line, because the lines of an `eval`
are counted from the last line before it."""
_MAX_ARGUMENT_BYTES: Final = 128 * 1024
"""Linux starts no program with a longer argument."""


def child_environment(
    policy: ShellEnvironmentPolicy,
    environment: Mapping[str, str],
    *,
    thread_id: str,
    network_disabled: bool,
    secret_names: Collection[str],
    profile: str = "",
) -> dict[str, str]:
    """The environment of a command: the user's, filtered by the policy, with our additions.

    Variables that the user sets in the policy win over those that keep the output plain.
    """
    variables = allowed_environment(policy, environment, secret_names)
    chosen = {name: variables[name] for name in policy.set if name in variables}
    variables |= _PLAIN_OUTPUT | chosen
    variables |= {
        "CODEX_CI": "1",
        "CODEX_SESSION_ID": thread_id,
        "CODEX_THREAD_ID": thread_id,
        "CODEX_VERSION": __version__,
    }
    if network_disabled:
        variables["CODEX_SANDBOX_NETWORK_DISABLED"] = "1"
    if profile:
        variables["CODEX_PERMISSION_PROFILE"] = profile
    return variables


def allowed_environment(
    policy: ShellEnvironmentPolicy,
    environment: Mapping[str, str],
    secret_names: Collection[str],
) -> dict[str, str]:
    """The user's environment, filtered by the policy.

    The order is that of Codex: inherit, default excludes, `exclude`, `set`, `include_only`.
    Variables in `secret_names` are removed unless `include_only` names them in full or `set` gives
    them a value. `USER` and the like stay, even if a header is made of them: they are not secret.
    """
    removed = _secret(policy, secret_names)
    patterns = _excluded(policy)
    variables: dict[str, str] = {}
    for name, value in environment.items():
        is_inherited = policy.inherit == "all" or (
            policy.inherit == "core" and name.upper() in _CORE
        )
        if is_inherited and name not in removed and not _matches(name, patterns):
            variables[name] = value
    variables |= policy.set
    return {
        name: value for name, value in variables.items() if _is_included(policy, name)
    }


def environment_after_profile(
    policy: ShellEnvironmentPolicy,
    secret_names: Collection[str],
    exported: Mapping[str, str],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """The environment of a command that gets a login shell's exports instead of running in one.

    The profile's variables win over those of `environment`, with three exceptions: those that the
    policy sets, `TMPDIR`, which the sandbox knows, and those that differ from command to command.
    The policy hides the same names as in the user's environment.

    Args:
        exported: the variables that the login shell exports after it has read the profile.
        environment: the result of `child_environment`.
    """
    removed = _secret(policy, secret_names)
    patterns = _excluded(policy)
    variables: dict[str, str] = {}
    for name, value in exported.items():
        is_hidden = name in removed or _matches(name, patterns)
        if is_hidden or _differs_by_command(name):
            continue
        if _is_included(policy, name):
            variables[name] = value
    winning = {"TMPDIR", *policy.set, *filter(_differs_by_command, environment)}
    return variables | {
        name: value for name, value in environment.items() if name in winning
    }


def hidden_names(
    policy: ShellEnvironmentPolicy,
    environment: Mapping[str, str],
    secret_names: Collection[str],
) -> frozenset[str]:
    """The variables that the policy hides from commands, even if a shell profile sets them again."""
    patterns = _excluded(policy)
    excluded = {name for name in environment if _matches(name, patterns)}
    kept = allowed_environment(policy, environment, secret_names)
    return frozenset({*_secret(policy, secret_names), *excluded} - set(kept))


def without_variables(
    argv: Sequence[str],
    names: Collection[str],
    setup: str = "",
) -> list[str]:
    """Change a command line so that its script does not see these variables.

    They are hidden even if the profile sets them. Only a login shell with a script is changed. The
    script still runs in the same shell, with everything else that the profile sets, its own `$0`,
    arguments and line numbers: an inner shell would lose the profile's functions.

    Args:
        setup: a command that also runs before the script.
    """
    commands: list[str] = []
    hidden = sorted(name for name in names if _NAME.fullmatch(name))
    if hidden:
        # In braces, so that a trace which the profile turns on does not show it.
        commands.append(f"{{ unset {' '.join(hidden)}; }} 2>/dev/null")
    if setup:
        commands.append(setup)
    changed = list(argv)
    at = _login_script(argv)
    if commands and at is not None:
        changed[at] = _script_after("; ".join(commands), argv[at], argv[0])
    return changed


def _login_script(argv: Sequence[str]) -> int | None:
    """The place of the script in the command line of a login shell; None for any other."""
    if not argv or PurePath(argv[0]).name not in _SHELLS:
        return None
    for options in _LOGIN:
        at = len(options) + 1
        if len(argv) > at and list(argv[1:at]) == options:
            return at
    return None


def _script_after(
    first: str,
    script: str,
    shell: str,
) -> str:
    """Make a script that runs `first`, and then `script` in the same shell.

    Errors have the line numbers of `script`. No error shows `first`: bash quotes the line of a
    syntax error, but not the text around an `eval`; the other shells quote nothing.
    """
    if not _is_bash(shell):
        return f"{first}; {script}"
    # The profile may have functions and aliases with the names of builtins.
    line = f"{first}; \\builtin eval $'{script.translate(_IN_QUOTES)}'"
    if len(line.encode(errors="replace")) < _MAX_ARGUMENT_BYTES:
        return line
    # A wrong line number is better than a command that is too long to start.
    return f"{first}\n{script}"


def _is_bash(shell: str) -> bool:
    name = PurePath(shell).name
    if name != "sh":
        return name == "bash"
    if sys.platform == "darwin":
        # There, `sh` is bash, although it is no link to it.
        return True
    real = os.path.realpath(shell)
    return PurePath(real).name == "bash"


def _secret(policy: ShellEnvironmentPolicy, secret_names: Collection[str]) -> set[str]:
    """The names that are removed because their values are secret."""
    wanted = {name.upper() for name in policy.include_only} | _CORE
    return {name for name in secret_names if name.upper() not in wanted}


def _is_included(policy: ShellEnvironmentPolicy, name: str) -> bool:
    return not policy.include_only or _matches(name, policy.include_only)


def _differs_by_command(name: str) -> bool:
    return name in {"PWD", "OLDPWD", "SHLVL", "_"} or name.startswith("CODEX_")


def _excluded(policy: ShellEnvironmentPolicy) -> Sequence[str]:
    """The patterns of names that are removed."""
    if policy.ignore_default_excludes:
        return policy.exclude
    return (*policy.exclude, *_CREDENTIALS)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    capitals = name.upper()
    return any(fnmatchcase(capitals, pattern.upper()) for pattern in patterns)
