"""The environment of the commands that the model runs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Final, Literal

from codex_py import __version__
from codex_py.protocol.frozen import frozen


@frozen
class ShellEnvironmentPolicy:
    """`[shell_environment_policy]`. Patterns are globs and ignore case."""

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
"""Keeps programs from using colours and pagers, and from asking for a password."""


def child_environment(
    policy: ShellEnvironmentPolicy,
    environment: Mapping[str, str],
    *,
    thread_id: str,
    network_disabled: bool,
    secret_names: Collection[str],
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
    return variables


def allowed_environment(
    policy: ShellEnvironmentPolicy, environment: Mapping[str, str], secret_names: Collection[str]
) -> dict[str, str]:
    """The user's environment, filtered by the policy.

    The order is that of Codex: inherit, default excludes, `exclude`, `set`, `include_only`. The
    variables in `secret_names` are removed unless `include_only` names them in full or `set` gives them
    a value. `USER` and the like stay: a header may be made of one, but it is not secret.
    """
    variables = _inherited(policy, environment)
    if not policy.ignore_default_excludes:
        variables = _without(variables, _CREDENTIALS)
    variables = _without(variables, policy.exclude)
    for name in _secret(policy, secret_names):
        variables.pop(name, None)
    variables |= policy.set
    if policy.include_only:
        variables = {
            name: value for name, value in variables.items() if _matches(name, policy.include_only)
        }
    return variables


def hidden_names(
    policy: ShellEnvironmentPolicy, environment: Mapping[str, str], secret_names: Collection[str]
) -> frozenset[str]:
    """The variables that the policy hides from commands, even if a shell profile sets them again."""
    patterns = (*policy.exclude, *(() if policy.ignore_default_excludes else _CREDENTIALS))
    excluded = {name for name in environment if _matches(name, patterns)}
    kept = allowed_environment(policy, environment, secret_names)
    return frozenset({*_secret(policy, secret_names), *excluded} - set(kept))


def _secret(policy: ShellEnvironmentPolicy, secret_names: Collection[str]) -> set[str]:
    wanted = {name.upper() for name in policy.include_only} | _CORE
    return {name for name in secret_names if name.upper() not in wanted}


def _inherited(policy: ShellEnvironmentPolicy, environment: Mapping[str, str]) -> dict[str, str]:
    match policy.inherit:
        case "all":
            return dict(environment)
        case "core":
            return {name: value for name, value in environment.items() if name.upper() in _CORE}
        case "none":
            return {}


def _without(variables: dict[str, str], patterns: Sequence[str]) -> dict[str, str]:
    if not patterns:
        return variables
    return {name: value for name, value in variables.items() if not _matches(name, patterns)}


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)
